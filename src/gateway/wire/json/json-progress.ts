const quote = 34
const backslash = 92

/** Tracks a JSON object that arrives in pieces, to see when it is complete. It reads each character once and does not check that the JSON is valid. */
export class JsonProgress {
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** `spoilt`: the text is not an object, or something else comes after the object. */
  #state: 'before' | 'inside' | 'whole' | 'spoilt' = 'before'

  /** True: the object has arrived up to its last brace. Nothing that comes after can belong to it. */
  get isWhole(): boolean {
    return this.#state === 'whole'
  }

  push(piece: string): void {
    for (let at = 0; at < piece.length && this.#state !== 'spoilt'; at++) this.#read(piece.charCodeAt(at))
  }

  #read(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === backslash) this.#isEscaped = true
      else if (code === quote) this.#isInString = false
      return
    }
    if (this.#state !== 'inside') {
      if (code === 32 || code === 10 || code === 13 || code === 9) return
      this.#state = this.#state === 'before' && code === 123 ? 'inside' : 'spoilt'
      this.#depth = 1
      return
    }
    if (code === quote) this.#isInString = true
    else if (code === 123 || code === 91) this.#depth++
    else if (code === 125 || code === 93) this.#depth--
    if (this.#depth === 0) this.#state = 'whole'
  }
}
