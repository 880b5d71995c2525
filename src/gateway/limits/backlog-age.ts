/**
 * How long what stands in the journal has been waiting for the database, without a note of each record: exact to the time between two
 * flushes. A flusher that is behind all the time shows how far, although each of its flushes succeeds.
 */
export class BacklogAge {
  /** When the oldest record that waits came, or the flush before it; null: nothing waits. */
  #sinceMs: number | null = null
  /** Ends of the journal at earlier flushes: what stands behind one of them came after its time. */
  #marks: { readonly offset: number; readonly atMs: number }[] = []

  /** Something was written. Asks the time only when nothing was waiting. */
  appended(nowMs: () => number): void {
    this.#sinceMs ??= nowMs()
  }

  /** Everything before `offset` is in the database; the journal ends at `endOffset`. */
  flushed(offset: number, endOffset: number, nowMs: number): void {
    if (offset >= endOffset) {
      this.clear()
      return
    }
    while ((this.#marks[0]?.offset ?? Number.POSITIVE_INFINITY) <= offset) this.#sinceMs = this.#marks.shift()?.atMs ?? null
    this.#marks.push({ offset: endOffset, atMs: nowMs })
  }

  /** Nothing waits any more. */
  clear(): void {
    this.#sinceMs = null
    this.#marks = []
  }

  /** In milliseconds; 0: nothing waits. */
  at(nowMs: number): number {
    return this.#sinceMs === null ? 0 : nowMs - this.#sinceMs
  }
}
