/**
 * Loaded into a gateway under test with `--import`. It measures how late the event loop runs a timer of 10 ms. The bench controls it with messages to the
 * process: `reset` begins a new measurement, and `read` returns the result.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const resolutionMs = 10
const nsOfMs = 1e6

if (isMainThread && process.send !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  process.on('message', ask => {
    if (ask === 'reset') delay.reset()
    // The histogram contains the whole time between two timers, so their interval is subtracted.
    const lateMs = ns => Math.max(0, ns / nsOfMs - resolutionMs)
    process.send(ask === 'reset' ? {} : { loopDelayP99Ms: lateMs(delay.percentile(99)), loopDelayMaxMs: lateMs(delay.max) })
  })
  process.channel.unref()
}
