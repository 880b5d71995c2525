import { useQueries, useQuery } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../../../api/call.ts'
import { apiQuery } from '../../../../api/queries.ts'
import { addDays, istDay, istDayStart } from '../../../../ui/format/dates.ts'

type Entry = ReplyOf<'listConsole'>['keys'][number]
type Version = ReplyOf<'historyConsole'>['versions'][number]

/** Days whose changes are shown, today included. */
export const changeDays = 7
/** Most objects whose versions are read. */
const objectsMax = 30
/** Most pages of the list that are read for them. A page of a filtered list may be short. */
const pagesMax = 5
/** Versions of an object that are read. One more than is shown, because the oldest is compared with the one before. */
const versionsRead = 20
/** Most changes that are shown. */
const changesMax = 60

/** A write of an agent, and the version that was there before. */
export interface Change {
  readonly key: string
  readonly version: Version
  /** Null: the object did not exist. Undefined: it is older than what was read, or not kept. */
  readonly before: Version | null | undefined
}

/** The changes of an Indian day, the latest first. */
export interface DayOfChanges {
  readonly day: string
  readonly changes: readonly Change[]
}

interface Changes {
  /** Undefined while they are read. */
  readonly days: readonly DayOfChanges[] | undefined
  /** True when there are more than are shown. */
  readonly isCut: boolean
  readonly error: unknown
  retry(): void
}

/** Returns what an agent wrote in the last days, of the objects that it was the last to write. Decision 0741 says why those. */
export function useChanges(agentId: number): Changes {
  const since = addDays(istDay(Date.now()), 1 - changeDays)
  const objects = useQuery({
    queryKey: ['listConsole', 'changes', agentId, since],
    queryFn: ({ signal }) => readObjects(agentId, since, signal),
  })
  const histories = useQueries({
    queries: (objects.data?.entries ?? []).map(({ key }) => apiQuery('historyConsole', { query: { key, limit: versionsRead } })),
    combine: results => ({
      replies: results.flatMap(({ data }) => (data === undefined ? [] : [data])),
      isComplete: results.every(({ data, isError }) => data !== undefined || isError),
      error: results.find(({ isError }) => isError)?.error ?? null,
    }),
  })
  const all = histories.replies.flatMap(reply => changesOf(reply, agentId, since)).sort((a, b) => (a.version.modified < b.version.modified ? 1 : -1))
  return {
    days: objects.data !== undefined && histories.isComplete ? byDay(all.slice(0, changesMax)) : undefined,
    isCut: objects.data?.isCut === true || all.length > changesMax,
    error: objects.error ?? (histories.replies.length === 0 ? histories.error : null),
    retry: () => void objects.refetch(),
  }
}

async function readObjects(agentId: number, since: string, signal: AbortSignal): Promise<{ entries: readonly Entry[]; isCut: boolean }> {
  const found: Entry[] = []
  let cursor: string | null | undefined
  for (let page = 0; page < pagesMax && cursor !== null && found.length <= objectsMax; page++) {
    const query = { author: `agent:${agentId}`, modified_since: istDayStart(since), limit: objectsMax + 1 }
    const reply: ReplyOf<'listConsole'> = await api('listConsole', { query: cursor === undefined ? query : { ...query, cursor }, signal })
    found.push(...reply.keys)
    cursor = reply.next_cursor ?? null
  }
  return { entries: found.slice(0, objectsMax), isCut: found.length > objectsMax || cursor !== null }
}

function changesOf({ key, versions, next_cursor: next }: ReplyOf<'historyConsole'>, agentId: number, since: string): Change[] {
  const isOf = ({ author }: Version): boolean => author?.verified === true && author.agent === String(agentId)
  return versions.flatMap((version, place) => {
    if (!isOf(version) || istDay(Date.parse(version.modified)) < since) return []
    const before = versions[place + 1] ?? (next === null ? null : undefined)
    return [{ key, version, before: before?.how === 'delete' ? null : before }]
  })
}

function byDay(changes: readonly Change[]): DayOfChanges[] {
  const days = new Map<string, Change[]>()
  for (const change of changes) {
    const day = istDay(Date.parse(change.version.modified))
    days.set(day, [...(days.get(day) ?? []), change])
  }
  return [...days].map(([day, ofDay]) => ({ day, changes: ofDay }))
}
