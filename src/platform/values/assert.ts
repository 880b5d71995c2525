/** Throws for a value that the types exclude. Use this function in the default branch of an exhaustive switch. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`)
}
