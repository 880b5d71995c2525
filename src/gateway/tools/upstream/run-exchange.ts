import type { Client } from '@modelcontextprotocol/client'
import type { Clock } from '../../../platform/clock.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { Era, EraMemory } from './era-memory.ts'
import { Exchange, type ExchangeOptions } from './exchange.ts'
import { guardedFetch } from './guarded-fetch.ts'
import type { Received } from './received-lists.ts'
import { UpstreamError } from './upstream-error.ts'
import type { UpstreamTarget } from './upstream-target.ts'
import { WatchedTransport } from './watched-transport.ts'

export interface ExchangeDeps {
  readonly outbound: Pick<Outbound, 'toUserUrl'>
  readonly clock: Clock
  readonly version: string
  readonly eras: EraMemory
  readonly target: UpstreamTarget
  readonly signal: CancelSignal
  /** The most bytes of all replies together. */
  readonly maxBytes: number
}

/** The SDK's own timers come after the deadline of the exchange, which decides. */
const graceMs = 5000
/** Time in which the cancel and the end of a session may still leave after an exchange. */
const farewellMs = 2000

/**
 * Connects to a server in the protocol that it speaks, does `work`, and closes the connection. The SDK gives empty lists; `received` has them. Declares neither elicitation nor sampling nor roots.
 * Throws UpstreamError: of the caller's signal, of the deadline, of a bound, or of the server.
 */
export async function runExchange<T>(
  deps: ExchangeDeps,
  work: (client: Client, options: ExchangeOptions, received: Received) => Promise<T>,
): Promise<{ readonly era: Era; readonly value: T }> {
  const { clock, target, eras } = deps
  const exchange = new Exchange(deps.maxBytes)
  const unfollow = exchange.follow(deps.signal)
  const stopTimer = clock.after(target.timeoutMs, () =>
    exchange.fail(new UpstreamError('timeout', `the server gave no whole answer within ${target.timeoutMs} ms`)),
  )
  let transport: WatchedTransport | null = null
  let client: Client | null = null
  const go = async (): Promise<{ readonly era: Era; readonly value: T }> => {
    // The SDK is loaded when the first server is asked, because most installations have none.
    const sdk = await import('@modelcontextprotocol/client')
    exchange.signal.throwIfAborted()
    const inner = new sdk.StreamableHTTPClientTransport(new URL(target.url), { fetch: guardedFetch(deps.outbound, target, exchange) })
    const watched = new WatchedTransport(inner, exchange)
    transport = watched
    client = new sdk.Client(
      { name: 'brigade', version: deps.version },
      { capabilities: {}, versionNegotiation: { mode: 'auto' }, inputRequired: { autoFulfill: false } },
    )
    const options: ExchangeOptions = { signal: exchange.signal, timeout: target.timeoutMs + graceMs }
    const prior = eras.get(target)
    await client.connect(watched, prior === null ? options : { ...options, prior })
    const era = client.getProtocolEra() ?? 'legacy'
    const discover = client.getDiscoverResult()
    eras.note(target, era === 'modern' && discover !== undefined ? { kind: 'modern', discover } : { kind: 'legacy' })
    return { era, value: await work(client, options, () => watched.received) }
  }
  try {
    return await Promise.race([go(), exchange.failed])
  } catch (error) {
    const shown = exchange.error ?? asUpstreamError(error)
    shown.isSent ||= exchange.isSent
    // The server may speak another protocol than before.
    if (shown.kind === 'protocol' || shown.kind === 'rpc') eras.forget(target)
    exchange.fail(shown)
    throw shown
  } finally {
    unfollow()
    stopTimer()
    void farewell(transport, client, clock)
  }
}

/** Lets a cancel leave, ends a session of the server, and closes the connection. Nobody waits for it. */
async function farewell(transport: WatchedTransport | null, client: Client | null, clock: Clock): Promise<void> {
  if (transport === null) return
  let stop = (): void => undefined
  const over = new Promise<void>(resolve => {
    stop = clock.after(farewellMs, resolve)
  })
  const bye = async (): Promise<void> => {
    await transport.whenSent()
    if (transport.sessionId !== undefined) await transport.endSession()
  }
  try {
    await Promise.race([bye(), over])
  } catch {
    // The server need not take the farewell.
  } finally {
    stop()
    await (client ?? transport).close().catch(() => undefined)
  }
}

/** Returns the error of the SDK as ours. None of its texts is shown, because they quote the server. */
export function asUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  if (typeof error !== 'object' || error === null) return new UpstreamError('protocol', 'the exchange failed')
  // The classes of the SDK are told apart by their fields, because they are loaded later.
  const { code, data, message } = error as { code?: unknown; data?: unknown; message?: unknown }
  if (typeof code === 'number')
    return new UpstreamError('rpc', `the server answered with the error ${code}`, { rpcCode: code, rpcMessage: typeof message === 'string' ? message : '' })
  const status = typeof data === 'object' && data !== null && 'status' in data && typeof data.status === 'number' ? data.status : undefined
  if (status !== undefined) return new UpstreamError('protocol', `the server answered ${status}, which no MCP server answers here`, { status })
  return new UpstreamError('protocol', 'the server does not answer as the protocol says')
}
