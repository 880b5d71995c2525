/** How a gateway stops taking calls: at its end, and when another process has taken its place. */
import type { Server } from 'node:http'
import type { Mcp } from '../mcp/transport/transport.ts'
import type { Inflight } from '../platform/loop/inflight.ts'
import type { AppDeps } from './deps.ts'

/** After the cut-off, how long a cut call may take to write its end. */
const lastWordsMs = 1000
/** How long an idle connection is kept after another process has taken over, so that its client learns of the end by a reply. */
const idleMs = 2000
/** How often a retiring process looks at its connections. */
const lookEveryMs = 100

/**
 * Accepts no more calls, waits for running ones at most DRAIN_MS, then cuts them in their own protocol. While calls run, connections are still accepted,
 * so that probes see the state of this process.
 */
export async function drain({ clock, config }: AppDeps, inflight: Inflight, server: Server, mcp: Mcp): Promise<void> {
  server.closeIdleConnections()
  mcp.endSubscriptions()
  const isIdle = new AbortController()
  await Promise.race([inflight.whenIdle(), clock.sleep(config.DRAIN_MS, isIdle.signal).catch(() => {})])
  isIdle.abort()
  const closed = new Promise<void>(done => (server.listening ? server.close(() => done()) : done()))
  inflight.abortAll('shutdown')
  await mcp.close()
  await Promise.race([inflight.whenIdle(), clock.sleep(lastWordsMs)])
  server.closeAllConnections()
  await closed
}

/**
 * Another process gets the new connections: serves those that are open until they end, at most DRAIN_MS. Each reply says that its connection ends with it, and
 * idle ones are closed after a while. No call is refused meanwhile.
 */
export async function retire({ clock, config }: AppDeps, server: Server, connections: { readonly open: number }): Promise<void> {
  const startedAtMs = clock.monotonicMs()
  for (;;) {
    const elapsedMs = clock.monotonicMs() - startedAtMs
    if (elapsedMs >= config.DRAIN_MS || connections.open === 0) return
    if (elapsedMs >= idleMs) server.closeIdleConnections()
    await clock.sleep(lookEveryMs)
  }
}
