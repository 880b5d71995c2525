import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { UpstreamRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { InferenceDeps } from '../deps.ts'
import { restoredInPieces } from '../exact-pieces.ts'

type Outgoing = Pick<UpstreamRequest, 'url' | 'headers'> & {
  readonly method: 'GET' | 'POST'
  readonly body?: Buffer | string
  /** How long the first byte is waited for, in milliseconds. Left out: FIRST_BYTE_TIMEOUT_MS. */
  readonly headersTimeoutMs?: number
}

/**
 * Sends a request of an attempt. A provider of the catalog is called directly, and a server that a user registered through the guard. Numbers
 * get the digits back that the caller sent, in a heavy body in turns. Throws `bad_request` for digits that would be sent far more often than
 * they came.
 */
export function send(
  attempt: Attempt,
  outgoing: Outgoing,
  signal: CancelSignal,
  { outbound, exact, inTurn }: Pick<InferenceDeps, 'outbound' | 'exact' | 'inTurn'>,
): Promise<OutboundReply> {
  const { body } = outgoing
  if (body === undefined || exact === undefined) return sendAsIs(attempt, outgoing, signal, outbound)
  if (inTurn === undefined) return sendAsIs(attempt, { ...outgoing, body: exact.restored(body, exact.room()) }, signal, outbound)
  return restoredInPieces(body, exact, work => inTurn(work, signal), exact.room()).then(restored =>
    sendAsIs(attempt, { ...outgoing, body: restored }, signal, outbound),
  )
}

function sendAsIs(
  { route: { provider } }: Attempt,
  { method, url, headers, body, headersTimeoutMs }: Outgoing,
  signal: CancelSignal,
  outbound: InferenceDeps['outbound'],
): Promise<OutboundReply> {
  const wait = headersTimeoutMs === undefined ? undefined : { headersTimeoutMs }
  const outgoing = body === undefined ? { method, url, headers, signal, ...wait } : { method, url, headers, body, signal, ...wait }
  return provider.userGiven === true ? outbound.toUserUrl(outgoing).catch(refused) : outbound.toProvider(outgoing)
}

/** A refusal by the guard is not a mistake of this call. The address was registered earlier, perhaps by another person, so the route has failed. */
function refused(cause: unknown): never {
  throw cause instanceof GatewayError ? fail('all_routes_failed', { message: cause.message, cause }) : cause
}
