/** The places to which the prompt of a call was sent. */
import type { Route } from '../../catalog/model.ts'
import type { UsageEvent } from '../../usage/events/record.ts'

/** The order of residencies from proven near to far away. */
const distances: Readonly<Record<UsageEvent['residency'], number>> = { india: 0, declared: 1, unknown: 2, global: 3 }

/** Returns the residency of a prompt on this route. An organisation's statement about its own server is only declared. */
export const placeOf = ({ residency, provider }: Route): UsageEvent['residency'] =>
  residency === 'india' && provider.userGiven === true ? 'declared' : residency

/** Returns the farther of two residencies. A call that went abroad before a provider in India answered has not stayed in India. */
export function farther(before: UsageEvent['residency'] | null, next: UsageEvent['residency']): UsageEvent['residency'] {
  return before === null || distances[before] < distances[next] ? next : before
}
