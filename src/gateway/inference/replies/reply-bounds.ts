/** Bounds the part of a reply that is collected for a client of another format. The items of that format repeat their whole content at their end. */
import { isObject, objectsOf } from '../../../platform/values/json.ts'
import { refusedCode, type StreamFault } from '../../wire/chat/chat-stream.ts'

/** The most tool calls. */
const callsMax = 512
/** The most characters of all calls together: their arguments, names and ids as written in JSON. */
const callCharsMax = 4 * 1024 * 1024
/** The most blocks of signed thinking. */
const blocksMax = 4096
/** The most changes between thinking, text and calls. Each change begins a new item. */
const changesMax = 4096
/** The most characters of output as written in JSON. A model that writes a million tokens writes four million characters. */
const outputMaxChars = 32 * 1024 * 1024
/** The most characters of output, without calls, from an own server. The kept text is written four times at the end. */
const ownOutputMaxChars = 1024 * 1024

const itemNames = ['reasoning_content', 'content', 'refusal', 'tool_calls'] as const

/** The members of a delta that are kept, beside calls. */
const keptNames = ['reasoning_content', 'reasoning', 'content', 'refusal', 'thinking_blocks'] as const

/** Counts the parts of a stream that must be kept. */
export class ReplyBounds {
  /** The fault that names the bound which the stream exceeds. Null while the stream is within all bounds. */
  exceeded: StreamFault | null = null
  #callChars = 0
  #blocks = 0
  #changes = 0
  #last: string | null = null
  #writtenChars = 0
  readonly #outputMaxChars: number

  /** `isOwn` is true for an own server. */
  constructor(isOwn: boolean) {
    this.#outputMaxChars = isOwn ? ownOutputMaxChars : outputMaxChars
  }

  /** The memory of the calls, in bytes: the decoder and the writer both keep them until the stream ends. */
  get callRoomBytes(): number {
    return 2 * this.#callChars
  }

  /** Counts one delta in the hub format. The indexes of its calls begin at 0. */
  add(delta: unknown): void {
    if (!isObject(delta)) return
    const { tool_calls: calls, thinking_blocks: blocks } = delta
    for (const name of itemNames) if (delta[name] !== undefined && delta[name] !== null && delta[name] !== '') this.#change(name)
    for (const name of keptNames) this.#writtenChars += writtenChars(delta[name])
    if (calls !== undefined) for (const call of objectsOf(calls)) this.#addCall(call)
    if (Array.isArray(blocks)) this.#blocks += blocks.length
    if (this.#writtenChars > this.#outputMaxChars) this.#exceed(`${this.#outputMaxChars} characters`)
    if (this.#blocks > blocksMax) this.#exceed(`${blocksMax} blocks of thinking`)
  }

  /** True when a text of at most `bytes` after `outputChars` is within all bounds and begins no new item. */
  hasRoomForText(bytes: number, outputChars: number): boolean {
    return this.#last === 'content' && this.#writtenChars + bytes <= this.#outputMaxChars && outputChars + bytes <= this.#outputMaxChars + callCharsMax
  }

  /** Counts a text that needs no escapes, for which `hasRoomForText` was true. */
  addText(chars: number): void {
    this.#writtenChars += chars
  }

  /** The characters of output so far as written in JSON, without calls. */
  get writtenChars(): number {
    return this.#writtenChars
  }

  /** Checks the number of characters that the model has written so far, in text and in calls. */
  said(outputChars: number): void {
    if (outputChars > this.#outputMaxChars + callCharsMax) this.#exceed(`${this.#outputMaxChars} characters`)
  }

  #change(name: string): void {
    if (name !== this.#last) this.#changes++
    this.#last = name
    if (this.#changes > changesMax) this.#exceed(`${changesMax} changes between thinking and text`)
  }

  #addCall({ index, id, function: made }: Readonly<Record<string, unknown>>): void {
    if (typeof index === 'number' && index >= callsMax) this.#exceed(`${callsMax} tool calls`)
    const { name, arguments: args } = isObject(made) ? made : {}
    for (const text of [id, name, args]) {
      if (typeof text !== 'string') continue
      this.#callChars += writtenChars(text)
    }
    if (this.#callChars > callCharsMax) this.#exceed(`${callCharsMax} characters of tool calls`)
  }

  #exceed(what: string): void {
    const message = `The provider sent more than this gateway takes: over ${what} in one reply.`
    this.exceeded ??= { message, type: 'api_error', code: refusedCode }
  }
}

/** Matches the characters that JSON may escape. It also matches valid surrogate pairs, which JSON does not escape; that costs only a closer look. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const escaped = /["\\\u0000-\u001f\ud800-\udfff]/

/** Returns the number of characters of a value as JSON, without the quotes of a string. */
function writtenChars(value: unknown): number {
  if (typeof value === 'string') return escaped.test(value) ? JSON.stringify(value).length - 2 : value.length
  return typeof value === 'object' && value !== null ? JSON.stringify(value).length : 0
}
