/** A component that can have charges that are not in the database yet. A report that must be exact flushes the component first. */
export interface Flushable {
  /** Resolves when every charge that was settled before the call is in the database. Throws DatabaseUnavailableError. */
  flushNow(): Promise<void>
}
