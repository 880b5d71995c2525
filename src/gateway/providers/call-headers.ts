import type { Secret } from '../../platform/security/secret.ts'
import type { Provider } from './provider.ts'
import { userAgent } from './user-agent.ts'

/**
 * Returns the headers of a call to a provider, except its content-type. No header of the caller is sent. The accepted encoding is identity, so that
 * the gateway can relay bytes as they arrive.
 */
export function callHeaders({ auth }: Provider, credential: Secret | null): Record<string, string> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity', 'user-agent': userAgent }
  if (credential === null || auth === 'none' || auth === 'identity') return headers
  return auth === 'bearer' ? { ...headers, authorization: `Bearer ${credential.reveal()}` } : { ...headers, [auth]: credential.reveal() }
}
