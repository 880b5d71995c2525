/** Cursors of the list of events. */
import { fail } from '../../platform/errors.ts'
import { istDay } from '../../platform/ist-time.ts'

/** A place in the list: events lie before it whose day, and then whose id, is smaller. */
export interface EventPlace {
  /** IST day. */
  readonly day: string
  readonly id: string
}

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** The last instant that a date has four digits in India. */
const lastMs = Date.UTC(9999, 11, 31) - 1

/** Before the newest event that can be. */
export const newestPlace: EventPlace = { day: '9999-12-31', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }

/** Before every event of a day that can be. */
export const endOfDay = (day: string): EventPlace => ({ day, id: newestPlace.id })

/**
 * Where an id stands when no event has it (any more): ids begin with their instant. An event may lie a day beside that around midnight,
 * because its call was admitted a moment after its id was made. Throws `bad_request` for what is no id of an event.
 */
export function placeOfId(before: string): EventPlace {
  const id = before.toLowerCase()
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  if (!uuidv7.test(id) || ms > lastMs)
    throw fail('bad_request', { message: '"before" is no id of an event. Take next_before of the page before, or leave it out for the newest events.' })
  return { day: istDay(ms), id }
}
