/** Returns the boundary of a form from its content-type, or null when there is none. RFC 2046 allows at most 70 characters, without quotes and backslashes. */
export function boundaryOf(contentType: string): string | null {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70})(?=$|[\s;]))/i.exec(contentType) ?? []
  return quoted ?? bare ?? null
}

const noBytes = Buffer.alloc(0)

/**
 * Counts the boundaries of a form that arrives in pieces. A boundary at the very beginning of the form is not counted. The same text in the middle of a
 * line is not a boundary and is not counted either. Decision 0469 says why.
 */
export class BoundaryCount {
  readonly #line: Buffer
  #count = 0
  /** The last bytes that have arrived: one byte fewer than the boundary line that is searched for. */
  #tail: Buffer = noBytes

  constructor(boundary: string) {
    this.#line = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  /** Adds a piece and returns the count so far. */
  add(bytes: Buffer): number {
    const most = this.#line.length - 1
    const seam = Buffer.concat([this.#tail, bytes.subarray(0, most)])
    this.#countIn(seam)
    this.#countIn(bytes)
    this.#tail = bytes.length >= most ? Buffer.from(bytes.subarray(bytes.length - most)) : seam.subarray(Math.max(0, seam.length - most))
    return this.#count
  }

  #countIn(bytes: Buffer): void {
    for (let at = bytes.indexOf(this.#line); at !== -1; at = bytes.indexOf(this.#line, at + this.#line.length)) this.#count++
  }
}
