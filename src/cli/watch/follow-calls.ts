import { BrigadeError } from '../../agents/toolkit/brigade-error.ts'
import { systemClock } from '../../platform/clock.ts'
import { CommandError } from '../command-error.ts'
import type { LoggedCall } from './logged-call.ts'

const everyMs = 1_000
/** Wait after a poll that failed because the gateway was away. */
const awayMs = 5_000
/** How many calls are remembered, so that none is printed twice. A page has at most 200. */
const knownMax = 2_000

/**
 * Polls for calls until Ctrl-C, and prints each call once. A long call appears under its start time when it ends, so every page is compared as a whole. While
 * the gateway is away, it keeps trying. Throws every refusal, such as a session that ended.
 */
export async function follow(
  first: readonly LoggedCall[],
  read: () => Promise<readonly LoggedCall[]>,
  print: (calls: readonly LoggedCall[]) => void,
): Promise<void> {
  const stopped = new AbortController()
  const stop = (): void => stopped.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  // The first page may be shorter than later ones. Calls that are older than it were not asked for.
  const since = first[0]?.at ?? ''
  const known = new Set(first.map(({ id }) => id))
  let isAway = false
  while (!stopped.signal.aborted) {
    await systemClock.sleep(isAway ? awayMs : everyMs, stopped.signal).catch(() => undefined)
    if (stopped.signal.aborted) break
    try {
      const fresh = (await read()).filter(({ id, at }) => at >= since && !known.has(id))
      isAway = false
      if (fresh.length > 0) print(fresh)
      for (const { id } of fresh) known.add(id)
      for (const id of known) {
        if (known.size <= knownMax) break
        known.delete(id)
      }
    } catch (thrown) {
      if (!isTemporary(thrown)) throw thrown
      if (!isAway) process.stderr.write('brigade: the gateway is away; waiting for it.\n')
      isAway = true
    }
  }
  process.removeListener('SIGINT', stop)
  process.removeListener('SIGTERM', stop)
}

function isTemporary(thrown: unknown): boolean {
  if (thrown instanceof CommandError) return thrown.code === 'unreachable'
  return thrown instanceof BrigadeError && (thrown.status >= 500 || thrown.status === 429)
}
