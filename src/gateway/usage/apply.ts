/** Writes usage events, inside the transaction of the flush that moves the counters. */
import type { Tx } from '../../platform/db.ts'
import { endOfIstDayMs, istDay } from '../../platform/ist-time.ts'
import { insertEvents } from './queries.ts'
import type { UsageEvent } from './record.ts'

/** The index of the reports takes no longer text. */
const modelMaxChars = 300
const countMax = BigInt(Number.MAX_SAFE_INTEGER)

/** What a column takes of a figure or name. One record that the database refused would keep every later one out of it. */
const count = (n: number | undefined): bigint => (n === undefined ? 0n : n >= Number.MAX_SAFE_INTEGER ? countMax : BigInt(Math.max(0, Math.trunc(n))))
const intOf = (n: number | undefined): number => Math.min(2_147_483_647, Number(count(n)))
const modelText = (id: string): string => id.slice(0, modelMaxChars).replaceAll('\u0000', '')

/** Inserts the events that are not there yet and returns the ids of those. Counters may move for these only. */
export async function insertUsageEvents(tx: Tx, events: readonly UsageEvent[]): Promise<readonly string[]> {
  if (events.length === 0) return []
  const dayOf = daysOf()
  const { count: inserted, ids } = await tx.one(
    insertEvents,
    events.map(e => dayOf(e.atMs)),
    events.map(e => e.id),
    events.map(e => new Date(e.atMs)),
    events.map(e => e.requestId),
    events.map(e => e.orgId),
    events.map(e => e.userId),
    events.map(e => e.keyId),
    events.map(e => e.workspaceId),
    events.map(e => e.agentId),
    events.map(e => e.agentLabel),
    events.map(e => e.kind),
    events.map(e => modelText(e.model)),
    events.map(e => e.provider),
    events.map(e => e.residency),
    events.map(e => e.streamed),
    events.map(e => e.byok),
    events.map(e => e.status),
    events.map(e => e.outcome),
    events.map(e => count(e.promptTokens)),
    events.map(e => count(e.completionTokens)),
    events.map(e => count(e.cachedTokens)),
    events.map(e => count(e.reasoningTokens)),
    events.map(e => e.estimated),
    events.map(e => e.valueUinr),
    events.map(e => e.costUinr),
    events.map(e => Math.max(0, Math.round(e.latencyMs))),
    events.map(e => (e.firstByteMs === null ? null : Math.max(0, Math.round(e.firstByteMs)))),
    // Records of a journal that an earlier version wrote do not have these.
    events.map(e => count(e.cacheWriteTokens)),
    events.map(e => intOf(e.images)),
    events.map(e => intOf(e.audioSeconds)),
    events.map(e => count(e.characters)),
  )
  return inserted === BigInt(events.length) ? events.map(e => e.id) : (ids ?? [])
}

/** The IST day of an instant, worked out anew only when it is another than that of the instant before. */
function daysOf(): (ms: number) => string {
  let day = ''
  let fromMs = 0
  let endMs = 0
  return ms => {
    if (ms >= endMs || ms < fromMs) {
      day = istDay(ms)
      endMs = endOfIstDayMs(ms)
      fromMs = endMs - 24 * 3600_000
    }
    return day
  }
}
