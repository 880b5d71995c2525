import { createStore, useStore } from '../../api/store.ts'
import { dateText, exactTime, relativeTime } from '../format/dates.ts'

const tickMs = 30_000

/** One clock for all parts of the page, so that a table with hundreds of times has one timer. */
const clock = createStore(Date.now())
setInterval(() => clock.set(Date.now()), tickMs)

/** Returns the time now. The component is drawn again twice a minute. */
export const useNow = (): number => useStore(clock)

/** A moment as the distance from now. The tooltip has the time in the zone of the person. */
export function Time({ at, none = 'never' }: { readonly at: string | null; readonly none?: string }) {
  const now = useNow()
  if (at === null) return <span className="quiet">{none}</span>
  return (
    <time dateTime={at} title={exactTime(at)} className="nowrap">
      {relativeTime(at, now)}
    </time>
  )
}

/** A moment as a date. */
export function DateOnly({ at, none = 'never' }: { readonly at: string | null; readonly none?: string }) {
  if (at === null) return <span className="quiet">{none}</span>
  return (
    <time dateTime={at} title={exactTime(at)} className="nowrap">
      {dateText(at)}
    </time>
  )
}
