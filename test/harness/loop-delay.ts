/** Reads what loop-delay.mjs writes about the event loop of a gateway. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from './until.ts'

const preload = fileURLToPath(new URL('./loop-delay.mjs', import.meta.url))

/** How late the loop ran its timers in a span of time, in milliseconds. */
export interface LoopDelay {
  readonly p99Ms: number
  readonly maxMs: number
}

export interface LoopDelayWatch {
  /** The settings of the gateway. */
  readonly env: Readonly<Record<string, string>>
  /** Returns the delay of the loop while `work` ran. */
  during(work: () => Promise<void>): Promise<LoopDelay>
}

/** Prepares the measurement of a gateway that is not started yet. */
export function loopDelayWatch(folder: string): LoopDelayWatch {
  const file = join(folder, 'loop-delay.jsonl')
  writeFileSync(file, '')
  const lines = () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter(line => line.endsWith('}'))
      .map(line => JSON.parse(line) as { at: number; lateMs: number[] })
  return {
    env: { NODE_OPTIONS: `--import ${preload}`, LOOP_DELAY_FILE: file },
    async during(work) {
      const startMs = Date.now()
      await work()
      const endMs = Date.now()
      await until(() => (lines().at(-1)?.at ?? 0) > endMs, 'the loop wrote its delay after the work')
      const all = lines()
      // The first line after the end contains the end of the work.
      const last = all.findIndex(({ at }) => at > endMs)
      const lateMs = all
        .slice(0, last + 1)
        .filter(({ at }) => at > startMs)
        .flatMap(line => line.lateMs)
        .sort((a, b) => a - b)
      return { p99Ms: lateMs[Math.ceil(lateMs.length * 0.99) - 1] ?? 0, maxMs: lateMs.at(-1) ?? 0 }
    },
  }
}
