/** Turns the bytes of a provider's stream into the bytes of the client's stream. Decision 0375 gives the reasons. */
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { StreamTap } from '../../providers/dialect.ts'
import { type ChatStreamDecoder, type ChatStreamEvent, refusedCode, type StreamFault } from '../../wire/chat/chat-stream.ts'
import type { Bill, ClientFormat, ReplyContext, StreamWriter } from '../../wire/client-format.ts'
import { outputChars as outputCharsOf } from '../../wire/output-chars.ts'
import { GrowingBytes } from '../../wire/sse/growing-bytes.ts'
import { checkEvents, eventEndIn } from '../../wire/sse/sse-lines.ts'
import { estimateTokens, noUsage, type TokenUsage, usageFromOpenAi } from '../../wire/usage.ts'
import { ReplyBounds } from '../replies/reply-bounds.ts'
import { joinedCalls } from './joined-calls.ts'

/** Returns the charge of a call with some usage. */
export type BillOf = (usage: TokenUsage) => Bill

/** An adapter for one stream. `push` returns the output for the client. The properties describe the progress of the stream. */
export interface StreamAdapter {
  /**
   * Returns the bytes for the client, or null when this chunk has no output. The stream begins with the first output. Nothing is sent after its end.
   * Throws `EmptyLinesError`.
   */
  push(chunk: Uint8Array): Uint8Array | null
  /** Ends the bytes. Returns the output that was still open, and whether the stream was complete. */
  end(): { readonly bytes: Uint8Array | null; readonly complete: boolean }
  /** Returns the end of a stream that broke or was cut. It also ends an open event. */
  fail(fault: StreamFault): Uint8Array
  /** Returns the reported usage, or an estimate from the bytes that passed. */
  usage(): TokenUsage
  readonly reported: boolean
  /** True when the provider has reported the prompt's tokens. Some formats report them before the end. */
  readonly promptTold: boolean
  readonly outputChars: number
  readonly finished: boolean
  readonly failed: boolean
  /** The provider's own text of its failure. Null when it has not failed or gave no text. */
  readonly fault: string | null
  /** Why this gateway takes no more of the stream, which the provider has made and bills; null: it takes all of it. Decision 0482 says why. */
  readonly refused: StreamFault | null
  /** True when the sent bytes end between two events. */
  readonly atBoundary: boolean
  /** The bytes that the adapter keeps: of an incomplete event, and of output that is written again at the end. */
  readonly heldBytes: number
  /** Returns the bytes that keep a silent client waiting. Null inside an event. */
  keepAlive(): Uint8Array | null
}

/** The most bytes of an event that are kept until its end. The beginning of a longer event is sent before its end arrives. */
const heldEventMaxBytes = 8 * 1024 * 1024
/** The most bytes that are kept before a stream has begun. Later bytes are left out; they have no content either. */
const earlyMaxBytes = 64 * 1024

/**
 * Relays a stream byte for byte to a client that speaks the provider's format. It sends whole events only, so that a stream that breaks or is
 * cut does not end inside an event. Chat streams have an adapter of their own.
 */
export class RelayAdapter implements StreamAdapter {
  readonly #tap: StreamTap
  readonly #format: ClientFormat
  readonly #context: ReplyContext
  /** The current event. */
  readonly #held = new BodyPieces()
  /** True when the sent bytes end inside an event that was too long to be kept. */
  #isOpen = false
  #hasEnded = false
  /** The last model name that was reported to the context. */
  #model: string | null = null
  /** The number of events that were sent, set when the last event is kept back. */
  #eventsOut: number | null = null
  /** The bytes before the stream began. */
  readonly #early = new GrowingBytes()
  #hasBegun = false

  constructor(tap: StreamTap, format: ClientFormat, context: ReplyContext) {
    this.#tap = tap
    this.#format = format
    this.#context = context
  }

