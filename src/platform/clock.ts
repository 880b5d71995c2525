/** Time as a dependency. Only this file and jobs.ts may read the clock or set a timer. */
export interface Clock {
  /** Returns milliseconds since the Unix epoch. */
  nowMs(): number
  /** Returns monotonic milliseconds for measuring durations. A change of the wall clock does not affect them. */
  monotonicMs(): number
  /** Resolves after `ms`, or rejects with the signal's reason when the signal aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `fn` every `ms` until the returned function is called. The timer does not keep the process alive. */
  every(ms: number, fn: () => void): () => void
  /** Calls `fn` once after `ms` unless the returned function is called first. The timer does not keep the process alive. */
  after(ms: number, fn: () => void): () => void
}

/** The clock of the machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const stop = (): void => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop)
        resolve()
      }, ms)
      signal?.addEventListener('abort', stop, { once: true })
    })
  },
  every(ms, fn) {
    const timer = setInterval(fn, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
  after(ms, fn) {
    const timer = setTimeout(fn, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
