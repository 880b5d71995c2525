/** The pieces are joined whenever this many of them have arrived. */
const piecesMax = 4096

/** Text that comes in pieces. A text that grows by `+=` keeps an object for each piece until it is read. This class keeps few objects. */
export class GrowingText {
  length = 0
  #joined = ''
  #pieces: string[] = []

  append(piece: string): void {
    if (piece === '') return
    this.length += piece.length
    this.#pieces.push(piece)
    if (this.#pieces.length < piecesMax) return
    this.#joined += this.#pieces.join('')
    this.#pieces = []
  }

  /** Returns all of the text. The first reading after an `append` takes time in proportion to the length. */
  get text(): string {
    if (this.#pieces.length > 0) {
      this.#joined += this.#pieces.join('')
      this.#pieces = []
    }
    return this.#joined
  }

  /** Returns all of the text. The next piece starts a new text. */
  take(): string {
    const { text } = this
    this.#joined = ''
    this.length = 0
    return text
  }
}
