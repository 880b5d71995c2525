/**
 * Recognises chunks that differ from an earlier chunk only in their text. Most chunks of a stream are of this kind, because a provider repeats the id, the
 * model and the other JSON for each piece of text. For them, two comparisons of bytes replace a scan.
 */
import { digitExtraBytes, isDigit } from '../output-chars.ts'
import { RepeatedEvents } from '../sse/repeated-events.ts'
import type { ChunkFacts } from './chat-chunk-scan.ts'

/** Learning stops when this number of learnt chunks in a row were not repeated, because some providers add something random to each chunk. */
const missesMax = 8

const quote = 34
const backslash = 92

/** The learnt chunk: the last scanned one, without its text. */
export class RepeatedChunk {
  /** The same chunk as a whole event, with its line and its blank line. */
  readonly events = new RepeatedEvents()
  /** null: that chunk cannot be repeated. */
  #before: Uint8Array | null = null
  #after: Uint8Array = noBytes
  #misses = 0

  /** Returns the bytes of the text of a chunk that repeats the learnt one, as they count. Returns -1 if it does not; the chunk must then be scanned. */
  textBytes(bytes: Uint8Array, start: number, end: number): number {
    const before = this.#before
    if (before === null) return -1
    const after = this.#after
    const to = end - after.length
    let at = start + before.length
    if (at > to || !isAt(bytes, start, before) || !isAt(bytes, to, after)) return -1
    // A text with an escape must be scanned, because the scan counts the encoded character.
    let digits = 0
    for (; at < to; at++) {
      const byte = bytes[at] as number
      if (byte === quote || byte === backslash) return -1
      digits += isDigit(byte)
    }
    this.#misses = 0
    return to - start - before.length + digits * digitExtraBytes
  }

  /** Notes that events were read as a whole. */
  repeats(): void {
    this.#misses = 0
  }

  /**
   * Learns a scanned chunk if it has exactly one text and no finish reason, usage, error or odd thinking. `line` is the offset at which its line begins, and
   * `start` that of its data.
   */
  learn(bytes: Uint8Array, line: number, start: number, end: number, facts: ChunkFacts): void {
    const { textFrom, textTo } = facts
    const isPlain =
      facts.texts === 1 &&
      textTo > textFrom &&
      facts.hasChoices &&
      !(facts.hasFinish || facts.hasOddThinking || facts.hasUsage || facts.hasError || facts.mayHaveFailedChoice)
    if (!isPlain || this.#misses >= missesMax || end - start > learntMaxBytes) {
      this.#before = null
      this.events.frame = null
      return
    }
    this.#misses++
    const before = copied(bytes, line, textFrom)
    const after = Buffer.allocUnsafe(end - textTo + blankLine.length)
    after.set(bytes.subarray(textTo, end))
    after.set(blankLine, end - textTo)
    this.#before = before.subarray(start - line)
    this.#after = after.subarray(0, end - textTo)
    this.events.frame = { before, after }
  }
}

/** A longer chunk is not learnt, because its bytes are kept as long as the stream lasts. */
const learntMaxBytes = 4096

const noBytes = new Uint8Array()
const blankLine = Buffer.from('\n\n')

const copied = (bytes: Uint8Array, from: number, to: number): Uint8Array => Uint8Array.prototype.slice.call(bytes, from, to)

function isAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word[index]) return false
  return true
}
