/** Returns a number with its noun: `1 endpoint`, `2 endpoints`. `many` is the plural of a noun that does not only take an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
