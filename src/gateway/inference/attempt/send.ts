import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { UpstreamRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { InferenceDeps } from '../deps.ts'
import { exactPieceLength, inPieceTurn, restoredInPieces } from '../exact-pieces.ts'

type Outgoing = Pick<UpstreamRequest, 'url' | 'headers'> & {
  readonly method: 'GET' | 'POST'
  readonly body?: Buffer | string
}

/**
 * Sends a request of an attempt. A provider of the catalog is called directly, and a server that a user registered is called through the guard.
 * Numbers get back the digits that the caller sent; in a heavy body this is done in turns. `headersTimeoutMs` is the longest wait for the first byte.
 * The default is FIRST_BYTE_TIMEOUT_MS. Throws `bad_request` when digits would be sent far more often than the caller sent them.
 */
export function send(
  attempt: Attempt,
  outgoing: Outgoing,
  signal: CancelSignal,
  deps: Pick<InferenceDeps, 'outbound' | 'exact' | 'inTurn'>,
  headersTimeoutMs?: number,
): Promise<OutboundReply> {
  const { body } = outgoing
  if (body === undefined || deps.exact === undefined) return sendAsIs(attempt, outgoing, body, signal, deps.outbound, headersTimeoutMs)
  return sendRestored(attempt, outgoing, body, signal, deps, headersTimeoutMs)
}

async function sendRestored(
  attempt: Attempt,
  outgoing: Outgoing,
  body: Buffer | string,
  signal: CancelSignal,
  { outbound, exact, inTurn }: Pick<InferenceDeps, 'outbound' | 'exact' | 'inTurn'>,
  headersTimeoutMs: number | undefined,
): Promise<OutboundReply> {
  const restored =
    exact === undefined
      ? body
      : body.length <= exactPieceLength
        ? exact.restored(body, exact.room())
        : await restoredInPieces(body, exact, inTurn === undefined ? inPieceTurn : work => inTurn(work, signal), exact.room())
  return sendAsIs(attempt, outgoing, restored, signal, outbound, headersTimeoutMs)
}

function sendAsIs(
  { route: { provider } }: Attempt,
  { method, url, headers }: Outgoing,
  body: Buffer | string | undefined,
  signal: CancelSignal,
  outbound: InferenceDeps['outbound'],
  headersTimeoutMs: number | undefined,
): Promise<OutboundReply> {
  const outgoing = { method, url, headers, body, signal, headersTimeoutMs }
  return provider.userGiven === true ? outbound.toUserUrl(outgoing).catch(refused) : outbound.toProvider(outgoing)
}

/** A refusal by the guard is not a mistake of this call. The address was registered earlier, perhaps by another person, so the route has failed. */
function refused(cause: unknown): never {
  throw cause instanceof GatewayError ? fail('all_routes_failed', { message: cause.message, cause }) : cause
}
