import { useEffect, useState } from 'react'
import { waits } from '../../api/connection.ts'
import { useStore } from '../../api/store.ts'
import { liveText } from '../../text/common.ts'
import { Icon } from '../../ui/icon.tsx'

const tickMs = 1_000

/** Says how long the gateway makes the console wait. The request is then sent again by itself. */
export function WaitNote({ untilMs }: { readonly untilMs: number }) {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(Date.now())
      if (Date.now() >= untilMs) waits.set(null)
    }, tickMs)
    return () => clearInterval(timer)
  }, [untilMs])
  const seconds = Math.ceil((untilMs - now) / 1000)
  if (seconds <= 0) return null
  return (
    <div className="toast">
      <Icon name="clock" />
      <span>{liveText.waits(seconds)}</span>
    </div>
  )
}

/** Returns until when the gateway makes the console wait, or null. */
export const useWait = (): number | null => useStore(waits)
