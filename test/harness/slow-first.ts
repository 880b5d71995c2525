import { join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The test files that take longest, slowest first. They start first, so that at the end no worker is idle while another one runs a slow file. In a new
 * checkout vitest orders files by size, and most of these are small.
 */
const slowest = [
  'test/ops/first-minute.test.ts',
  'test/ops/database-thread.test.ts',
  'test/ops/first-start.test.ts',
  'test/ops/sigterm.test.ts',
  'test/memory/shared-memory-model.test.ts',
  'test/gateway/limits/budget-model.test.ts',
  'test/platform/db-embedded.test.ts',
  'test/ops/master-key.test.ts',
  'test/ops/backup.test.ts',
  'test/table/fuzz.test.ts',
  'test/ops/bench.test.ts',
  'test/gateway/limits/allowances.test.ts',
  'test/gateway/keys/trial-keys.test.ts',
  'test/gateway/inference/leaving.test.ts',
  'test/cli/commands-as-typed.test.ts',
  'test/gateway/routing/shared-averages-http.test.ts',
  'test/gateway/inference/hostile-replies.test.ts',
  'test/ops/due-sweeps.test.ts',
  'test/gateway/routing/preview-agrees.test.ts',
  'test/gateway/providers/many-calls.test.ts',
  'test/ops/operations.test.ts',
  'test/cli/curl-tour.test.ts',
  'test/tooling/checks.test.ts',
  'test/gateway/limits/running.test.ts',
  'test/gateway/billing/captures-model.test.ts',
  'test/memory/failures.test.ts',
  'test/memory/objects.test.ts',
  'test/memory/history.test.ts',
]

/** Sorts as vitest does, but puts the slowest files before all others. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const places = new Map(slowest.map((name, place) => [join(this.ctx.config.root, name), place]))
    const placeOf = ({ moduleId }: TestSpecification): number => places.get(moduleId) ?? slowest.length
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b))
  }
}
