import { isObject } from '../../platform/json.ts'
import { type ChunkFacts, scanChunkJson } from './chat-chunk-scan.ts'
import { type LineSink, SseLineScanner } from './sse-lines.ts'
import { type TokenUsage, usageFromOpenAi } from './usage.ts'

/** What a line of a chat stream is. */
export type ChatLine =
  /** The end of an event. */
  | 'blank'
  /** A comment or a field that carries nothing. */
  | 'other'
  | 'chunk'
  /** A chunk with a believable usage block. */
  | 'usage'
  | 'done'

/**
 * Reads an OpenAI chat stream while its bytes go by. Only a chunk that carries a usage block is parsed; of the others a scan over the
 * bytes counts the output. Any chunking of the same bytes gives the same result.
 */
export class ChatStreamTap implements LineSink {
  usage: TokenUsage | null = null
  outputChars = 0
  finished = false
  failed = false
  /** The chunk that carried the last usage. */
  usageChunk: Readonly<Record<string, unknown>> | null = null
  readonly events = 0
  wholeBytes = 0
  readonly #lines = new SseLineScanner(this)
  readonly #facts: ChunkFacts = { outputChars: 0, hasUsage: false, hasError: false }
  #doneSeen = false

  get atBoundary(): boolean {
    return this.#lines.atBoundary
  }

  push(chunk: Uint8Array): void {
    this.wholeBytes = 0
    this.#lines.push(chunk)
  }

  /** One line, for those who cut the stream into lines themselves: says what it is. */
  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): ChatLine {
    if (start === end) {
      this.wholeBytes = nextInChunk
      if (this.#doneSeen) this.finished = true
      return 'blank'
    }
    if (isAt(bytes, start, end, dataName)) return this.#data(bytes, skipSpaces(bytes, start + dataName.length, end), end)
    if (isAt(bytes, start, end, eventName) && isWord(bytes, skipSpaces(bytes, start + eventName.length, end), end, errorWord)) this.failed = true
    return 'other'
  }

  #data(bytes: Uint8Array, start: number, end: number): ChatLine {
    if (isWord(bytes, start, end, doneWord)) {
      this.#doneSeen = true
      return 'done'
    }
    const facts = this.#facts
    scanChunkJson(bytes, start, end, facts)
    this.outputChars += facts.outputChars
    if (facts.hasError) this.failed = true
    return facts.hasUsage && this.#readUsage(bytes, start, end) ? 'usage' : 'chunk'
  }

  #readUsage(bytes: Uint8Array, start: number, end: number): boolean {
    const chunk = chunkOf(bytes, start, end)
    const usage = chunk === null ? null : usageOfChunk(chunk)
    if (usage === null) return false
    this.usage = usage
    this.usageChunk = chunk
    return true
  }
}

const dataName = Buffer.from('data:')
const eventName = Buffer.from('event:')
const doneWord = Buffer.from('[DONE]')
const errorWord = Buffer.from('error')

function isAt(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  if (end - start < word.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[start + index] !== word[index]) return false
  return true
}

/** The word and nothing but spaces behind it. */
function isWord(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  return isAt(bytes, start, end, word) && skipSpaces(bytes, start + word.length, end) === end
}

function skipSpaces(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && bytes[at] === 32) at++
  return at
}

function chunkOf(bytes: Uint8Array, start: number, end: number): Record<string, unknown> | null {
  try {
    const chunk: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8'))
    return isObject(chunk) ? chunk : null
  } catch {
    return null
  }
}

/** Usage stands at the top; some providers put it under `x_groq` or in the first choice instead. The last one seen counts. */
function usageOfChunk(chunk: Readonly<Record<string, unknown>>): TokenUsage | null {
  const choices = chunk['choices']
  const places: readonly unknown[] = [chunk, chunk['x_groq'], Array.isArray(choices) ? choices[0] : undefined]
  for (const place of places) {
    const usage = isObject(place) ? usageFromOpenAi(place['usage']) : null
    if (usage !== null) return usage
  }
  return null
}
