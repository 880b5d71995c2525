/**
 * Lists single calls, newest first, in pages. The order is (IST day, id). An index has the same order, so every page costs the same. An event may be
 * inserted while somebody reads the pages. Its place follows from the admission of its call, so the event may be before the first page or after the
 * cursor. No event is listed twice, and no event that existed at the start is missing.
 */

import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import type { Outcome, UsageKind } from '../events/record.ts'
import { checkedSpan } from '../reports/usage-span.ts'
import { tagOf } from '../runs/runs.ts'
import {
  type CallRow,
  daysOfAgent,
  daysOfKey,
  daysOfMember,
  daysOfModel,
  daysOfWorkspace,
  type EventRow,
  findCalls,
  findEventDay,
  listEvents,
  listEventsOfRequest,
  scanDay,
} from './activity-event-queries.ts'

/** Maximum number of events that one page with filters examines. If the page has too few matches by then, it ends early and returns where to continue. */
export const scanMax = 20_000
const dayMs = 24 * 3600_000

/** Maximum number of days that one page with filters examines. */
const daysMax = 40
/** Maximum number of calls of one request. The image panel makes fewer. */
const callsMax = 50
/** No request id is longer. */
const requestIdMaxChars = 100
/** No call is older. */
const firstDay = '1970-01-01'

/** What an event must have. A value that is absent does not filter. */
export interface EventFilters {
  /** First and last IST day. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly model?: string | undefined
  readonly provider?: string | undefined
  /** 0 means calls without a key. */
  readonly keyId?: number | undefined
  readonly agentId?: number | undefined
  readonly userId?: number | undefined
  readonly workspaceId?: number | undefined
  readonly kind?: UsageKind | undefined
  readonly outcome?: Outcome | undefined
  readonly requestId?: string | undefined
  /** A tag, as `key=value`. */
  readonly tag?: string | undefined
  /** Only calls that count as errors. */
  readonly isFailed?: boolean | undefined
}

export interface EventPage {
  readonly rows: readonly EventRow[]
  /** The cursor of the next page. Null after the last page. */
  readonly nextBefore: string | null
}

export interface ActivityEventsDeps {
  readonly db: Db
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
}

/** The usage events of one organisation. */
export class ActivityEvents {
  readonly #deps: ActivityEventsDeps

  constructor(deps: ActivityEventsDeps) {
    this.#deps = deps
  }

  /**
   * Returns at most `limit` events before the event with the id `before`. Without `before`, returns the newest events. Throws `bad_request` for an
   * invalid id or day.
   */
  async page(orgId: number, before: string | undefined, limit: number, filters: EventFilters): Promise<EventPage> {
    const { from, to } = spanOf(filters)
    const asked = before === undefined ? newestPlace : placeOfId(before)
    await this.#deps.journal.flushNow()
    const found = before === undefined ? asked : await this.#placeOf(orgId, asked)
    const place = found.day > to ? endOfDay(to) : found
    if (filters.requestId !== undefined) return { rows: await this.#ofRequest(orgId, filters.requestId, { from, place }, limit, filters), nextBefore: null }
    if (place.day < from) return { rows: [], nextBefore: null }
    return isScan(filters) ? await this.#filtered(orgId, { from, place }, limit, filters) : await this.#all(orgId, { from, place }, limit)
  }

  /** Returns the calls of one request, oldest first. Most requests make one. Throws `not_found`. */
  async calls(orgId: number, requestId: string): Promise<readonly CallRow[]> {
    if (requestId.length > requestIdMaxChars || requestId.includes('\u0000')) throw fail('not_found')
    await this.#deps.journal.flushNow()
    const rows = await this.#deps.db.many(findCalls, orgId, requestId, callsMax)
    if (rows.length === 0)
      throw fail('not_found', { message: 'No call with this request id. Calls are written when they end, and are kept for USAGE_KEEP_DAYS days.' })
    return rows
  }

  /** Returns the same position with the day under which the event is stored. */
  async #placeOf(orgId: number, { day, id }: EventPlace): Promise<EventPlace> {
    const startMs = startOfIstDayMs(day) ?? 0
    const days = [day, istDay(startMs + dayMs), istDay(startMs - dayMs)]
    return { day: (await this.#deps.db.maybe(findEventDay, orgId, days, id))?.day ?? day, id }
  }

  async #all(orgId: number, { from, place: { day, id } }: Part, limit: number): Promise<EventPage> {
    return pageOf(await this.#deps.db.many(listEvents, orgId, day, id, limit + 1, from), limit)
  }

  /** The calls of a request have one page, because they are few. */
  async #ofRequest(orgId: number, requestId: string, { from, place }: Part, limit: number, filters: EventFilters): Promise<EventRow[]> {
    const rows = await this.#deps.db.many(listEventsOfRequest, orgId, from, place.day, requestId, ...matchOf(filters), limit)
    return rows.filter(row => row.day < place.day || row.id < place.id)
  }

  /** Reads the days that have matching usage in the sums, and examines at most `scanMax` events on at most `daysMax` days. */
  async #filtered(orgId: number, part: Part, limit: number, filters: EventFilters): Promise<EventPage> {
    const found: EventRow[] = []
    let looksLeft = scanMax
    let seen: string | null = null
    const days = await this.#days(orgId, part, filters)
    for (const day of days.slice(0, daysMax)) {
      const { id } = day === part.place.day ? part.place : endOfDay(day)
      const wanted = limit + 1 - found.length
      const rows = await this.#deps.db.many(scanDay, orgId, day, id, looksLeft, ...matchOf(filters), wanted)
      found.push(...rows.filter(row => row.isMatch))
      if (found.length > limit) break
      const last = rows.at(-1)
      seen = last?.id ?? seen
      looksLeft -= Number(last?.scanned ?? 0)
      if (looksLeft <= 0) return { rows: found, nextBefore: seen }
    }
    const page = pageOf(found, limit)
    const next = days[daysMax]
    return page.nextBefore === null && next !== undefined ? { rows: found, nextBefore: seen ?? lastIdOf(next) } : page
  }

