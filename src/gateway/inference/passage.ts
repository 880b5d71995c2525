/** What stands between the bytes of a provider's stream and the bytes of the client's. */
import { isObject } from '../../platform/json.ts'
import type { StreamTap } from '../providers/dialect.ts'
import type { ChatStreamDecoder, ChatStreamEvent, StreamFault } from '../wire/chat-stream.ts'
import type { Bill, ClientFormat, ReplyContext, StreamWriter } from '../wire/client-format.ts'
import { estimateTokens, type TokenUsage, usageFromOpenAi } from '../wire/usage.ts'

/** What a call is charged with some usage. */
export type BillOf = (usage: TokenUsage) => Bill

/** One stream on its way. `push` says what goes to the client; the properties say how far the stream has come. */
export interface StreamPassage {
  /** The bytes for the client, or null when this chunk says nothing to it yet. */
  push(chunk: Uint8Array): Uint8Array | null
  /** The bytes have ended: what was still open, and whether the stream ended as it should. */
  end(): { readonly bytes: Uint8Array | null; readonly complete: boolean }
  /** The end of a stream that broke or was cut, with what ends an event that is still open. */
  fail(fault: StreamFault): Uint8Array
  /** As reported, or estimated from what went by. */
  usage(): TokenUsage
  readonly reported: boolean
  readonly outputChars: number
  readonly finished: boolean
  readonly failed: boolean
  /** The bytes given out so far end between two events. */
  readonly atBoundary: boolean
  /** What may be sent now to keep a silent client waiting; null inside an event. */
  keepAlive(): Uint8Array | null
}

/** Of an event that is longer than this the beginning goes out before its end is here. */
const heldEventMaxBytes = 8 * 1024 * 1024

/**
 * Relays a stream byte for byte to a client that speaks the provider's format, whole events only: of a stream that breaks or is cut
 * nobody gets half a one. Chat streams have a passage of their own.
 */
export class RelayPassage implements StreamPassage {
  readonly #tap: StreamTap
  readonly #format: ClientFormat
  readonly #context: ReplyContext
  /** The event that is under way. */
  #held: Uint8Array[] = []
  #heldBytes = 0
  /** The bytes given out end inside an event that was too long to be held. */
  #isOpen = false
  #hasEnded = false
  /** How many events have gone out, where the last one that has come is kept back. */
  #eventsOut: number | null = null

  constructor(tap: StreamTap, format: ClientFormat, context: ReplyContext) {
    this.#tap = tap
    this.#format = format
    this.#context = context
  }

  get reported(): boolean {
    return this.#tap.usage !== null
  }
  get outputChars(): number {
    return this.#tap.outputChars
  }
  get finished(): boolean {
    return this.#tap.finished
  }
  /** Behind the whole event that says so. */
  get failed(): boolean {
    return this.#tap.failed && (this.#heldBytes === 0 || this.#hasEnded)
  }
  get atBoundary(): boolean {
    return !this.#isOpen
  }

  push(chunk: Uint8Array): Uint8Array | null {
    const wasFinished = this.#tap.finished
    const passed = this.#passed(chunk)
    return wasFinished ? passed : this.#billed(passed)
  }

