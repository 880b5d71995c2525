/**
 * Limits how many labels of `x-br-agent-id` have sums of their own. A client may send a session id as the label. Without a limit, every call would
 * then have its own row of sums, and reports would be as slow as reading all calls.
 */

/** Maximum number of labels with sums of their own, for each organisation, day and writing process. */
export const labelsMax = 1_000
/** The label for the sum of all other labels. No header can contain this label, because labels begin with a letter or digit. */
export const otherLabels = '(others)'
/** Maximum number of days in memory: today, yesterday around midnight, and one day for late calls. */
const daysMax = 3

/** Returns the label under which a call is added to the sums. */
export type BoundedLabels = (orgId: number, day: string, label: string) => string

/**
 * Returns a function that keeps the first `labelsMax` labels of each organisation and day, and replaces all other labels with `otherLabels`. The
 * state is in memory, so a restart allows `labelsMax` new labels.
 */
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
