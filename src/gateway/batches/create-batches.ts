import type { Db } from '../../platform/db/db.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import { keptDays } from './batch-bounds.ts'
import { deleteOldBatches, violationsOfEvents, violationsOfHolds } from './batch-queries.ts'
import { Batches } from './batches.ts'
import type { BatchesDeps } from './batches-deps.ts'
import { BatchFiles, UploadPlaces } from './files.ts'
import { BatchPoller } from './poller.ts'
import { Settlement } from './settlement.ts'

const sweepEveryMs = 3600_000
const dayMs = 24 * 3600_000
const deletedMost = 1000

export interface BatchServices {
  readonly batches: Batches
  readonly batchFiles: BatchFiles
}

/** Constructs the services of batches. `start` begins to ask providers and registers the sweep; the function that it returns stops the asking. */
export function createBatches(deps: BatchesDeps): BatchServices & { start(jobs: Jobs): () => Promise<void> } {
  const places = new UploadPlaces(deps.founderOf)
  const batchFiles = new BatchFiles(deps, places)
  const poller = new BatchPoller(deps, new Settlement(deps))
  return {
    batchFiles,
    batches: new Batches(deps, batchFiles, places),
    start(jobs) {
      jobs.every('batches.sweep', sweepEveryMs, async signal => {
        await batchFiles.sweep(signal)
        await deps.db.exec(deleteOldBatches, new Date(deps.nowMs() - keptDays * dayMs), deletedMost)
      })
      const stopPoller = poller.start()
      return async () => {
        await Promise.all([stopPoller(), batchFiles.stop()])
      }
    },
  }
}

/** Checks that only open batches hold something, and that a settled batch has its event. Returns one sentence for each broken invariant. */
export async function checkBatchInvariants(db: Db): Promise<string[]> {
  const found: string[] = []
  for (const { owner } of await db.many(violationsOfHolds)) found.push(`Batch ${owner} is settled or gone and still holds money.`)
  for (const { id, value, sum } of await db.many(violationsOfEvents)) found.push(`Batch ${id} cost ${value}, its usage event says ${sum}.`)
  return found
}
