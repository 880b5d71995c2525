import { useEffect, useState } from 'react'
import { connection } from '../../api/connection.ts'
import { noteReads, poll } from '../../api/live/poll.ts'
import { followHints } from '../../api/live/shared-stream.ts'
import { readAt, streamState } from '../../api/live/stream-state.ts'
import { useStore } from '../../api/store.ts'
import { liveText } from '../../text/common.ts'

const tickMs = 1_000

/** Keeps what is shown up to date, for as long as the shell is there. */
export function useLive(): void {
  useEffect(() => {
    const ends = [followHints(), poll(), noteReads()]
    return () => {
      for (const end of ends) end()
    }
  }, [])
}

/** Says whether changes appear by themselves, and when something was read last. */
export function LiveDot() {
  const stream = useStore(streamState)
  const isAway = useStore(connection) === 'offline'
  const state = isAway ? 'offline' : stream === 'open' ? 'live' : 'polling'
  return (
    <p className={`live-state live-state-${state}`} title={liveText[state].means} data-live={state}>
      <span className="live-state-dot" aria-hidden="true" />
      <span className="live-state-text">
        {liveText[state].name} <Age />
      </span>
    </p>
  )
}

/** How long ago something was read. It counts while the tab is visible. */
function Age() {
  const at = useStore(readAt)
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && setNow(Date.now()), tickMs)
    return () => clearInterval(timer)
  }, [])
  return <span className="quiet tabular">{liveText.updated(Math.max(0, Math.round((now - at) / 1000)))}</span>
}
