/**
 * Limits how many labels of `x-br-agent-id`, and how many models, have sums of their own. A client may send a session id as the label. With a key of the
 * caller's own, every `provider/model-id` is a model. Without a limit, every call would then have its own row of sums, and reports would be as slow as
 * reading all calls.
 */

/** Maximum number of labels with sums of their own, for each organisation, day and writing process. */
export const labelsMax = 1_000
/** The label for the sum of all other labels. No header can contain this label, because labels begin with a letter or digit. */
export const otherLabels = '(others)'
/** Maximum number of models with sums of their own, for each organisation, day and writing process. */
export const modelsMax = 1_000
/** The model for the sum of all other models. */
export const otherModels = '(others)'
/** Maximum number of models in a report that has a row for each day and model. A report of a leap year then has at most 37,000 rows, which are 9 MB. */
export const dayModelsMax = 100
/** Maximum number of days in memory: today, yesterday around midnight, and one day for late calls. */
const daysMax = 3

/** Returns the name under which a call is added to the sums. */
export type BoundedNames = (orgId: number, day: string, name: string) => string

/**
 * Returns a function that keeps the first `max` names of each organisation and day, and replaces all other names with `others`. The state is in memory,
 * so a restart allows `max` new names.
 */
export function boundedNames(max: number, others: string): BoundedNames {
  const days = new Map<string, Map<number, Set<string>>>()
  return (orgId, day, name) => {
    let orgs = days.get(day)
    if (orgs === undefined) {
      const [oldest] = days.size < daysMax ? [] : [...days.keys()].sort()
      if (oldest !== undefined) days.delete(oldest)
      orgs = new Map()
      days.set(day, orgs)
    }
    const known = orgs.get(orgId) ?? new Set()
    if (known.has(name)) return name
    if (known.size >= max) return others
    orgs.set(orgId, known.add(name))
    return name
  }
}

/** Returns the model under which a call is added to the sums of all organisations. Ids that callers choose freely share one. */
export const publicModel = (model: string, provider: string, byok: boolean): string => (byok && model.startsWith(`${provider}/`) ? otherModels : model)
