const lf = 10
const cr = 13

/**
 * Converts every line end of an event stream to LF. Line ends may be divided between chunks. The format ends a line with LF, CRLF or a lone CR, but the
 * line scanner knows only the first two. A chunk without a lone CR is returned as the same bytes.
 */
export class LineEnds {
  /** True: the previous chunk ended with a CR. If an LF comes next, it belongs to that CR. */
  #endsInCr = false

  /** True when an LF at the begin of the next chunk would belong to the end of this one. */
  get isOpen(): boolean {
    return this.#endsInCr
  }

  /** Returns the chunk with LF for every line end. The result is empty if the chunk was only the second half of a CRLF. */
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

/** True for a CR that is not part of a CRLF, and for a CR at the end, because the next byte is not known yet. */
function hasLoneCr(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(cr); at !== -1; at = bytes.indexOf(cr, at + 1)) if (bytes[at + 1] !== lf) return true
  return false
}
