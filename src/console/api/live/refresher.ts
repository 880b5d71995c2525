/** Reads again what hints have made out of date, soon after the first hint and less often while hints keep coming. */
import type { Query } from '@tanstack/react-query'
import type { OperationName } from '../call.ts'
import { leaving } from '../connection.ts'
import { queryClient } from '../queries.ts'
import { readsOf } from './topics.ts'

/** After a quiet time, a hint is followed in this time, at random, so that many consoles do not read in the same moment. */
const firstMaxMs = 250
/** Pauses between two reads of one operation: the shortest, and the longest while hints keep coming. */
const pauseMinMs = 1_000
const pauseMaxMs = 10_000
/** The name under which everything is read. */
const everything = 'all'

interface Pace {
  pauseMs: number
  readAtMs: number
  timer: ReturnType<typeof setTimeout> | null
}

const paces = new Map<OperationName | typeof everything, Pace>()

/** Follows a hint. */
export function follow(topic: string): void {
  if (leaving.get()) return
  const reads = readsOf(topic)
  for (const name of reads === 'all' ? [everything as typeof everything] : reads) plan(name)
}

/**
 * Reads again what is shown of an operation, or everything. A hidden tab only notes that it is out of date, and reads it when it is shown. A list of several
 * pages stays as it is, because a person reads it and each page would be a request. A read with the meta `isPinned` stays, too.
 */
export async function readAgain(name: OperationName | typeof everything): Promise<void> {
  const predicate = (query: Query): boolean => (name === everything || query.queryKey[0] === name) && !isLongList(query) && query.meta?.['isPinned'] !== true
  await queryClient.invalidateQueries({ predicate, refetchType: document.visibilityState === 'visible' ? 'active' : 'none' })
}

function plan(name: OperationName | typeof everything): void {
  const pace = paces.get(name) ?? { pauseMs: pauseMinMs, readAtMs: Number.NEGATIVE_INFINITY, timer: null }
  paces.set(name, pace)
  if (pace.timer !== null) return
  const sinceMs = performance.now() - pace.readAtMs
  pace.pauseMs = sinceMs > 2 * pauseMaxMs ? pauseMinMs : Math.min(pace.pauseMs * 2, pauseMaxMs)
  const waitMs = Math.max(pace.pauseMs - sinceMs, 0) + Math.random() * firstMaxMs
  pace.timer = setTimeout(() => {
    pace.timer = null
    pace.readAtMs = performance.now()
    void readAgain(name)
  }, waitMs)
}

/** Returns whether a read is a list of several pages, or the list of calls, which has a switch of its own. */
function isLongList({ queryKey, state }: Query): boolean {
  const data = state.data
  if (typeof data !== 'object' || data === null || !('pages' in data) || !Array.isArray(data.pages)) return false
  return data.pages.length > 1 || queryKey[0] === 'activityEvents'
}
