import { isObject, parsedObject } from '../../../platform/values/json.ts'
import { isBoundedJson } from '../json/json-bounds.ts'
import type { RepeatedEvents } from '../sse/repeated-events.ts'
import { type LineSink, SseLineScanner } from '../sse/sse-lines.ts'
import { type TokenUsage, usageFromOpenAi } from '../usage.ts'
import { errorOfChoices } from './chat-choice-error.ts'
import { noFacts, scanChunkJson } from './chat-chunk-scan.ts'
import { RepeatedChunk } from './repeated-chunk.ts'

/** Describes a chunk that contains usage. */
export interface UsageChunk {
  /** True: this usage may be the final one, because the chunk comes after the answer or has the finish reason. */
  readonly isLast: boolean
  /** True: the chunk has no choices. */
  readonly isUsageOnly: boolean
  /** True: the usage is at the top level and has no bill yet, so a bill can be added to it. */
  readonly takesBill: boolean
}

/** The kind of a line in a chat stream. */
export type ChatLine =
  /** The end of an event. */
  | 'blank'
  /** A comment, or a field without meaning here. */
  | 'other'
  | 'chunk'
  /** A chunk with a plausible usage block. */
  | 'usage'
  | 'done'

/**
 * Reads an OpenAI chat stream while its bytes pass. Only a chunk with a usage block is parsed. In other chunks, a scan over the bytes counts the output.
 * The result does not depend on how the bytes are divided into chunks.
 */
export class ChatStreamTap implements LineSink {
  usage: TokenUsage | null = null
  outputChars = 0
  /** The value of `outputChars` when the provider reported the usage. That usage does not include later output. */
  usageChars = 0
  /** The model name in the last chunk that has one. */
  model: string | null = null
  /** True: a chunk with a choice or with usage has passed. Comments, empty events, errors and the end mark do not count. */
  begun = false
  finished = false
  failed = false
  /** The event that reports the provider's failure, unchanged. */
  fault: string | null = null
  /** The error of the choice that failed. Clients do not recognise a chunk with a failed choice as an error. null: no choice failed. */
  choiceError: unknown = null
  /** True: a choice has given its finish reason. */
  hasFinishReason = false
  /** True: the last chunk may have thinking in a member other than `reasoning_content`. */
  hasOddThinking = false
  /** The facts about the last chunk with usage. The chunk itself is not kept, because it may contain anything. */
  usageChunk: UsageChunk | null = null
  readonly events = 0
  /** The number of lines with data so far. */
  dataLines = 0
  wholeBytes = 0
  readonly #lines = new SseLineScanner(this)
  readonly #facts = noFacts()
  readonly #repeated = new RepeatedChunk()
  #doneSeen = false
  #isFirstLine = true
  #modelBytes: Uint8Array = noBytes

  get atBoundary(): boolean {
    return this.#lines.atBoundary
  }

  get heldBytes(): number {
    return this.#lines.heldBytes
  }

  get over(): boolean {
    return this.finished
  }

  push(chunk: Uint8Array): void {
    this.wholeBytes = 0
    if (!this.finished) this.#lines.push(chunk)
  }

