/** The work of a usage flush in addition to the counters. A gateway and the process that settles its journals do the same work. */
import { noteLastCalls } from '../agents/last-calls.ts'
import { endOnceKeys, endOnceKeysOf, freeOnceKeysOf } from '../gateway/inference/idempotency/idempotency.ts'
import type { LimitsOptions } from '../gateway/limits/engine/limits-options.ts'
import { RunCounters } from '../gateway/limits/runs/run-counters.ts'
import { insertUsageEvents } from '../gateway/usage/events/apply.ts'
import type { UsageEvent } from '../gateway/usage/events/record.ts'
import { usageEventCodec } from '../gateway/usage/events/record-bytes.ts'
import { keepsRollups, modelShards } from '../gateway/usage/rollups/rollups.ts'
import { keepsRuns } from '../gateway/usage/runs/run-sums.ts'
import type { Ids } from '../platform/values/ids.ts'

export function usageAccount(ids: Ids): Required<Pick<LimitsOptions<UsageEvent>, 'appliers' | 'endOf' | 'onGivenUp' | 'codec'>> {
  const counters = new RunCounters(ids)
  return {
    appliers: [insertUsageEvents, endOnceKeys, noteLastCalls, keepsRuns(counters.charge.bind(counters)), keepsRollups(Math.floor(ids.random() * modelShards))],
    endOf: endOnceKeysOf,
    onGivenUp: freeOnceKeysOf,
    codec: usageEventCodec,
  }
}
