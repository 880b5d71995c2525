import type { Sealer } from '../../../platform/security/secrets.ts'
import type { OAuthClientRow } from './client-queries.ts'
import type { OAuthClient } from './issuer/token-requests.ts'

/** Returns the name that ties the sealed secret of a client to its row. */
export const toolClientOwner = (orgId: number, serverId: string): string => `tool_oauth_client:${orgId}:${serverId}`

/** Returns the client with its secret in plain text. Throws an Error when the secret cannot be opened. */
export function openClient(sealer: Sealer, { orgId, serverId, clientId, secretSealed, scopes }: OAuthClientRow): OAuthClient {
  return { clientId, clientSecret: secretSealed === null ? null : sealer.open(secretSealed, toolClientOwner(orgId, serverId)), scopes }
}
