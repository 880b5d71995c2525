/** The rules of LangGraph's stores: which namespaces are valid, what a filter finds, what a namespace condition matches. Pure. */

/** A namespace that a store does not take. */
export class InvalidNamespaceError extends Error {
  override readonly name = 'InvalidNamespaceError'
}

/** Throws InvalidNamespaceError. `langgraph` as the first label is reserved and cannot be written to. */
export function checkNamespace(namespace: readonly string[], { mayBeEmpty = false, mayBeReserved = true } = {}): void {
  const shown = JSON.stringify(namespace)
  if (namespace.length === 0 && !mayBeEmpty) throw new InvalidNamespaceError('A namespace needs at least one label.')
  for (const label of namespace) {
    if (typeof label !== 'string' || label === '') throw new InvalidNamespaceError(`The labels of a namespace are texts that are not empty: ${shown}`)
    if (/[.:\0]/.test(label)) throw new InvalidNamespaceError(`A label of a namespace has no ".", ":" or NUL: ${shown}`)
  }
  if (namespace[0] === 'langgraph' && !mayBeReserved) throw new InvalidNamespaceError(`The first label "langgraph" is reserved: ${shown}`)
}

const comparisons: Readonly<Record<string, (found: unknown, wanted: unknown) => boolean>> = {
  $eq: (found, wanted) => found === wanted,
  $ne: (found, wanted) => found !== wanted,
  $gt: (found, wanted) => Number(found) > Number(wanted),
  $gte: (found, wanted) => Number(found) >= Number(wanted),
  $lt: (found, wanted) => Number(found) < Number(wanted),
  $lte: (found, wanted) => Number(found) <= Number(wanted),
  $in: (found, wanted) => Array.isArray(wanted) && wanted.includes(found),
  $nin: (found, wanted) => !Array.isArray(wanted) || !wanted.includes(found),
}

/** Whether every field of the filter holds: equal to a plain value, or all its operators true. */
export function fitsFilter(value: Readonly<Record<string, unknown>>, filter: Readonly<Record<string, unknown>> | undefined): boolean {
  return Object.entries(filter ?? {}).every(([field, wanted]) => {
    const found = value[field]
    const operators = typeof wanted === 'object' && wanted !== null ? Object.entries(wanted) : null
    if (operators === null || !operators.every(([name]) => Object.hasOwn(comparisons, name))) return found === wanted
    return operators.every(([name, operand]) => comparisons[name]?.(found, operand))
  })
}

/** A condition on namespaces; `*` stands for any label. */
export interface NamespaceCondition {
  readonly matchType: 'prefix' | 'suffix'
  readonly path: readonly string[]
}

/** Whether a namespace begins or ends as the condition says. */
export function fitsCondition(namespace: readonly string[], { matchType, path }: NamespaceCondition): boolean {
  if (path.length > namespace.length) return false
  const from = matchType === 'prefix' ? 0 : namespace.length - path.length
  return path.every((label, at) => label === '*' || label === namespace[from + at])
}
