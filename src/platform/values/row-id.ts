/** Largest value of an `int` column. */
export const int4Max = 2 ** 31 - 1

/**
 * Returns the id in a path or body. Null when no row can have this id. Callers then reply `not_found`, so the database never gets a value that it would
 * refuse.
 */
export function rowId(given: string | number): number | null {
  const id = typeof given === 'number' ? given : /^[1-9]\d{0,9}$/.test(given) ? Number(given) : 0
  return Number.isInteger(id) && id >= 1 && id <= int4Max ? id : null
}
