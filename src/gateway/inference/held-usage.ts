/** Most lines, and bytes of lines, that are kept behind usage that waits; more of them are comments, which say nothing. */
const tailMaxLines = 1000
const tailMaxBytes = 64 * 1024

/** A line with usage that waits for the next one: only the last of them gets the bill. */
export class HeldUsage {
  readonly line: Buffer
  /** A bill can be put at the end of its object. */
  readonly takesBill: boolean
  /** What came behind it: the end of its event, comments. */
  readonly tail: Buffer[] = []
  /** The event of the last line that was kept has ended. */
  isClosed = false
  #tailBytes = 0
  /** The line before was left out, and so is the end of its event. */
  #leavesOut = false

  constructor(line: Buffer, takesBill: boolean) {
    this.line = line
    this.takesBill = takesBill
  }

  /** Keeps a line of that length, which `copy` gives, when there is room for it. The end of an event that is open is kept always. */
  hold(length: number, isBlank: boolean, copy: () => Buffer): void {
    const fits = this.tail.length < tailMaxLines && this.#tailBytes + length <= tailMaxBytes && !(isBlank && this.#leavesOut)
    this.#leavesOut = !fits && !isBlank
    if (!fits && (!isBlank || this.isClosed)) return
    this.tail.push(copy())
    this.#tailBytes += length
    this.isClosed = isBlank
  }
}
