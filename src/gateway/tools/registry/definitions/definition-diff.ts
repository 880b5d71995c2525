import { isObject } from '../../../../platform/values/json.ts'

/** A place at which two definitions differ. */
export interface Difference {
  /** JSON pointer. Empty for the whole definition. */
  readonly at: string
  readonly change: 'added' | 'removed' | 'changed'
  /** The approved value. Absent when the change is `added`. */
  readonly approved?: unknown
  /** The value that the server shows now. Absent when the change is `removed`. */
  readonly seen?: unknown
}

/** Maximum number of differences of one comparison. */
export const differencesMax = 200

/**
 * Returns where the definition that a server shows differs from the approved one, in the order of the members, at most 200 places. Members are compared by
 * name and elements of lists by position. Both definitions have a bounded depth.
 */
export function differencesOf(approved: unknown, seen: unknown, at = '', found: Difference[] = []): Difference[] {
  if (found.length >= differencesMax || Object.is(approved, seen)) return found
  const [before, after] = [membersOf(approved), membersOf(seen)]
  if (before === null || after === null || Array.isArray(approved) !== Array.isArray(seen)) {
    found.push({ at, change: 'changed', approved, seen })
    return found
  }
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const place = `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (found.length >= differencesMax) break
    if (!before.has(name)) found.push({ at: place, change: 'added', seen: after.get(name) })
    else if (!after.has(name)) found.push({ at: place, change: 'removed', approved: before.get(name) })
    else differencesOf(before.get(name), after.get(name), place, found)
  }
  return found
}

/** Returns the members of an object or the elements of a list. Null for other values. */
function membersOf(value: unknown): ReadonlyMap<string, unknown> | null {
  return Array.isArray(value) || isObject(value) ? new Map(Object.entries(value)) : null
}
