import type { CancelSignal } from '../../platform/cancellation.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { OutboundReply } from '../../platform/upstream-body.ts'
import type { UpstreamRequest } from '../providers/dialect.ts'
import type { Attempt } from '../routing/plan.ts'
import type { InferenceDeps } from './deps.ts'

/** Sends a request of an attempt: to a provider of the catalog directly, to a server that a user gave through the guard. */
export function send(
  { route: { provider } }: Attempt,
  { method, url, headers, body }: Pick<UpstreamRequest, 'url' | 'headers'> & { readonly method: 'GET' | 'POST'; readonly body?: Buffer | string },
  signal: CancelSignal,
  { outbound }: Pick<InferenceDeps, 'outbound'>,
): Promise<OutboundReply> {
  const outgoing = body === undefined ? { method, url, headers, signal } : { method, url, headers, body, signal }
  return provider.userGiven === true ? outbound.toUserUrl(outgoing).catch(refused) : outbound.toProvider(outgoing)
}

/** What the guard refuses is no mistake of this call: the address was given earlier, perhaps by somebody else. The route has failed. */
function refused(cause: unknown): never {
  throw cause instanceof GatewayError ? fail('all_routes_failed', { message: cause.message, cause }) : cause
}
