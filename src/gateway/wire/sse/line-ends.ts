const lf = 10
const cr = 13

/**
 * Writes LF for every line end of an event stream, over any chunking. The format ends a line in LF, CRLF or a lone CR, and the line scanner
 * knows the first two only. A chunk without a lone CR passes as the very same bytes.
 */
export class LineEnds {
  /** A CR ended the chunk before: an LF that follows belongs to it. */
  #endsInCr = false

  /** The chunk with LF for every line end. It is empty when the chunk was the second half of a CRLF. */
  read(chunk: Uint8Array): Uint8Array {
    return this.#endsInCr || hasLoneCr(chunk) ? this.#withLf(chunk) : chunk
  }

  #withLf(chunk: Uint8Array): Buffer {
    const out = Buffer.allocUnsafe(chunk.length)
    let length = 0
    for (const byte of chunk) {
      if (!(byte === lf && this.#endsInCr)) out[length++] = byte === cr ? lf : byte
      this.#endsInCr = byte === cr
    }
    return out.subarray(0, length)
  }
}

/** True for a CR that is no part of a CRLF, and for one at the end, of which nobody knows yet. */
function hasLoneCr(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(cr); at !== -1; at = bytes.indexOf(cr, at + 1)) if (bytes[at + 1] !== lf) return true
  return false
}
