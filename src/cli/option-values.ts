import { InvalidArgumentError } from 'commander'

/** Returns the number in the text of an option. Throws InvalidArgumentError. */
export function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It must be a number.')
  return value
}

/** Returns a whole number of at least 1. Throws InvalidArgumentError. */
export function count(text: string): number {
  const value = number(text)
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return value
}

/** Returns rupees per month, more than 0. It refuses 0, because some people mean "nothing more" by it and others mean "no limit". */
export function budget(text: string): number {
  const value = number(text)
  if (value <= 0)
    throw new InvalidArgumentError(
      'It must be more than 0. `brigade agent budget <agent> --clear` lifts a budget, `brigade agent pause <agent>` stops an agent.',
    )
  return value
}

/** Returns rupees, at least 0. Throws InvalidArgumentError. */
export function amount(text: string): number {
  const value = number(text)
  if (value < 0) throw new InvalidArgumentError('It must be 0 or more.')
  return value
}

/** Returns the ids in a comma-separated text. */
export function list(text: string): string[] {
  const ids = text
    .split(',')
    .map(id => id.trim())
    .filter(id => id !== '')
  if (ids.length === 0) throw new InvalidArgumentError('It must name at least one.')
  return ids
}

/** Returns a reader for an option. It accepts the texts that `value` accepts, and the word `none`, which removes a rule. */
export function orNone<T>(value: (text: string) => T): (text: string) => T | 'none' {
  return text => (text.trim() === 'none' ? 'none' : value(text))
}
