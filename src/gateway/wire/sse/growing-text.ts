/** Pieces that are joined when a number of them has arrived. */
const piecesMax = 4096

/** Text that comes in pieces. A text that grows by `+=` keeps an object for each piece until it is read; this keeps few. */
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

  /** All of it. Reading it takes time by its length, once for each reading after an `append`. */
  get text(): string {
    if (this.#pieces.length > 0) {
      this.#joined += this.#pieces.join('')
      this.#pieces = []
    }
    return this.#joined
  }

  /** All of it; the next piece starts a new one. */
  take(): string {
    const { text } = this
    this.#joined = ''
    this.length = 0
    return text
  }
}
