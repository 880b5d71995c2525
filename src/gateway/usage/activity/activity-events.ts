/**
 * Lists single calls, newest first, in pages. The order is (IST day, id). An index has the same order, so every page costs the same. An event may be
 * inserted while somebody reads the pages. Its place follows from the admission of its call, so the event may be before the first page or after the
 * cursor. No event is listed twice, and no event that existed at the start is missing.
 */

import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { daysOfAgent, daysOfKey, daysOfModel, type EventRow, findEventDay, listEvents, scanDay } from './activity-event-queries.ts'

/** Maximum number of events that one page with filters examines. If the page has too few matches by then, it ends early and returns where to continue. */
export const scanMax = 20_000
const dayMs = 24 * 3600_000

export interface EventFilters {
  readonly model?: string | undefined
  /** 0 means calls without a key. */
  readonly keyId?: number | undefined
  readonly agentId?: number | undefined
  /** Only calls that failed. */
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
   * invalid id.
   */
  async page(orgId: number, before: string | undefined, limit: number, filters: EventFilters): Promise<EventPage> {
    const from = before === undefined ? newestPlace : placeOfId(before)
    await this.#deps.journal.flushNow()
    const place = before === undefined ? from : await this.#placeOf(orgId, from)
    const isFiltered = filters.isFailed === true || [filters.model, filters.keyId, filters.agentId].some(params => params !== undefined)
    return isFiltered ? await this.#filtered(orgId, place, limit, filters) : await this.#all(orgId, place, limit)
  }

  /** Returns the same position with the day under which the event is stored. */
  async #placeOf(orgId: number, { day, id }: EventPlace): Promise<EventPlace> {
    const startMs = startOfIstDayMs(day) ?? 0
    const days = [day, istDay(startMs + dayMs), istDay(startMs - dayMs)]
    return { day: (await this.#deps.db.maybe(findEventDay, orgId, days, id))?.day ?? day, id }
  }

  async #all(orgId: number, { day, id }: EventPlace, limit: number): Promise<EventPage> {
    return pageOf(await this.#deps.db.many(listEvents, orgId, day, id, limit + 1), limit)
  }

  /** Reads the days that have matching usage in the sums, and examines at most `scanMax` events. */
  async #filtered(orgId: number, start: EventPlace, limit: number, filters: EventFilters): Promise<EventPage> {
    const { model = null, keyId = null, agentId = null, isFailed = false } = filters
    const found: EventRow[] = []
    let looksLeft = scanMax
    for (const day of await this.#days(orgId, start.day, filters)) {
      const { id } = day === start.day ? start : endOfDay(day)
      const wanted = limit + 1 - found.length
      const rows = await this.#deps.db.many(scanDay, orgId, day, id, looksLeft, wanted, model, keyId, agentId, isFailed)
      found.push(...rows.filter(row => row.isMatch))
      if (found.length > limit) break
      const last = rows.at(-1)
      looksLeft -= Number(last?.scanned ?? 0)
      if (looksLeft <= 0) return { rows: found, nextBefore: last?.id ?? null }
    }
    return pageOf(found, limit)
  }

  async #days(orgId: number, until: string, { model: asked, keyId, agentId, isFailed = false }: EventFilters): Promise<string[]> {
    const { db } = this.#deps
    const model = asked ?? null
    const rows =
      keyId !== undefined
        ? await db.many(daysOfKey, orgId, until, isFailed, model, keyId)
        : agentId !== undefined
          ? await db.many(daysOfAgent, orgId, until, isFailed, agentId)
          : await db.many(daysOfModel, orgId, until, isFailed, model)
    return rows.map(({ day }) => day)
  }
}

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
