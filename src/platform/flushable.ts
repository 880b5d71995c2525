/** A component with charges that are not in the database yet. A report that must be exact flushes it first. */
export interface Flushable {
  /** Resolves when every charge that was settled before the call is in the database. Throws DatabaseUnavailableError. */
  flushNow(): Promise<void>
}
