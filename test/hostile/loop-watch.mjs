/**
 * Loaded before the gateway with --import. It measures the event loop of the main thread from inside the process. Every half second it appends a line of
 * JSON with two figures to LOOP_WATCH_FILE. The first is the longest pause in milliseconds, without the time in which the thread waited for the processor.
 * The second is the memory.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const tickMs = 10
const lineEveryMs = 500

/** Returns the milliseconds that this thread was ready to run but had no processor, as Linux counts them. Returns 0 on other systems. */
function waitedMs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

const file = process.env.LOOP_WATCH_FILE
if (isMainThread && file) {
  let lastMs = performance.now()
  let lastWaitedMs = waitedMs()
  let lineMs = lastMs
  let pauseMs = 0
  let wallMs = 0
  const tick = () => {
    const nowMs = performance.now()
    const waited = waitedMs()
    const late = Math.max(0, nowMs - lastMs - tickMs)
    wallMs = Math.max(wallMs, late)
    pauseMs = Math.max(pauseMs, late - (waited - lastWaitedMs))
    if (nowMs - lineMs >= lineEveryMs) {
      const { rss, heapUsed, external } = process.memoryUsage()
      appendFileSync(file, `${JSON.stringify({ at: Date.now(), pauseMs, wallMs, rss, heapUsed, external })}\n`)
      lineMs = nowMs
      pauseMs = 0
      wallMs = 0
    }
    lastMs = performance.now()
    lastWaitedMs = waitedMs()
    setTimeout(tick, tickMs).unref()
  }
  setTimeout(tick, tickMs).unref()
}
