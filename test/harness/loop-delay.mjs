/**
 * Loaded before a gateway with `--import`. It measures how late the event loop of the main thread runs a timer of 5 ms. Time in which the thread was
 * ready and had no processor does not count, because other programs of the machine cause it. Every 250 ms it appends a line of JSON to
 * LOOP_DELAY_FILE: {"at": Unix ms, "lateMs": [milliseconds of each timer]}. Decision 0546 gives the reasons.
 */
import { appendFileSync, openSync, readSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const tickMs = 5
const lineEveryMs = 250
const nsOfMs = 1e6

/** Returns a function that returns the milliseconds in which this thread waited for a processor, as Linux counts them. Elsewhere they are 0. */
function waitsForProcessor() {
  try {
    const fd = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
    const bytes = Buffer.alloc(128)
    return () => Number(bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0)).split(' ')[1]) / nsOfMs
  } catch {
    return () => 0
  }
}

const file = process.env.LOOP_DELAY_FILE
if (isMainThread && file) {
  const waitedMs = waitsForProcessor()
  let lastMs = performance.now()
  let lastWaitedMs = waitedMs()
  let lineMs = lastMs
  let lateMs = []
  const tick = () => {
    const nowMs = performance.now()
    const waited = waitedMs()
    lateMs.push(Math.max(0, Math.round(10 * (nowMs - lastMs - tickMs - (waited - lastWaitedMs))) / 10))
    if (nowMs - lineMs >= lineEveryMs) {
      appendFileSync(file, `${JSON.stringify({ at: Date.now(), lateMs })}\n`)
      lineMs = nowMs
      lateMs = []
    }
    lastMs = performance.now()
    lastWaitedMs = waitedMs()
    setTimeout(tick, tickMs).unref()
  }
  setTimeout(tick, tickMs).unref()
}
