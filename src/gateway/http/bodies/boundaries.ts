/**
 * The boundary of a form, from its content-type; null: it has none. RFC 2046 allows 70 characters at most, and neither quotes nor backslashes.
 */
export function boundaryOf(contentType: string): string | null {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70})(?=$|[\s;]))/i.exec(contentType) ?? []
  return quoted ?? bare ?? null
}

const noBytes = Buffer.alloc(0)

/** Counts how often a boundary comes in a form that arrives in pieces. Decision 0469 says why. */
export class BoundaryCount {
  readonly #line: Buffer
  #count = 0
  /** The end of what has come, one byte shorter than the line of the boundary. */
  #tail: Buffer = noBytes

  constructor(boundary: string) {
    this.#line = Buffer.from(`--${boundary}`, 'latin1')
  }

  /** One more piece; returns the count so far. */
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
