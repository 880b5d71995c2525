/** Stops a gateway from accepting calls. This happens at its end, and after another process has taken over. */
import type { Server } from 'node:http'
import type { Hints } from '../gateway/hints/hints.ts'
import type { Mcp } from '../mcp/transport/transport.ts'
import type { Inflight } from '../platform/loop/inflight.ts'
import type { AppDeps } from './deps.ts'

/** How long a cut call may take to write the end of its reply. */
const lastWordsMs = 1000
/** How long an idle connection stays open after another process has taken over. A reply in this time can tell its client that the connection ends. */
const idleMs = 2000
/** The interval at which a retiring process checks its connections. */
const lookEveryMs = 100

/**
 * Ends the calls of the process. It waits for running calls for at most DRAIN_MS, and then cuts the remaining calls in their own protocol. Meanwhile
 * connections are still accepted, so that probes can read the state of this process.
 */
export async function drain({ clock, config }: AppDeps, inflight: Inflight, server: Server, mcp: Mcp, hints: Hints): Promise<void> {
  server.closeIdleConnections()
  mcp.endSubscriptions()
  hints.endAll()
  const isIdle = new AbortController()
  await Promise.race([inflight.whenIdle(), clock.sleep(config.DRAIN_MS, isIdle.signal).catch(() => {})])
  isIdle.abort()
  const closed = new Promise<void>(done => (server.listening ? server.close(() => done()) : done()))
  inflight.abortAll('shutdown')
  await Promise.all([mcp.close(), hints.stop()])
  await Promise.race([inflight.whenIdle(), clock.sleep(lastWordsMs)])
  server.closeAllConnections()
  await closed
}

/**
 * Serves the open connections until they end, for at most DRAIN_MS, while another process receives the new ones. Each reply says that its connection
 * ends. Idle connections are closed after 2 seconds. No call is refused in this time.
 */
export async function retire({ clock, config }: AppDeps, server: Server, connections: { readonly open: number }, hints: Hints): Promise<void> {
  hints.endAll()
  const startedAtMs = clock.monotonicMs()
  for (;;) {
    const elapsedMs = clock.monotonicMs() - startedAtMs
    if (elapsedMs >= config.DRAIN_MS || connections.open === 0) return
    if (elapsedMs >= idleMs) server.closeIdleConnections()
    await clock.sleep(lookEveryMs)
  }
}