  /** Figures that came before more output are not the last. */
  get reported(): boolean {
    return this.#tap.usage !== null && this.#tap.usageChars === this.#tap.outputChars
  }
  get promptTold(): boolean {
    return (this.#tap.usage ?? this.#tap.partial ?? noUsage).promptTokens > 0
  }
  get outputChars(): number {
    return this.#tap.outputChars
  }
  get finished(): boolean {
    return this.#tap.finished
  }
  /** True after the whole event of the failure. */
  get failed(): boolean {
    return this.#tap.failed && (this.#held.bytes === 0 || this.#hasEnded)
  }
  get fault(): string | null {
    return this.#tap.fault
  }
  readonly refused = null
  get atBoundary(): boolean {
    return !this.#isOpen
  }
  get heldBytes(): number {
    return this.#tap.heldBytes + this.#held.bytes + this.#early.roomBytes
  }

  push(chunk: Uint8Array): Uint8Array | null {
    if (this.#tap.over) return null
    checkEvents(this.#tap.events, this.#tap.outputChars)
    const passed = this.#billed(this.#passed(chunk))
    return this.#hasBegun || passed === null ? passed : this.#beforeBegin(passed)
  }

  /** Keeps comments and pings until the stream begins, up to `earlyMaxBytes`. */
  #beforeBegin(passed: Uint8Array): Uint8Array | null {
    if (this.#tap.begun || this.#isOpen) {
      this.#hasBegun = true
      return this.#early.length === 0 ? passed : Buffer.concat([this.#early.take(), passed])
    }
    if (this.#early.length + passed.length <= earlyMaxBytes) this.#early.append(passed)
    return null
  }

  #passed(chunk: Uint8Array): Uint8Array | null {
    this.#tap.push(chunk)
    const { wholeBytes, over } = this.#tap
    if (wholeBytes === chunk.length && this.#held.bytes === 0) {
      this.#isOpen = false
      return chunk
    }
    const whole = wholeBytes === 0 ? null : this.#taken(chunk.subarray(0, wholeBytes))
    if (whole !== null) this.#isOpen = false
    if (over) return whole
    const rest = chunk.subarray(wholeBytes)
    if (!this.#isOpen && this.#held.bytes + rest.length <= heldEventMaxBytes) {
      this.#held.add(rest)
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
    const isWhole = this.#tap.atBoundary
    // The end of the bytes ends the last event, which may be the end mark itself or the provider's error.
    this.#tap.push(eventEnd)
    this.#tap.end?.()
    const isEnd = this.#tap.finished || this.#tap.failed
    const bytes = isEnd && this.#held.bytes > 0 ? this.#taken(isWhole ? noBytes : eventEnd) : this.#isOpen ? eventEnd : null
    if (bytes === null) this.#eventsOut = events
    this.#isOpen = false
    const last = this.#billed(bytes)
    return { bytes: last === null || this.#hasBegun ? last : this.#beforeBegin(last), complete: this.#tap.finished }
  }

  fail(fault: StreamFault): Uint8Array {
    // The provider's own error is here except for the end of its event.
    if (this.#tap.failed && this.#held.bytes > 0) return this.#taken(eventEnd)
    const ending = this.#isOpen ? '\n\n' : ''
    return Buffer.from(ending + this.#format.relayedEnd(fault, this.usage(), this.#context, this.#eventsOut ?? this.#tap.events))
  }

  usage(): TokenUsage {
    const { usage, partial, outputChars, usageChars } = this.#tap
    if (usage !== null && usageChars === outputChars) return this.#context.believed?.(usage, outputChars) ?? usage
    return usageSoFar(usage ?? partial ?? null, outputChars, usageChars, this.#context)
  }

  keepAlive(): Uint8Array | null {
    return this.atBoundary && !this.finished ? Buffer.from(this.#format.keepAlive) : null
  }

  /** Adds the bill to the last event. When the beginning of that event was already sent because of its length, the bill is in the usage row only. */
  #billed(last: Uint8Array | null): Uint8Array | null {
    if (this.#tap.model !== this.#model) this.#named(this.#tap.model)
    if (last === null || !this.#tap.finished || this.#tap.failed) return last
    return this.#format.withBill?.(last, this.usage(), this.#context) ?? last
  }

  #named(model: string | null): void {
    this.#model = model
    if (model !== null) this.#context.named?.(model)
  }

  /** Returns the kept bytes followed by these. */
  #taken(last: Uint8Array): Uint8Array {
    const held = this.#held
    if (held.bytes === 0) return last
    held.add(last)
    const taken = held.joined()
    held.drop()
    return taken
  }
}

const eventEnd = Buffer.from('\n\n')
const noBytes = Buffer.alloc(0)

/** A longer name of a model is none that the catalog has, and is not kept. */
const modelMaxChars = 200

/** Reads one format and writes another. It sends whole events, so it is always at a boundary. */
export class TranslatedAdapter implements StreamAdapter {
  readonly #decoder: ChatStreamDecoder
  readonly #writer: StreamWriter
  readonly #promptTokens: number
  readonly #context: Pick<ReplyContext, 'believed' | 'named'>
  readonly #bounds: ReplyBounds
  #usage: TokenUsage | null = null
  /** `outputChars` at the time of the last usage report. */
  #usageChars = 0
  /** The last model name in the stream. */
  #model: unknown = undefined
  #hasBegun = false
  #hasFinishReason = false
  outputChars = 0
  finished = false
  failed = false
  fault: string | null = null
  refused: StreamFault | null = null
  readonly atBoundary = true

  /** `isOwn` is true for an own server. */
  constructor(decoder: ChatStreamDecoder, writer: StreamWriter, promptTokens: number, isOwn: boolean, context: Pick<ReplyContext, 'believed' | 'named'> = {}) {
    this.#bounds = new ReplyBounds(isOwn)
    this.#context = context
    this.#decoder = decoder
    this.#writer = writer
    this.#promptTokens = promptTokens
  }

  get reported(): boolean {
    return this.#usage !== null && this.#hasFinishReason && this.#usageChars === this.outputChars
  }

  get promptTold(): boolean {
    return (this.#usage ?? noUsage).promptTokens > 0
  }

  get heldBytes(): number {
    return this.#decoder.heldBytes + this.#bounds.callRoomBytes + (this.#writer.keepsOutput === true ? this.#bounds.writtenChars : 0)
  }

  push(chunk: Uint8Array): Uint8Array | null {
    const decoder = this.#decoder
    checkEvents(decoder.events ?? 0, this.outputChars)
    const { texts } = decoder
    if (texts === undefined) return this.#write(decoder.push(chunk))
    const parts: Uint8Array[] = []
    for (let at = 0; at < chunk.length; ) {
      const textsEnd = this.#readTexts(chunk, at, parts)
      const end = texts.frame === null ? chunk.length : eventEndIn(chunk, textsEnd)
      if (end > textsEnd) {
        const bytes = this.#write(decoder.push(textsEnd === 0 && end === chunk.length ? chunk : chunk.subarray(textsEnd, end)))
        if (bytes !== null) parts.push(bytes)
      }
      at = end
    }
    const [first = null] = parts
    return parts.length > 1 ? Buffer.concat(parts) : first
  }

  /** Writes the events at `at` that have only a text. Returns the offset after them. Decision 0537 says why. */
  #readTexts(chunk: Uint8Array, at: number, parts: Uint8Array[]): number {
    const { readTexts, texts, textModel } = this.#decoder
    const isPlain =
      this.#hasBegun &&
      !this.finished &&
      !this.failed &&
      this.refused === null &&
      (textModel === this.#model || typeof textModel !== 'string') &&
      this.#bounds.hasRoomForText(chunk.length, this.outputChars)
    const frame = isPlain ? (this.#writer.textFrame?.() ?? null) : null
    if (frame === null || readTexts === undefined || texts === undefined) return at
    const end = readTexts.call(this.#decoder, chunk, at)
    if (end === at) return at
    this.outputChars += texts.spokenBytes
    this.#bounds.addText(texts.textChars)
    parts.push(texts.written(chunk, frame))
    return end
  }

  /** Ends the stream. A stream with a finish reason is complete even without an end mark. Any other stream was cut short. */
  end(): { bytes: Uint8Array | null; complete: boolean } {
    const bytes = this.#write(this.#decoder.end())
    if (this.finished || this.failed || this.refused !== null || !this.#hasFinishReason) return { bytes, complete: this.finished }
    this.finished = true
    const last = Buffer.from(this.#writer.finish(this.usage()))
    return { bytes: bytes === null ? last : Buffer.concat([bytes, last]), complete: true }
  }

  fail(fault: StreamFault): Uint8Array {
    return Buffer.from(this.#writer.fail(fault, this.usage()))
  }

  /** Returns the usage. Figures that a provider reports before the end are true of the prompt, but more output may have come since. */
  usage(): TokenUsage {
    const { believed } = this.#context
    if (this.#usage !== null && this.reported) return believed?.(this.#usage, this.outputChars) ?? this.#usage
    return usageSoFar(this.#usage, this.outputChars, this.#usageChars, { promptTokens: this.#promptTokens, believed })
  }

  keepAlive(): Uint8Array | null {
    return this.finished || this.failed ? null : Buffer.from(this.#writer.keepAlive)
  }

  #write(events: readonly ChatStreamEvent[]): Uint8Array | null {
    let text = ''
    for (const event of joinedCalls(events)) {
      if (this.finished || this.failed) break
      text += this.#writeEvent(event)
    }
    return text === '' ? null : Buffer.from(text)
  }

  #writeEvent(event: ChatStreamEvent): string {
    switch (event.kind) {
      case 'chunk':
        if (event.chunk['model'] !== this.#model) this.#named(event.chunk['model'])
        if (!this.#hasBegun)
          this.#hasBegun = usageFromOpenAi(event.chunk.usage) !== null || (Array.isArray(event.chunk.choices) && event.chunk.choices.length > 0)
        if (!this.#hasBegun) return ''
        this.#measure(event.chunk.choices, event.outputChars)
        this.#tell(usageFromOpenAi(event.chunk.usage))
        // From here on the events are read for their usage alone.
        this.refused ??= this.#bounds.exceeded
        return this.refused === null ? this.#writer.chunk(event.chunk) : ''
      case 'alive':
        // Nothing is sent before the first chunk, so that another route can serve the call.
        return this.#hasBegun && this.refused === null ? this.#writer.keepAlive : ''
      case 'error':
        if (event.fault.code === refusedCode) this.refused ??= event.fault
        return this.#fail(this.refused ?? event.fault)
      case 'done':
        if (this.refused !== null) return this.#fail(this.refused)
        this.finished = true
        // An end mark alone is not an answer, and another route can serve the call.
        return this.#hasBegun ? this.#writer.finish(this.usage()) : ''
    }
  }

  #tell(usage: TokenUsage | null): void {
    if (usage === null) return
    this.#usage = usage
    this.#usageChars = this.outputChars
  }

  #named(model: unknown): void {
    if (typeof model !== 'string' || model === '' || model.length > modelMaxChars) return
    this.#model = model
    this.#context.named?.(model)
  }

  #fail(fault: StreamFault): string {
    this.failed = true
    this.fault = fault.message
    return this.#writer.fail(fault, this.usage())
  }

  #measure(choices: unknown, outputChars: number | undefined): void {
    let shownChars = 0
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (!isObject(choice)) continue
      if (typeof choice['finish_reason'] === 'string') this.#hasFinishReason = true
      if (outputChars === undefined) shownChars += outputCharsOf(choice['delta'])
      if (this.refused === null) this.#bounds.add(choice['delta'])
    }
    this.outputChars += outputChars ?? shownChars
    this.#bounds.said(this.outputChars)
  }
}

/**
 * Returns the usage of a stream that has not reached its end. It is the provider's last report, if there is one, plus all output since, limited
 * to plausible figures. A stream that breaks or is left is charged this usage. `toldChars` is the output at the last report. Decision 0462 gives
 * the reasons.
 */
export function usageSoFar(
  claimed: TokenUsage | null,
  outputChars: number,
  toldChars: number,
  { promptTokens, believed }: { readonly promptTokens: number; readonly believed?: ReplyContext['believed'] },
): TokenUsage {
  const counted = estimated(promptTokens, outputChars)
  if (claimed === null) return counted
  const soFar = { ...claimed, completionTokens: Math.max(claimed.completionTokens + estimateTokens(outputChars - toldChars), counted.completionTokens) }
  return believed?.(soFar, outputChars) ?? soFar
}

/** Returns the estimate for a stream without reported usage. */
function estimated(promptTokens: number, outputChars: number): TokenUsage {
  return { promptTokens, completionTokens: estimateTokens(outputChars), cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, isPromptGuessed: true }
}
