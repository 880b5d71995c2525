/** Turns the bytes of a provider's stream into the bytes of the client's. Decision 0375 says why. */
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { StreamTap } from '../../providers/dialect.ts'
import { type ChatStreamDecoder, type ChatStreamEvent, refusedCode, type StreamFault } from '../../wire/chat/chat-stream.ts'
import type { Bill, ClientFormat, ReplyContext, StreamWriter } from '../../wire/client-format.ts'
import { outputChars as outputCharsOf } from '../../wire/output-chars.ts'
import { estimateTokens, noUsage, type TokenUsage, usageFromOpenAi } from '../../wire/usage.ts'
import { ReplyBounds } from '../replies/reply-bounds.ts'

/** What a call is charged with some usage. */
export type BillOf = (usage: TokenUsage) => Bill

/** One stream on its way. `push` says what goes to the client; the properties say how far the stream has come. */
export interface StreamAdapter {
  /** The bytes for the client, or null when this chunk says nothing to it: a stream has not begun before one does, and nothing goes out behind its end. */
  push(chunk: Uint8Array): Uint8Array | null
  /** The bytes have ended: what was still open, and whether the stream ended as it should. */
  end(): { readonly bytes: Uint8Array | null; readonly complete: boolean }
  /** The end of a stream that broke or was cut, with what ends an event that is still open. */
  fail(fault: StreamFault): Uint8Array
  /** As reported, or estimated from what went by. */
  usage(): TokenUsage
  readonly reported: boolean
  /** The provider has told what the prompt came to, which it does before the end in some formats. */
  readonly promptTold: boolean
  readonly outputChars: number
  readonly finished: boolean
  readonly failed: boolean
  /** What the provider said when it failed, as it came; null: it has not, or said nothing. */
  readonly fault: string | null
  /** Why this gateway takes no more of the stream, which the provider has made and bills; null: it takes all of it. Decision 0482 says why. */
  readonly refused: StreamFault | null
  /** The bytes given out so far end between two events. */
  readonly atBoundary: boolean
  /** Bytes that are kept: of an event that is not whole, and of output that is written again at the end. */
  readonly heldBytes: number
  /** What may be sent now to keep a silent client waiting; null inside an event. */
  keepAlive(): Uint8Array | null
}

/** Of an event that is longer than this the beginning goes out before its end is here. */
const heldEventMaxBytes = 8 * 1024 * 1024
/** Most bytes that are kept before a stream has begun; what comes behind them says nothing either and is left out. */
const earlyMaxBytes = 64 * 1024

/**
 * Relays a stream byte for byte to a client that speaks the provider's format, whole events only: of a stream that breaks or is cut
 * nobody gets half a one. Chat streams have a adapter of their own.
 */