  /** Reads one line, for callers that split the stream into lines themselves. Returns the kind of the line. */
  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): ChatLine {
    if (this.finished) return 'other'
    if (start === end) {
      this.wholeBytes = nextInChunk
      if (this.#doneSeen) this.finished = true
      return 'blank'
    }
    if (this.#doneSeen) return 'other'
    const from = this.#isFirstLine && isAt(bytes, start, end, byteOrderMark) ? start + byteOrderMark.length : start
    this.#isFirstLine = false
    if (isAt(bytes, from, end, dataName)) return this.#data(bytes, from, skipSpaces(bytes, from + dataName.length, end), end)
    if (isAt(bytes, from, end, eventName) && isWord(bytes, skipSpaces(bytes, from + eventName.length, end), end, errorWord)) this.failed = true
    return 'other'
  }

  #data(bytes: Uint8Array, line: number, start: number, end: number): ChatLine {
    this.dataLines++
    // The clients of OpenAI take any data that begins with the mark as the end.
    if (isAt(bytes, start, end, doneWord)) {
      this.#doneSeen = true
      return 'done'
    }
    const repeatedBytes = this.#repeated.textBytes(bytes, start, end)
    if (repeatedBytes !== -1) {
      this.outputChars += repeatedBytes
      this.hasOddThinking = false
      if (this.failed) this.fault ??= textOf(bytes, start, Math.min(end, start + faultMaxBytes))
      return 'chunk'
    }
    const facts = this.#facts
    scanChunkJson(bytes, start, end, facts)
    this.#repeated.learn(bytes, line, start, end, facts)
    if (facts.mayHaveFailedChoice && !facts.hasError && this.#failsByChoice(bytes, start, end)) return 'chunk'
    this.outputChars += facts.outputChars
    this.hasOddThinking = facts.hasOddThinking
    if (facts.modelTo > 0 && !isText(bytes, facts.modelFrom, facts.modelTo, this.#modelBytes)) this.#named(bytes, facts.modelFrom, facts.modelTo)
    if (facts.hasFinish) this.hasFinishReason = true
    if (facts.hasError) this.failed = true
    if (this.failed) this.fault ??= textOf(bytes, start, Math.min(end, start + faultMaxBytes))
    else if (facts.hasChoices) this.begun = true
    return facts.hasUsage && this.#readUsage(bytes, start, end) ? 'usage' : 'chunk'
  }

  /** The events that can be read as a whole. */
  get repeated(): RepeatedEvents {
    return this.#repeated.events
  }

  /**
   * Reads the whole events at `at` that repeat an earlier chunk but for its text, as `line` would read their lines. Returns the offset after them. It is called
   * between two events.
   */
  readRepeated(bytes: Uint8Array, at: number): number {
    const { events } = this.#repeated
    if (this.failed || this.#doneSeen) return at
    const end = events.read(bytes, at, false)
    if (end === at) return at
    this.dataLines += events.count
    this.outputChars += events.spokenBytes
    this.hasOddThinking = false
    this.#repeated.repeats()
    return end
  }

  /** Whether a choice of the chunk says that it failed. The rest of such a chunk is not read. */
  #failsByChoice(bytes: Uint8Array, start: number, end: number): boolean {
    const chunk = isBoundedJson(bytes, start, end) ? parsedObject(textOf(bytes, start, end)) : null
    const error = chunk === null ? null : errorOfChoices(chunk['choices'])
    if (error === null) return false
    this.failed = true
    this.choiceError = error
    this.fault ??= JSON.stringify({ error }).slice(0, faultMaxBytes)
    return true
  }

  #readUsage(bytes: Uint8Array, start: number, end: number): boolean {
    const chunk = isBoundedJson(bytes, start, end) ? parsedObject(textOf(bytes, start, end)) : null
    const usage = chunk === null ? null : usageOfChunk(chunk)
    if (chunk === null || usage === null) return false
    this.usage = usage
    this.usageChars = this.outputChars
    this.usageChunk = { isLast: isLast(chunk), isUsageOnly: isUsageOnly(chunk), takesBill: isObject(chunk['usage']) && !('x_br' in chunk) }
    if (!this.failed) this.begun = true
    return true
  }

  /** Is called for the first model name of the stream and for each change of it. */
  #named(bytes: Uint8Array, from: number, to: number): void {
    if (to - from > modelMaxBytes) return
    this.#modelBytes = Uint8Array.prototype.slice.call(bytes, from, to)
    this.model = textOf(bytes, from, to)
  }
}

const noBytes = new Uint8Array()
/** The longest name of a model that is read. */
const modelMaxBytes = 200

/** Only this part of a longer error is passed on. */
const faultMaxBytes = 4096

const dataName = Buffer.from('data:')
const eventName = Buffer.from('event:')
const doneWord = Buffer.from('[DONE]')
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const errorWord = Buffer.from('error')

function isAt(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  if (end - start < word.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[start + index] !== word[index]) return false
  return true
}

function isText(bytes: Uint8Array, from: number, to: number, text: Uint8Array): boolean {
  return to - from === text.length && isAt(bytes, from, to, text)
}

/** True if the bytes are the word, with nothing but spaces after it. */
function isWord(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  return isAt(bytes, start, end, word) && skipSpaces(bytes, start + word.length, end) === end
}

function skipSpaces(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && bytes[at] === 32) at++
  return at
}

const textOf = (bytes: Uint8Array, start: number, end: number): string => Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')

function isLast({ choices, error }: Readonly<Record<string, unknown>>): boolean {
  if (error !== undefined && error !== null) return false
  return !Array.isArray(choices) || choices.length === 0 || choices.some((choice: unknown) => isObject(choice) && typeof choice['finish_reason'] === 'string')
}

const isUsageOnly = ({ choices }: Readonly<Record<string, unknown>>): boolean => !Array.isArray(choices) || choices.length === 0

/**
 * Returns the usage of a chunk. It is normally at the top level, but some providers put it under `x_groq` or into the first choice. The caller keeps the last
 * usage of a stream.
 */
function usageOfChunk(chunk: Readonly<Record<string, unknown>>): TokenUsage | null {
  const choices = chunk['choices']
  const places: readonly unknown[] = [chunk, chunk['x_groq'], Array.isArray(choices) ? choices[0] : undefined]
  for (const place of places) {
    const usage = isObject(place) ? usageFromOpenAi(place['usage']) : null
    if (usage !== null) return usage
  }
  return null
}
