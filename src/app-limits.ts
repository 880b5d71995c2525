/** What a flush of usage does beside the counters, the same for a gateway and for whoever settles its journals. */
import { endOnceKeys, endOnceKeysOf } from './gateway/inference/once.ts'
import type { LimitsOptions } from './gateway/limits/limits-options.ts'
import { insertUsageEvents } from './gateway/usage/apply.ts'
import type { UsageEvent } from './gateway/usage/record.ts'
import { usageEventText } from './gateway/usage/record-text.ts'
import { keepsSums, modelShards } from './gateway/usage/rollups.ts'
import type { Ids } from './platform/ids.ts'

export function usageAccount(ids: Ids): Required<Pick<LimitsOptions<UsageEvent>, 'appliers' | 'endOf' | 'eventText'>> {
  return {
    appliers: [insertUsageEvents, endOnceKeys, keepsSums(Math.floor(ids.random() * modelShards))],
    endOf: endOnceKeysOf,
    eventText: usageEventText,
  }
}
