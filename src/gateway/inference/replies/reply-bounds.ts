/** How much of one reply is put together for a client of another format, whose items repeat at their end what they said. */
import { isObject, objectsOf } from '../../../platform/values/json.ts'
import { refusedCode, type StreamFault } from '../../wire/chat/chat-stream.ts'

/** Most tool calls. */
const callsMax = 512
/** Most characters of all calls together, as they are written in JSON: their arguments, names and ids. */
const callCharsMax = 4 * 1024 * 1024
/** Most blocks of signed thinking. */
const blocksMax = 4096
/** Most changes between thinking, text and calls: each begins an item of its own. */
const changesMax = 4096
/** Most characters of output, as they are written in JSON. A model that writes a million tokens writes four million. */
const outputMaxChars = 32 * 1024 * 1024
/** The same of a server that somebody has registered, without its calls. What is kept is written four times at the end. */
const ownOutputMaxChars = 1024 * 1024

const itemNames = ['reasoning_content', 'content', 'refusal', 'tool_calls'] as const

/** Members of a delta that are kept, beside calls. */
const keptNames = ['reasoning_content', 'reasoning', 'content', 'refusal', 'thinking_blocks'] as const

/** Counts what a stream sends that has to be kept. */
export class ReplyBounds {
  /** What the stream has too much of; null: nothing. */
  exceeded: StreamFault | null = null
  #callChars = 0
  #blocks = 0
  #changes = 0
  #last: string | null = null
  #writtenChars = 0
  readonly #outputMaxChars: number

  /** `isOwn`: of a server that somebody has registered. */
  constructor(isOwn: boolean) {
    this.#outputMaxChars = isOwn ? ownOutputMaxChars : outputMaxChars
  }

  /** One delta in the hub format, whose calls count from 0. */
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

  /** Characters of output so far, as they are written in JSON, without calls. */
  get writtenChars(): number {
    return this.#writtenChars
  }

  /** The model has said so much, in text and in calls. */
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

/** What JSON may write with more than one character. Both halves of a pair are here, which costs a closer look only. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const escaped = /["\\\u0000-\u001f\ud800-\udfff]/

/** Characters of a value as JSON, without the quotes of a text. */
function writtenChars(value: unknown): number {
  if (typeof value === 'string') return escaped.test(value) ? JSON.stringify(value).length - 2 : value.length
  return typeof value === 'object' && value !== null ? JSON.stringify(value).length : 0
}
