/**
 * How many labels of `x-br-agent-id` the sums by agent tell apart. A client may write the id of a session there: without a bound there would
 * be a row of sums for every call, and reports would take as long as reading the calls.
 */

/** Labels of an organisation and day that have rows of their own, for each process that writes. */
export const labelsMax = 1_000
/** Where all others are added up. No header can say this: labels begin with a letter or digit. */
export const otherLabels = '(others)'
/** The most days that are kept apart: today, yesterday around midnight, and a day of late calls. */
const daysMax = 3

/** The label that a call is added up under. */
export type BoundedLabels = (orgId: number, day: string, label: string) => string

/** Lets the first `labelsMax` labels of an organisation and day be. It forgets with the process, so a restart begins a new thousand. */
export function boundedLabels(): BoundedLabels {
  const days = new Map<string, Map<number, Set<string>>>()
  return (orgId, day, label) => {
    let orgs = days.get(day)
    if (orgs === undefined) {
      const [oldest] = days.size < daysMax ? [] : [...days.keys()].sort()
      if (oldest !== undefined) days.delete(oldest)
      orgs = new Map()
      days.set(day, orgs)
    }
    const known = orgs.get(orgId) ?? new Set()
    if (known.has(label)) return label
    if (known.size >= labelsMax) return otherLabels
    orgs.set(orgId, known.add(label))
    return label
  }
}
