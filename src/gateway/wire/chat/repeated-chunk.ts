/**
 * Recognises chunks that differ from an earlier chunk only in their text. Most chunks of a stream are of this kind, because a provider repeats the id, the
 * model and the other JSON for each piece of text. For them, two comparisons of bytes replace a scan.
 */
import type { ChunkFacts } from './chat-chunk-scan.ts'

/** Learning stops when this number of learnt chunks in a row were not repeated, because some providers add something random to each chunk. */
const missesMax = 8

const quote = 34
const backslash = 92

/** The learnt chunk: the last scanned one, without its text. */
export class RepeatedChunk {
  /** The bytes before the text of the learnt chunk. null: no chunk is learnt. */
  #before: Uint8Array | null = null
  #after: Uint8Array = noBytes
  #misses = 0

  /** Returns the number of UTF-8 bytes of the text, if the chunk repeats the learnt one. Otherwise returns -1, and the chunk must be scanned. */
  textBytes(bytes: Uint8Array, start: number, end: number): number {
    const before = this.#before
    if (before === null) return -1
    const after = this.#after
    const to = end - after.length
    let at = start + before.length
    if (at > to || !isAt(bytes, start, before) || !isAt(bytes, to, after)) return -1
    // A text with an escape must be scanned, because the scan counts the encoded character.
    for (; at < to; at++) if (bytes[at] === quote || bytes[at] === backslash) return -1
    this.#misses = 0
    return to - start - before.length
  }

  /** Learns a scanned chunk if it has exactly one text and no finish reason, usage, error or odd thinking. */
  learn(bytes: Uint8Array, start: number, end: number, facts: ChunkFacts): void {
    const { textFrom, textTo } = facts
    const isPlain =
      facts.texts === 1 &&
      textTo > textFrom &&
      facts.hasChoices &&
      !(facts.hasFinish || facts.hasOddThinking || facts.hasUsage || facts.hasError || facts.mayHaveFailedChoice)
    if (!isPlain || this.#misses >= missesMax || end - start > learntMaxBytes) {
      this.#before = null
      return
    }
    this.#misses++
    this.#before = copied(bytes, start, textFrom)
    this.#after = copied(bytes, textTo, end)
  }
}

/** A longer chunk is not learnt, because its bytes are kept as long as the stream lasts. */
const learntMaxBytes = 4096

const noBytes = new Uint8Array()

const copied = (bytes: Uint8Array, from: number, to: number): Uint8Array => Uint8Array.prototype.slice.call(bytes, from, to)

function isAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word[index]) return false
  return true
}
