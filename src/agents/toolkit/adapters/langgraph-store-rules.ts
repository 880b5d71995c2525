/**
 * The rules of LangGraph's stores: which namespaces are valid, which items a filter finds, and which namespaces a condition matches. The functions
 * are pure.
 */

/** A namespace that a store does not accept. */
export class InvalidNamespaceError extends Error {
  override readonly name = 'InvalidNamespaceError'
}

/** Throws InvalidNamespaceError for an invalid namespace. `langgraph` as the first label is reserved and cannot be written to. */
export function checkNamespace(namespace: readonly string[], { mayBeEmpty = false, mayBeReserved = true } = {}): void {
  const shown = JSON.stringify(namespace)
  if (namespace.length === 0 && !mayBeEmpty) throw new InvalidNamespaceError('A namespace needs at least one label.')
  for (const label of namespace) {
    if (typeof label !== 'string' || label === '') throw new InvalidNamespaceError(`The labels of a namespace are texts that are not empty: ${shown}`)
    if (!isLabel(label)) throw new InvalidNamespaceError(`A label of a namespace has no ".", ":" or NUL: ${shown}`)
  }
  if (namespace[0] === 'langgraph' && !mayBeReserved) throw new InvalidNamespaceError(`The first label "langgraph" is reserved: ${shown}`)
}

/** Returns whether a text can be a label of a namespace. */
export function isLabel(text: string): boolean {
  return text !== '' && !/[.:\0]/.test(text)
}

const comparisons: Readonly<Record<string, (found: unknown, wanted: unknown) => boolean>> = {
  $eq: (found, wanted) => found === wanted,
  $ne: (found, wanted) => found !== wanted,
  $gt: (found, wanted) => numberOf(found) > numberOf(wanted),
  $gte: (found, wanted) => numberOf(found) >= numberOf(wanted),
  $lt: (found, wanted) => numberOf(found) < numberOf(wanted),
  $lte: (found, wanted) => numberOf(found) <= numberOf(wanted),
  $in: (found, wanted) => Array.isArray(wanted) && wanted.includes(found),
  $nin: (found, wanted) => !Array.isArray(wanted) || !wanted.includes(found),
}

/**
 * Converts a value to a number as LangGraph does for comparisons. Any writer can store an object with its own `valueOf`, and such an object is not a
 * number.
 */
function numberOf(value: unknown): number {
  try {
    return Number(value)
  } catch {
    return Number.NaN
  }
}

/** Returns whether every field of the filter holds. A field holds when it equals a plain value, or when all its operators are true. */
export function fitsFilter(value: Readonly<Record<string, unknown>>, filter: Readonly<Record<string, unknown>> | undefined): boolean {
  return Object.entries(filter ?? {}).every(([field, wanted]) => {
    const found = Object.hasOwn(value, field) ? value[field] : undefined
    const operators = typeof wanted === 'object' && wanted !== null ? Object.entries(wanted) : null
    if (operators === null || !operators.every(([name]) => Object.hasOwn(comparisons, name))) return found === wanted
    return operators.every(([name, operand]) => comparisons[name]?.(found, operand))
  })
}

/** A condition on namespaces. `*` matches any label. */
export interface NamespaceCondition {
  readonly matchType: 'prefix' | 'suffix'
  readonly path: readonly string[]
}

/** Returns whether a namespace begins or ends with the path of the condition. */
export function fitsCondition(namespace: readonly string[], { matchType, path }: NamespaceCondition): boolean {
  if (path.length > namespace.length) return false
  const from = matchType === 'prefix' ? 0 : namespace.length - path.length
  return path.every((label, at) => label === '*' || label === namespace[from + at])
}