  #passed(chunk: Uint8Array): Uint8Array | null {
    this.#tap.push(chunk)
    const { wholeBytes } = this.#tap
    if (wholeBytes === chunk.length && this.#heldBytes === 0) {
      this.#isOpen = false
      return chunk
    }
    const whole = wholeBytes === 0 ? null : this.#taken(chunk.subarray(0, wholeBytes))
    if (whole !== null) this.#isOpen = false
    const rest = chunk.subarray(wholeBytes)
    if (!this.#isOpen && this.#heldBytes + rest.length <= heldEventMaxBytes) {
      this.#hold(rest)
      return whole
    }
    this.#isOpen = true
    const open = this.#taken(rest)
    return whole === null ? open : Buffer.concat([whole, open])
  }

  end(): { bytes: Uint8Array | null; complete: boolean } {
    if (this.#tap.finished || this.#hasEnded) return { bytes: null, complete: this.#tap.finished }
    this.#hasEnded = true
    const { events } = this.#tap
    // The end of the bytes ends the last event, which may be the end mark itself, or the provider's error.
    this.#tap.push(eventEnd)
    const isEnd = this.#tap.finished || this.#tap.failed
    const bytes = isEnd && this.#heldBytes > 0 ? this.#taken(eventEnd) : this.#isOpen ? eventEnd : null
    if (bytes === null) this.#eventsOut = events
    this.#isOpen = false
    return { bytes: this.#billed(bytes), complete: this.#tap.finished }
  }

  fail(fault: StreamFault): Uint8Array {
    // Its own error is here but for its end.
    if (this.#tap.failed && this.#heldBytes > 0) return this.#taken(eventEnd)
    const ending = this.#isOpen ? '\n\n' : ''
    return Buffer.from(ending + this.#format.relayedEnd(fault, this.usage(), this.#context, this.#eventsOut ?? this.#tap.events))
  }

  usage(): TokenUsage {
    const { usage, partial, outputChars } = this.#tap
    if (usage !== null) return usage
    const counted = estimated(this.#context.promptTokens, outputChars)
    if (partial === undefined || partial === null) return counted
    return { ...partial, completionTokens: Math.max(partial.completionTokens, counted.completionTokens) }
  }

  keepAlive(): Uint8Array | null {
    return this.atBoundary && !this.finished ? Buffer.from(this.#format.keepAlive) : null
  }

  /** Of an event that was too long to be held its beginning is gone already: then the bill stands in the records alone. */
  #billed(last: Uint8Array | null): Uint8Array | null {
    if (last === null || !this.#tap.finished || this.#tap.failed) return last
    return this.#format.withBill?.(last, this.usage(), this.#context) ?? last
  }

  #hold(part: Uint8Array): void {
    if (part.length === 0) return
    this.#held.push(part)
    this.#heldBytes += part.length
  }

  /** What was held, and this behind it. */
  #taken(last: Uint8Array): Uint8Array {
    const parts = this.#held
    if (parts.length === 0) return last
    this.#held = []
    this.#heldBytes = 0
    return Buffer.concat([...parts, last])
  }
}

const eventEnd = Buffer.from('\n\n')

/** Reads one format and writes another. Whole events go out, so it always stands at a boundary. */
export class TranslatedPassage implements StreamPassage {
  readonly #decoder: ChatStreamDecoder
  readonly #writer: StreamWriter
  readonly #promptTokens: number
  #usage: TokenUsage | null = null
  #hasBegun = false
  #hasFinishReason = false
  outputChars = 0
  finished = false
  failed = false
  readonly atBoundary = true

  constructor(decoder: ChatStreamDecoder, writer: StreamWriter, promptTokens: number) {
    this.#decoder = decoder
    this.#writer = writer
    this.#promptTokens = promptTokens
  }

  get reported(): boolean {
    return this.#usage !== null && this.#hasFinishReason
  }

  push(chunk: Uint8Array): Uint8Array | null {
    return this.#write(this.#decoder.push(chunk))
  }

  /** A stream that has said why it finished is complete, end mark or not; every other one was cut short. */
  end(): { bytes: Uint8Array | null; complete: boolean } {
    const bytes = this.#write(this.#decoder.end())
    if (this.finished || this.failed || !this.#hasFinishReason) return { bytes, complete: this.finished }
    this.finished = true
    const last = Buffer.from(this.#writer.finish(this.usage()))
    return { bytes: bytes === null ? last : Buffer.concat([bytes, last]), complete: true }
  }

  fail(fault: StreamFault): Uint8Array {
    return Buffer.from(this.#writer.fail(fault, this.usage()))
  }

  /** What a provider tells before it has finished is true of the prompt; of the output more may have gone by since. */
  usage(): TokenUsage {
    const counted = estimated(this.#promptTokens, this.outputChars)
    if (this.#usage === null || this.#hasFinishReason) return this.#usage ?? counted
    return { ...this.#usage, completionTokens: Math.max(this.#usage.completionTokens, counted.completionTokens) }
  }

  keepAlive(): Uint8Array | null {
    return this.finished || this.failed ? null : Buffer.from(this.#writer.keepAlive)
  }

  #write(events: readonly ChatStreamEvent[]): Uint8Array | null {
    let text = ''
    for (const event of events) {
      if (this.finished || this.failed) break
      text += this.#writeEvent(event)
    }
    return text === '' ? null : Buffer.from(text)
  }

  #writeEvent(event: ChatStreamEvent): string {
    switch (event.kind) {
      case 'chunk':
        this.#hasBegun = true
        this.#usage = usageFromOpenAi(event.chunk.usage) ?? this.#usage
        this.#measure(event.chunk.choices)
        return this.#writer.chunk(event.chunk)
      case 'alive':
        // Before the first chunk nothing goes out, so that another route can still take over.
        return this.#hasBegun ? this.#writer.keepAlive : ''
      case 'error':
        this.failed = true
        return this.#writer.fail(event.fault, this.usage())
      case 'done':
        this.finished = true
        return this.#writer.finish(this.usage())
    }
  }

  #measure(choices: unknown): void {
    if (!Array.isArray(choices)) return
    for (const choice of choices) {
      if (!isObject(choice)) continue
      if (typeof choice['finish_reason'] === 'string') this.#hasFinishReason = true
      const { delta } = choice
      if (!isObject(delta)) continue
      for (const name of outputNames) {
        const said = delta[name]
        if (typeof said === 'string') this.outputChars += said.length
      }
      const calls = delta['tool_calls']
      if (Array.isArray(calls)) for (const call of calls) this.outputChars += argumentsOf(call)
    }
  }
}

const outputNames = ['content', 'reasoning_content', 'reasoning', 'refusal'] as const

function argumentsOf(call: unknown): number {
  const made = isObject(call) ? call['function'] : undefined
  const text = isObject(made) ? made['arguments'] : undefined
  return typeof text === 'string' ? text.length : 0
}

/** What is counted where the provider told nothing. */
export function estimated(promptTokens: number, outputChars: number): TokenUsage {
  return { promptTokens, completionTokens: estimateTokens(outputChars), cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
}
