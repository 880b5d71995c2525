/** Starts the thread that flushes the usage journal. */
import { fileURLToPath } from 'node:url'
import type { LimitsOptions } from '../../gateway/limits/engine/limits-options.ts'
import { FlushThread } from '../../gateway/limits/journal/thread/flush-thread.ts'
import type { UsageEvent } from '../../gateway/usage/events/record.ts'
import type { AppDeps } from '../deps.ts'

/** Returns the option of limits that flushes in a thread. */
export function flushThreadOf({ db, clock, log }: Pick<AppDeps, 'db' | 'clock' | 'log'>, baseUrl: () => string): Pick<LimitsOptions<UsageEvent>, 'flushPort'> {
  const file = workerFile()
  return { flushPort: (folder, nowMs) => new FlushThread<UsageEvent>({ file, folder, db, clock, log, facts: () => ({ nowMs: nowMs(), baseUrl: baseUrl() }) }) }
}

/** Returns the path of the compiled worker. It is in dist, also when this file runs as TypeScript. */
function workerFile(): string {
  const here = new URL(import.meta.url)
  const built = here.pathname.endsWith('.ts') ? '../../../dist/composition/flush-thread/flush-worker.js' : './flush-worker.js'
  return fileURLToPath(new URL(built, here))
}