  async #days(orgId: number, { from, place }: Part, filters: EventFilters): Promise<string[]> {
    const { db } = this.#deps
    const { model = null, provider = null, keyId, agentId, userId, workspaceId } = filters
    const span = [orgId, from, place.day, onlyFailed(filters), daysMax + 1] as const
    const rows =
      keyId !== undefined
        ? await db.many(daysOfKey, ...span, model, provider, keyId)
        : agentId !== undefined
          ? await db.many(daysOfAgent, ...span, agentId)
          : userId !== undefined
            ? await db.many(daysOfMember, ...span, model, provider, userId)
            : workspaceId !== undefined
              ? await db.many(daysOfWorkspace, ...span, model, provider, workspaceId)
              : await db.many(daysOfModel, ...span, model, provider)
    return rows.map(({ day }) => day)
  }
}

/** The part of the list that a page may show: before a position, and from a day on. */
interface Part {
  readonly from: string
  readonly place: EventPlace
}

/** Returns the requested days. Throws `bad_request`. */
function spanOf({ from = firstDay, to = newestPlace.day }: EventFilters): { from: string; to: string } {
  return checkedSpan({ from, to })
}

/** Returns true when only sums and single events together can answer the filters. Days alone are a part of the index. */
const isScan = ({ model, provider, keyId, agentId, userId, workspaceId, kind, outcome, isFailed, tag }: EventFilters): boolean =>
  isFailed === true || [model, provider, keyId, agentId, userId, workspaceId, kind, outcome, tag].some(value => value !== undefined)

/** Returns true when every match counts as an error. */
const onlyFailed = ({ outcome, isFailed }: EventFilters): boolean =>
  isFailed === true || (outcome !== undefined && outcome !== 'ok' && outcome !== 'client_gone')

const matchOf = ({ model, keyId, agentId, isFailed, provider, outcome, kind, workspaceId, userId, tag }: EventFilters) =>
  [
    model ?? null,
    keyId ?? null,
    agentId ?? null,
    isFailed === true,
    provider ?? null,
    outcome ?? null,
    kind ?? null,
    workspaceId ?? null,
    userId ?? null,
    tag === undefined ? null : tagOf(tag),
  ] as const

/** Makes a page. `rows` has one row more than the page when there is a next page. */
function pageOf(rows: readonly EventRow[], limit: number): EventPage {
  const shown = rows.slice(0, limit)
  return { rows: shown, nextBefore: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
}

/** A position in the list. Later entries of the list have an earlier day, or the same day and a smaller id. */
export interface EventPlace {
  /** IST day. */
  readonly day: string
  readonly id: string
}

/** Returns a cursor before all events of a day whose ids were made on that day. It serves when no event was seen on the days after it. */
function lastIdOf(day: string): string {
  const time = ((startOfIstDayMs(day) ?? 0) + dayMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** The last instant in a year with four digits, in Indian time. */
const lastMs = Date.UTC(9999, 11, 31) - 1

/** The position before the newest possible event in the list. */
export const newestPlace: EventPlace = { day: '9999-12-31', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }

/** Returns the position before all possible events of a day. */
export const endOfDay = (day: string): EventPlace => ({ day, id: newestPlace.id })

/**
 * Returns the position of an id, even when its event does not exist (any more). The id begins with its time. Around midnight, the day may differ by
 * one from the stored day, because the call was admitted a moment after its id was made. Throws `bad_request` for an invalid id.
 */
export function placeOfId(before: string): EventPlace {
  const id = before.toLowerCase()
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  if (!uuidv7.test(id) || ms > lastMs)
    throw fail('bad_request', { message: '"before" is no id of an event. Take next_before of the page before, or leave it out for the newest events.' })
  return { day: istDay(ms), id }
}
