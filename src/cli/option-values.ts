import { InvalidArgumentError } from 'commander'

/** A number, as options take it. */
export function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It must be a number.')
  return value
}

/** A whole number of at least 1. */
export function count(text: string): number {
  const value = number(text)
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return value
}

/** Rupees a month, more than 0: for some people 0 means "nothing more", for others "no limit". */
export function budget(text: string): number {
  const value = number(text)
  if (value <= 0)
    throw new InvalidArgumentError(
      'It must be more than 0. `brigade agent budget <agent> --clear` lifts a budget, `brigade agent pause <agent>` stops an agent.',
    )
  return value
}

/** Rupees, at least 0. */
export function amount(text: string): number {
  const value = number(text)
  if (value < 0) throw new InvalidArgumentError('It must be 0 or more.')
  return value
}

/** Ids with commas between. */
export function list(text: string): string[] {
  const ids = text
    .split(',')
    .map(id => id.trim())
    .filter(id => id !== '')
  if (ids.length === 0) throw new InvalidArgumentError('It must name at least one.')
  return ids
}

/** The word `none`, which lifts a rule, beside what `value` takes. */
export function orNone<T>(value: (text: string) => T): (text: string) => T | 'none' {
  return text => (text.trim() === 'none' ? 'none' : value(text))
}
