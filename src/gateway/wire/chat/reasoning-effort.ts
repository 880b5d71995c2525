import { fail } from '../../../platform/errors.ts'

/** All levels of `reasoning_effort` that models know, from none to the most. */
export const effortLevels = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
const ordered: readonly unknown[] = effortLevels

/** Checks the effort of a request. `name` is the field in the error. Absent and null are allowed. Throws `bad_request` that lists the levels. */
export function checkEffort(effort: unknown, name = 'reasoning_effort'): void {
  if (effort === undefined || effort === null || placeOf(effort) !== -1) return
  throw fail('bad_request', {
    message: `"${name}" must be one of ${effortLevels.join(', ')}. A model that knows fewer levels gets the nearest that it knows.`,
  })
}

/** Returns the nearest level among `known`. Of two equally near levels it returns the higher one. If `known` has no level, the effort is returned unchanged. */
export function nearestEffort(effort: string, known: readonly string[]): string {
  if (known.length === 0 || known.includes(effort)) return effort
  const wanted = placeOf(effort)
  let nearest = effort
  let least = Number.POSITIVE_INFINITY
  for (const level of [...known].sort((a, b) => placeOf(b) - placeOf(a))) {
    const distance = Math.abs(placeOf(level) - wanted)
    if (placeOf(level) === -1 || distance >= least) continue
    nearest = level
    least = distance
  }
  return nearest
}

function placeOf(level: unknown): number {
  return ordered.indexOf(level)
}
