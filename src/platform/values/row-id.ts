/** Largest value that an `int` column takes. */
export const int4Max = 2 ** 31 - 1

/** The id in a path or body, or null when no row can have it: callers answer `not_found`, and the database never sees what it would refuse. */
export function rowId(given: string | number): number | null {
  const id = typeof given === 'number' ? given : /^[1-9]\d{0,9}$/.test(given) ? Number(given) : 0
  return Number.isInteger(id) && id >= 1 && id <= int4Max ? id : null
}
