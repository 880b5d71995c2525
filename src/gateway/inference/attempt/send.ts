import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { OutboundRequest } from '../../../platform/outbound/outbound.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { CredentialsError, sendAuthorised } from '../../cloud/authorise.ts'
import type { AttemptIdentity } from '../../cloud/identities.ts'
import type { UpstreamRequest } from '../../providers/dialect.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { InferenceDeps } from '../deps.ts'
import { exactPieceLength, inPieceTurn, restoredInPieces } from '../exact-pieces.ts'

type Outgoing = Pick<UpstreamRequest, 'url' | 'headers'> & {
  readonly method: 'GET' | 'POST'
  readonly body?: Buffer | string
}

type SendDeps = Pick<InferenceDeps, 'outbound' | 'exact' | 'inTurn' | 'identities' | 'clock'>

/**
 * Sends a request of an attempt. A provider of the catalog is called directly, and a server that a user registered is called through the guard.
 * Numbers get back the digits that the caller sent; in a heavy body this is done in turns. `headersTimeoutMs` is the longest wait for the first byte.
 * The default is FIRST_BYTE_TIMEOUT_MS. An attempt with credentials that expire is authorised here, over the bytes that go out. Throws `bad_request` when digits would be sent far more often than the caller sent them.
 */
export function send(attempt: Attempt, outgoing: Outgoing, signal: CancelSignal, deps: SendDeps, headersTimeoutMs?: number): Promise<OutboundReply> {
  const { body } = outgoing
  if (body === undefined || deps.exact === undefined) return sendAsIs(attempt, outgoing, body, signal, deps, headersTimeoutMs)
  return sendRestored(attempt, outgoing, body, signal, deps, headersTimeoutMs)
}

async function sendRestored(
  attempt: Attempt,
  outgoing: Outgoing,
  body: Buffer | string,
  signal: CancelSignal,
  deps: SendDeps,
  headersTimeoutMs: number | undefined,
): Promise<OutboundReply> {
  const { exact, inTurn } = deps
  const restored =
    exact === undefined
      ? body
      : body.length <= exactPieceLength
        ? exact.restored(body, exact.room())
        : await restoredInPieces(body, exact, inTurn === undefined ? inPieceTurn : work => inTurn(work, signal), exact.room())
  return sendAsIs(attempt, outgoing, restored, signal, deps, headersTimeoutMs)
}

function sendAsIs(
  { route: { provider }, identity }: Attempt,
  { method, url, headers }: Outgoing,
  body: Buffer | string | undefined,
  signal: CancelSignal,
  deps: SendDeps,
  headersTimeoutMs: number | undefined,
): Promise<OutboundReply> {
  const outgoing = { method, url, headers, body, signal, headersTimeoutMs }
  if (identity !== undefined) return sendWithIdentity(provider, identity, outgoing, deps)
  return dialed(provider, outgoing, deps.outbound)
}

function dialed(provider: Provider, outgoing: OutboundRequest, outbound: InferenceDeps['outbound']): Promise<OutboundReply> {
  return provider.userGiven === true || provider.isOrgPlace === true ? outbound.toUserUrl(outgoing).catch(refused) : outbound.toProvider(outgoing)
}

/** Authorises and sends a request. Credentials that cannot be had are a failure of the route, so another provider may serve the call. */
async function sendWithIdentity(
  provider: Provider,
  identity: AttemptIdentity,
  outgoing: OutboundRequest & { readonly method: Outgoing['method']; readonly body: Buffer | string | undefined },
  { outbound, clock, identities, inTurn }: SendDeps,
): Promise<OutboundReply> {
  try {
    if (identities === undefined) throw new CredentialsError('this gateway has no credentials that expire')
    const { signal, method, url, headers: given, body } = outgoing
    const request = { method, url, headers: given, body, ...(inTurn === undefined ? {} : { inTurn: <T>(work: () => T) => inTurn(work, signal) }) }
    const dial = (headers: Readonly<Record<string, string>>): Promise<OutboundReply> => dialed(provider, { ...outgoing, headers }, outbound)
    return await sendAuthorised(identities.of(provider, identity), request, { dial, nowMs: () => clock.nowMs(), ...(signal === undefined ? {} : { signal }) })
  } catch (cause) {
    if (cause instanceof CredentialsError) throw fail('all_routes_failed', { message: cause.message, cause })
    throw cause
  }
}

/** A refusal by the guard is not a mistake of this call. The address was registered earlier, perhaps by another person, so the route has failed. */
function refused(cause: unknown): never {
  throw cause instanceof GatewayError ? fail('all_routes_failed', { message: cause.message, cause }) : cause
}
