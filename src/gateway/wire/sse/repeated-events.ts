/**
 * Finds events of a stream that differ from a known one only in one text. Their frame is compared byte by byte, and nothing of them is split into lines, decoded
 * or parsed. Decision 0537 says why.
 */
import { isUtf8 } from 'node:buffer'
import { digitExtraBytes, isDigit } from '../output-chars.ts'

const quote = 34
const backslash = 92
const space = 32

/** The bytes of an event before and after its text. They contain the whole lines and the blank line. */
export interface EventFrame {
  readonly before: Uint8Array
  readonly after: Uint8Array
}

/** A known event without its text, and the texts of the last read. */
export class RepeatedEvents {
  /** The number of the events that the last `read` has found. */
  count = 0
  /** The UTF-8 bytes of their texts. */
  textBytes = 0
  /** The bytes of their texts as output counts them: a digit counts as a token. */
  spokenBytes = 0
  /** The characters of their texts, as strings count them. */
  textChars = 0
  #frame: EventFrame | null = null
  #before: Word = noWord
  #after: Word = noWord
  /** The begin and the end of each text. */
  readonly #ranges: number[] = []

  /** The known event. Null when none is known. */
  get frame(): EventFrame | null {
    return this.#frame
  }

  set frame(frame: EventFrame | null) {
    this.#frame = frame
    this.#before = frame === null ? noWord : wordOf(frame.before)
    this.#after = frame === null ? noWord : wordOf(frame.after)
  }

  /**
   * Reads the events at `at` that repeat the known one. Returns the offset after them; the next event is another one, or it is not complete. A text with an
   * escape or a control character is another event. When the texts are written again (`isWritten`), so is one that is empty or not UTF-8.
   */
  read(bytes: Uint8Array, at: number, isWritten: boolean): number {
    this.count = this.textBytes = this.spokenBytes = this.textChars = 0
    if (this.#frame === null) return at
    const before = this.#before
    const after = this.#after
    const ranges = this.#ranges
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const last = bytes.length - after.bytes.length
    let end = at
    for (;;) {
      const from = end + before.bytes.length
      if (from > last || !isAt(view, end, before)) return end
      let to = from
      let chars = 0
      let digits = 0
      for (; to < last; to++) {
        const byte = bytes[to] as number
        if (byte < space || byte === quote || byte === backslash) break
        if (byte < 0x80) {
          chars++
          digits += isDigit(byte)
        } else if (byte >= 0xc0) chars += byte >= 0xf0 ? 2 : 1
      }
      if (!isAt(view, to, after) || (isWritten && !isText(bytes, from, to, chars))) return end
      ranges[2 * this.count] = from
      ranges[2 * this.count + 1] = to
      this.count++
      this.textBytes += to - from
      this.spokenBytes += to - from + digits * digitExtraBytes
      this.textChars += chars
      end = to + after.bytes.length
    }
  }

  /** Returns the events of the last `read` of the same bytes in another frame. */
  written(bytes: Uint8Array, { before, after }: EventFrame): Buffer {
    const { count } = this
    const ranges = this.#ranges
    const made = Buffer.allocUnsafe(count * (before.length + after.length) + this.textBytes)
    let at = 0
    for (let index = 0; index < count; index++) {
      made.set(before, at)
      at += before.length
      const to = ranges[2 * index + 1] as number
      for (let from = ranges[2 * index] as number; from < to; from++) made[at++] = bytes[from] as number
      made.set(after, at)
      at += after.length
    }
    return made
  }
}

/** True for a text that is not empty and is UTF-8. One without other characters than ASCII needs no look. */
const isText = (bytes: Uint8Array, from: number, to: number, chars: number): boolean => to > from && (chars === to - from || isUtf8(bytes.subarray(from, to)))

/** Bytes that are compared four at a time, which takes a third of the time. */
interface Word {
  readonly bytes: Uint8Array
  readonly fours: Int32Array
}

const noWord: Word = { bytes: new Uint8Array(), fours: new Int32Array() }

function wordOf(bytes: Uint8Array): Word {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return { bytes, fours: Int32Array.from({ length: bytes.length >> 2 }, (_, index) => view.getInt32(4 * index)) }
}

/** True when the word is at `at`, where there is room for it. */
function isAt(view: DataView, at: number, { bytes, fours }: Word): boolean {
  for (let index = 0; index < fours.length; index++) if (view.getInt32(at + 4 * index) !== fours[index]) return false
  for (let index = 4 * fours.length; index < bytes.length; index++) if (view.getUint8(at + index) !== bytes[index]) return false
  return true
}