export class RelayAdapter implements StreamAdapter {
  readonly #tap: StreamTap
  readonly #format: ClientFormat
  readonly #context: ReplyContext
  /** The event that is under way. */
  readonly #held = new BodyPieces()
  /** The bytes given out end inside an event that was too long to be held. */
  #isOpen = false
  #hasEnded = false
  /** The model of which the context has been told. */
  #model: string | null = null
  /** How many events have gone out, where the last one that has come is kept back. */
  #eventsOut: number | null = null
  /** What came before the stream began. */
  #early: Uint8Array[] = []
  #earlyBytes = 0
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
  /** Behind the whole event that says so. */
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
    return this.#tap.heldBytes + this.#held.bytes
  }

  push(chunk: Uint8Array): Uint8Array | null {
    if (this.#tap.over) return null
    const passed = this.#billed(this.#passed(chunk))
    return this.#hasBegun || passed === null ? passed : this.#beforeBegin(passed)
  }

  /** Comments and pings wait for what comes behind them; of many, the first. */
  #beforeBegin(passed: Uint8Array): Uint8Array | null {
    if (this.#tap.begun || this.#isOpen) {
      this.#hasBegun = true
      return this.#early.length === 0 ? passed : Buffer.concat([...this.#early.splice(0), passed])
    }
    this.#earlyBytes += passed.length
    if (this.#earlyBytes <= earlyMaxBytes) this.#early.push(Buffer.from(passed))
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
    // The end of the bytes ends the last event, which may be the end mark itself, or the provider's error.
    this.#tap.push(eventEnd)
    const isEnd = this.#tap.finished || this.#tap.failed
    const bytes = isEnd && this.#held.bytes > 0 ? this.#taken(eventEnd) : this.#isOpen ? eventEnd : null
    if (bytes === null) this.#eventsOut = events
    this.#isOpen = false
    const last = this.#billed(bytes)
    return { bytes: last === null || this.#hasBegun ? last : this.#beforeBegin(last), complete: this.#tap.finished }
  }

  fail(fault: StreamFault): Uint8Array {
    // Its own error is here but for its end.
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

  /** Of an event that was too long to be held its beginning is gone already: then the bill is in the records alone. */
  #billed(last: Uint8Array | null): Uint8Array | null {
    if (this.#tap.model !== this.#model) this.#named(this.#tap.model)
    if (last === null || !this.#tap.finished || this.#tap.failed) return last
    return this.#format.withBill?.(last, this.usage(), this.#context) ?? last
  }

  #named(model: string | null): void {
    this.#model = model
    if (model !== null) this.#context.named?.(model)
  }

  /** What was held, and this behind it. */
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

/** Reads one format and writes another. Whole events go out, so it is always at a boundary. */
export class TranslatedAdapter implements StreamAdapter {
  readonly #decoder: ChatStreamDecoder
  readonly #writer: StreamWriter
  readonly #promptTokens: number
  readonly #context: Pick<ReplyContext, 'believed' | 'named'>
  readonly #bounds: ReplyBounds
  #usage: TokenUsage | null = null
  /** `outputChars` when it was told. */
  #usageChars = 0
  /** The model that the stream has named last. */
  #model: unknown = undefined
  #hasBegun = false
  #hasFinishReason = false
  outputChars = 0
  finished = false
  failed = false
  fault: string | null = null
  refused: StreamFault | null = null
  readonly atBoundary = true

  /** `isOwn`: the server is one that somebody has registered. */
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
    return this.#decoder.heldBytes + (this.#writer.keepsOutput === true ? this.#bounds.writtenChars : 0)
  }

  push(chunk: Uint8Array): Uint8Array | null {
    return this.#write(this.#decoder.push(chunk))
  }

  /** A stream that has said why it finished is complete, end mark or not; every other one was cut short. */
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

  /** What a provider tells before it has finished is true of the prompt; of the output more may have gone by since. */
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
    for (const event of events) {
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
        // Before the first chunk nothing goes out, so that another route can still take over.
        return this.#hasBegun && this.refused === null ? this.#writer.keepAlive : ''
      case 'error':
        if (event.fault.code === refusedCode) this.refused ??= event.fault
        return this.#fail(this.refused ?? event.fault)
      case 'done':
        if (this.refused !== null) return this.#fail(this.refused)
        this.finished = true
        // An end mark alone is no answer, and another route can still take over.
        return this.#hasBegun ? this.#writer.finish(this.usage()) : ''
    }
  }

  #tell(usage: TokenUsage | null): void {
    if (usage === null) return
    this.#usage = usage
    this.#usageChars = this.outputChars
  }

  #named(model: unknown): void {
    if (typeof model !== 'string' || model === '') return
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
 * Usage of a stream that has not come to its end: what the provider has told, if anything, with all output that has gone by since, as far as
 * that can be true. A stream that breaks or is left is charged this. `toldChars`: the output when it told. Decision 0462 says why.
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

/** What is counted where the provider told nothing. */
function estimated(promptTokens: number, outputChars: number): TokenUsage {
  return { promptTokens, completionTokens: estimateTokens(outputChars), cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
}
