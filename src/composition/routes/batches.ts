import { Accounts } from '../../gateway/batches/accounts.ts'
import { type BatchServices, createBatches } from '../../gateway/batches/create-batches.ts'
import type { InferenceDeps } from '../../gateway/inference/deps.ts'
import type { AppParts } from '../parts.ts'

/** Constructs the services of batches. `startBatches` begins to ask providers; the function that it returns stops that. */
export function batchServices(parts: AppParts, inference: InferenceDeps): BatchServices & { startBatches(): () => Promise<void> } {
  const { outbound, limits, catalog, jobs } = parts
  const accounts = new Accounts(outbound, () => catalog.snapshot, inference.orgRouting)
  const { start, ...services } = createBatches({
    ...parts,
    inference,
    lasting: limits.lasting,
    accounts,
    founderOf: parts.founders.known,
    nowMs: () => limits.nowMs(),
  })
  return { ...services, startBatches: () => start(jobs) }
}
