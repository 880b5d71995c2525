import { closestMatch } from 'leven'

/** A longer text is no slip of the keyboard, and comparing it with many names would take long. */
const wrongMaxChars = 64
const changesMax = 3
/** One wrong character of this many is still the same name. */
const charsOfChange = 3

/**
 * Returns the known name that a person may have meant by a wrong one: it differs in at most three characters, and in about a third of them at most. Upper and lower
 * case are the same. Returns null when no name is that near.
 */
export function nearest(wrong: string, known: Iterable<string>): string | null {
  if (wrong.length > wrongMaxChars) return null
  const names = new Map([...known].map(name => [name.toLowerCase(), name]))
  const maxDistance = Math.min(changesMax, Math.ceil(wrong.length / charsOfChange))
  const found = closestMatch(wrong.toLowerCase(), [...names.keys()], { maxDistance })
  return found === undefined ? null : (names.get(found) ?? null)
}
