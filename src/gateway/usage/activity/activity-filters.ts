/** The filters of an activity report, and which sums answer them. */
import { fail } from '../../../platform/errors.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import { hourDaysKept } from '../events/usage-retention.ts'
import { type DaySpan, daysIn } from '../reports/usage-span.ts'

/** The filters of a report. A value that is absent does not filter. */
export interface ActivityFilters {
  readonly model?: string | undefined
  readonly provider?: string | undefined
  /** 0 means calls without a key. */
  readonly keyId?: number | undefined
  readonly agentId?: number | undefined
  readonly userId?: number | undefined
  readonly workspaceId?: number | undefined
}

/** The length of the parts of a report. Hours are those of Indian days. */
export type ActivityGroup = 'day' | 'hour'

/**
 * What a report reads: sums of the organisation, of a key, of a caller (the one of its filters with an index), of hours, or single calls. The first value that
 * can answer the filters is used.
 */
export type ActivitySource = 'org' | 'key' | 'agent' | 'workspace' | 'member' | 'hours' | 'events'

/** Maximum length of a report by hour, in days. */
export const hourSpanDaysMax = 3
/** Maximum number of calls of the organisation in a span whose single calls a report reads. */
export const eventsMax = 50_000
/** Calls that may be recorded between the count and the read. */
export const eventsSlack = 5_000
/** Maximum length of a span whose single calls a report reads, in days. */
export const eventsDaysMax = 31
const dayMs = 24 * 3600_000

/** Returns what answers the filters. */
export function sourceOf({ keyId, agentId, userId, workspaceId }: ActivityFilters, group: ActivityGroup): ActivitySource {
  const caller = agentId !== undefined ? 'agent' : userId !== undefined ? 'member' : workspaceId !== undefined ? 'workspace' : null
  if (keyId !== undefined) return caller !== null || group === 'hour' ? 'events' : 'key'
  if (group === 'hour') return 'hours'
  return caller ?? 'org'
}

/** Throws `bad_request` when the span is too long or too old for a report by hour. */
export function checkHours(span: DaySpan, nowMs: number): void {
  if (daysIn(span) > hourSpanDaysMax)
    throw fail('bad_request', { message: `group=hour takes a span of at most ${hourSpanDaysMax} days, both ends included. Ask for less, or leave group out.` })
  const oldest = istDay(nowMs - (hourDaysKept - 1) * dayMs)
  if (span.from < oldest)
    throw fail('bad_request', { message: `Sums by hour are kept for ${hourDaysKept} days. Begin at ${oldest} or later, or leave group out.` })
}

/** What single calls a span has. */
export interface EventRoom {
  readonly calls: bigint
  /** The first day whose single calls are all kept. Null when no call was ever deleted. */
  readonly keptFrom: string | null
}

/** Returns whether a report may read the single calls of a span. */
export function mayReadEvents(span: DaySpan, { calls, keptFrom }: EventRoom): boolean {
  return daysIn(span) <= eventsDaysMax && calls <= BigInt(eventsMax) && (keptFrom === null || keptFrom <= span.from)
}

/** Throws `bad_request` when a report must read the single calls of a span and may not. */
export function checkEvents(span: DaySpan, room: EventRoom): void {
  if (mayReadEvents(span, room)) return
  throw fail('bad_request', {
    message: `No sums exist for this combination of filters, so it reads single calls: in a span of at most ${eventsDaysMax} days with at most ${eventsMax} calls of the organisation, whose calls are still kept. Ask for a shorter span, or leave out key_id.`,
  })
}
