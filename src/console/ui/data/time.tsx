import { useEffect, useState } from 'react'
import { dateText, exactTime, relativeTime } from '../format/dates.ts'

const tickMs = 30_000

/** Returns the time now. The component is drawn again twice a minute. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tickMs)
    return () => clearInterval(timer)
  }, [])
  return now
}

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
