import { type ByteEdit, reasoningEdits } from '../../wire/chat/chat-reasoning.ts'
import { faultFrom, type StreamFault } from '../../wire/chat/chat-stream.ts'
import { type ChatLine, ChatStreamTap } from '../../wire/chat/chat-tap.ts'
import type { ClientFormat, ReplyContext } from '../../wire/client-format.ts'
import { modelAt } from '../../wire/model-echo.ts'
import { mediaCharsPerChar } from '../../wire/output-chars.ts'
import { LineEnds } from '../../wire/sse/line-ends.ts'
import type { EventFrame } from '../../wire/sse/repeated-events.ts'
import { dataFrame, doneFrame } from '../../wire/sse/sse.ts'
import { checkEvents, eventEndIn, type LineSink, overlongLine, SseLineScanner } from '../../wire/sse/sse-lines.ts'
import { type TokenUsage, usageToOpenAi } from '../../wire/usage.ts'
import { HeldUsage } from '../held-usage.ts'
import { EarlyLines } from '../replies/early-lines.ts'
import { edited, frameWithModel, isWholeLine, parsed, textOf } from './relay-edits.ts'
import { type StreamAdapter, usageSoFar } from './stream-adapter.ts'

/** The changes that a relay makes to the lines of a stream. */
export interface ChatRelayOptions {
  /** True when the caller sent `include_usage: false`. */
  readonly withholdsUsage: boolean
  /** The JSON text that replaces the provider's name of the model. Null when the names are the same. */
  readonly echo: Buffer | null
  /**
   * The most bytes of one event, over all of its lines, from an own server. A longer event breaks the stream. Every line end is written as LF,
   * so that the client and the scanner see the same events. Absent for other servers: bytes pass unchanged, and a long line passes in parts.
   */
  readonly eventMaxBytes?: number
}

const noEdits: readonly ByteEdit[] = Object.freeze([])
const openBrace = 123
const colon = 58
const lineEnd = Buffer.from('\n')
const eventEnd = Buffer.from('\n\n')
/** The most bytes of a first chunk whose id is read. */
const headMaxBytes = 4096

/**
 * Relays an OpenAI chat stream to an OpenAI client. Lines pass unchanged and whole, with these exceptions.
 *
 * The last usage of the stream gets the bill (`x_br`) or is withheld. The `model` is replaced when the provider uses another name. Thinking in
 * another member moves to `reasoning_content`. Two things are added when the provider leaves them out: estimated usage, and the end mark after a
 * `finish_reason`.
 *
 * Nothing is sent before the stream has begun, so that another route can serve the call. Nothing is sent after the end of the stream.
 */
export class ChatRelayAdapter implements StreamAdapter, LineSink {
  readonly #tap = new ChatStreamTap()
  readonly #lines: SseLineScanner
  readonly #format: ClientFormat
  readonly #context: ReplyContext
  readonly #options: ChatRelayOptions
  /** Null when the bytes keep their line ends. */
  readonly #lineEnds: LineEnds | null
  /** The bytes of the current event, without comments and without the current line. */
  #eventBytes = 0
  /** The data lines of the current event. */
  #dataLines = 0
  /** The chunk that is being split into lines. `#from` is the end of the part that was sent, and `#to` the end of its whole lines. */
  #chunk: Uint8Array = lineEnd
  #from = 0
  #to = 0
  #parts: Uint8Array[] = []
  #held: HeldUsage | null = null
  /** True when the sent bytes end inside an event. */
  #isOpen = false
  #isDropping = false
  #isEnding = false
  /** The lines before the stream began. Null after that. */
  #early: EarlyLines | null = new EarlyLines()
  /** Whether the end mark or the provider's error has passed: `line` until the end of its event, then `event`. */
  #over: 'no' | 'line' | 'event' = 'no'
  /** The result of `end`: whether the stream was complete. Null before `end` is called. */
  #ended: boolean | null = null
  /** The frame whose model was replaced last, and the result. */
  #frame: EventFrame | null = null
  #renamedFrame: EventFrame | null = null
  /** The last model name that was reported to the context. */
  #model: string | null = null
  /** The first chunk of the stream. It provides the id and the time for a chunk of the gateway's own. */
  #head: string | null = null

  constructor(format: ClientFormat, context: ReplyContext, options: ChatRelayOptions) {
    this.#format = format
    this.#context = context
    this.#options = options
    this.#lines = new SseLineScanner(this, options.eventMaxBytes)
    this.#lineEnds = options.eventMaxBytes === undefined ? null : new LineEnds()
  }

  /** True when the last usage was reported. Some providers report running figures; without an end of the stream these are not the last. */
  get reported(): boolean {
    const { finished, hasFinishReason } = this.#tap
    return this.#hasLastUsage && (finished || hasFinishReason || this.#ended === true)
  }
  /** Figures that came before more output are not the last. */
  get #hasLastUsage(): boolean {
    const { usageChunk, finished, outputChars, usageChars } = this.#tap
    return usageChunk !== null && usageChars === outputChars && (finished || usageChunk.isLast)
  }
  get promptTold(): boolean {
    return (this.#tap.usage?.promptTokens ?? 0) > 0
  }
  get outputChars(): number {
    return this.#tap.outputChars
  }
  get finished(): boolean {
    return this.#tap.finished
  }
  get failed(): boolean {
    return this.#tap.failed
  }
  readonly refused = null
  get atBoundary(): boolean {
    return !this.#isOpen
  }

  get heldBytes(): number {
    return this.#lines.heldBytes + (this.#early?.roomBytes ?? 0) + (this.#held?.roomBytes ?? 0)
  }

  get fault(): string | null {
    return this.#tap.fault
  }

  /** Throws `EmptyLinesError` for a stream with too many events without output. */
  push(bytes: Uint8Array): Uint8Array | null {
    if (this.#over === 'event') return null
    checkEvents(this.#tap.dataLines, this.#tap.outputChars)
    const chunk = this.#lineEnds?.read(bytes) ?? bytes
    // An empty chunk was the second half of a CRLF, whose first half has passed as LF.
    return chunk.length === 0 ? null : this.#relayed(chunk)
  }

  #relayed(chunk: Uint8Array): Uint8Array | null {
    this.#chunk = chunk
    this.#from = 0
    this.#to = 0
    for (let at = 0; at < chunk.length; ) {
      if (this.#isPlain) at = this.#passRepeated(chunk, at)
      const end = this.#tap.repeated.frame !== null ? eventEndIn(chunk, at) : chunk.length
      this.#lines.push(chunk, at, end)
      at = end
    }
    if (this.#parts.length === 0 && this.#from === 0 && this.#to === chunk.length) return chunk
    this.#passTo(this.#to)
    return this.#taken()
  }

  /** True between two events when whole events may pass as they are, but for the model. */
  get #isPlain(): boolean {
    return this.#over === 'no' && this.#early === null && this.#held === null && !this.#isDropping && this.#lines.atBoundary
  }

  /** Passes the events at `at` that repeat an earlier one but for its text. Returns the offset after them. */
  #passRepeated(chunk: Uint8Array, at: number): number {
    const end = this.#tap.readRepeated(chunk, at)
    if (end === at) return at
    const { repeated } = this.#tap
    this.#lines.passed(repeated.count)
    this.#to = end
    this.#isOpen = false
    if (this.#options.echo === null || repeated.frame === null) return end
    this.#passTo(at)
    this.#parts.push(repeated.written(chunk, this.#renamed(repeated.frame, this.#options.echo)))
    this.#from = end
    return end
  }

  /** Returns a frame with the catalog's id of the model. */
  #renamed(frame: EventFrame, echo: Buffer): EventFrame {
    if (this.#frame !== frame) {
      this.#frame = frame
      this.#renamedFrame = frameWithModel(frame, echo)
    }
    return this.#renamedFrame ?? frame
  }

  /** Ends the stream. A stream with a finish reason or its final usage is complete even without an end mark. Any other stream was cut short. */
  end(): { bytes: Uint8Array | null; complete: boolean } {
    const tap = this.#tap
    if (tap.finished || this.#ended !== null) return { bytes: null, complete: tap.finished || this.#ended === true }
    this.#isEnding = true
    // The end of the bytes ends the last event, which may be the end mark itself.
    const rest = this.#over === 'event' || this.#lines.atBoundary ? null : this.#relayed(this.#lines.isInLine ? eventEnd : lineEnd)
    const complete = tap.finished || (!tap.failed && (tap.hasFinishReason || this.#hasLastUsage))
    this.#ended = complete
    this.#release(complete && !this.#options.withholdsUsage)
    if (this.#isOpen) this.#parts.push(eventEnd)
    if (!tap.finished && complete) this.#addEstimate('')
    if (!tap.finished && (complete || tap.failed)) this.#parts.push(Buffer.from(doneFrame))
    if (rest !== null) this.#parts.unshift(rest)
    return { bytes: this.#taken(), complete }
  }

  /** Returns the end of a stream that broke. A line without its end is not sent, because a client cannot read half a chunk. */
  fail(fault: StreamFault): Uint8Array {
    this.#release(false)
    if (this.#isOpen) this.#parts.push(eventEnd)
    this.#parts.push(Buffer.from(this.#format.relayedEnd(fault, this.usage(), this.#context, 0)))
    return this.#taken() ?? eventEnd
  }

  usage(): TokenUsage {
    const { usage: claimed, outputChars, usageChars } = this.#tap
    if (claimed !== null && this.#hasLastUsage) return this.#context.believed?.(claimed, outputChars) ?? claimed
    return usageSoFar(claimed, outputChars, usageChars, this.#context)
  }

  keepAlive(): Uint8Array | null {
    return this.#isOpen || this.finished ? null : Buffer.from(this.#format.keepAlive)
  }

  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    if (this.#isEventTooLong(bytes, start, end)) {
      this.#refuse()
      return
    }
    this.#to = nextInChunk
    if (this.#over === 'event') this.#skip(bytes, start)
    // This is the beginning of a line without its end. Half an event is not sent.
    else if (this.#isEnding && start < end && !isWholeLine(textOf(bytes, start, end))) this.#drop(bytes, start)
    else {
      const kind = this.#kindOf(bytes, start, end, nextInChunk)
      if (this.#tap.model !== this.#model) this.#named(this.#tap.model)
      this.#read(bytes, start, end, kind)
    }
  }

  /** Reports a model name before its line is sent, because the bill after it may depend on the name. */
  #named(model: string | null): void {
    this.#model = model
    if (model !== null) this.#context.named?.(model)
  }

  /**
   * Returns the tap's classification of a line. The tap reads each data line by itself, but a client joins the lines of one event. So an event
   * of several data lines begins the stream at its end, and each line after the first counts with its bytes as output.
   */
  #kindOf(bytes: Uint8Array, start: number, end: number, nextInChunk: number): ChatLine {
    const kind = this.#tap.line(bytes, start, end, nextInChunk)
    if (kind === 'blank') {
      if (this.#dataLines > 1 && !this.#tap.failed) this.#tap.begun = true
      this.#dataLines = 0
    } else if (kind === 'chunk' && ++this.#dataLines > 1) this.#tap.outputChars += end - start
    return kind
  }

  /** Counts one more line of the current event. A blank line ends the event. Comments do not count, because readers do not keep them. */
  #isEventTooLong(bytes: Uint8Array, start: number, end: number): boolean {
    if (start === end) this.#eventBytes = 0
    else if (bytes[start] !== colon) this.#eventBytes += end - start
    return this.#over === 'no' && this.#eventBytes > (this.#options.eventMaxBytes ?? Number.POSITIVE_INFINITY)
  }

  #read(bytes: Uint8Array, start: number, end: number, kind: ChatLine): void {
    if (this.#over === 'line' && kind !== 'blank') {
      this.#skip(bytes, start)
      return
    }
    if (kind === 'blank' && (this.#tap.finished || this.#tap.failed)) this.#over = 'event'
    if (this.#tap.choiceError !== null) {
      this.#skip(bytes, start)
      this.#endWith(faultFrom(this.#tap.choiceError))
      return
    }
    if (this.#early !== null && !this.#begins(this.#early, kind, bytes, start)) return
    if (this.#isDropping) {
      this.#skip(bytes, start)
      this.#isDropping = kind !== 'blank'
      return
    }
    if (kind === 'blank' || kind === 'other') {
      if (this.#held === null) this.#pass(bytes, kind === 'other')
      else this.#hold(this.#held, bytes, start, kind === 'blank')
      return
    }
    if (this.#held !== null) this.#release(kind !== 'usage')
    if (kind === 'done') this.#done(bytes, start)
    else this.#passChunk(bytes, start, end, kind === 'usage')
  }

  /** Returns true when the stream has begun with this line, and then sends the earlier lines before it. Otherwise the line is kept back. */
  #begins(early: EarlyLines, kind: ChatLine, bytes: Uint8Array, start: number): boolean {
    if (this.#tap.begun) {
      this.#early = null
      this.#pushBytes(early.take())
      this.#isOpen = early.isOpen
      return true
    }
    early.add(kind, this.#rawLine(bytes, start))
    this.#skip(bytes, start)
    return false
  }

  overlong(part: Uint8Array): void {
    if (this.#over !== 'no') return
    if (this.#options.eventMaxBytes !== undefined) {
      this.#refuse()
      return
    }
    this.#tap.outputChars += Math.ceil(part.length / mediaCharsPerChar)
    if (this.#early !== null) this.#pushBytes(this.#early.take())
    this.#early = null
    this.#release(false)
    this.#passTo(this.#to)
    this.#parts.push(part)
    this.#isOpen = true
    // The part of the line that is in this chunk has just been sent.
    this.#to = this.#chunk.length
    this.#from = this.#chunk.length
  }

  /** Ends a stream at an event that is too long to be read, because its content would not be counted. */
  #refuse(): void {
    const fault = { message: 'The provider sent an event that is too long.', type: 'api_error', code: 'upstream_stream_error' }
    this.#tap.failed = true
    this.#tap.fault = fault.message
    this.#passTo(this.#to)
    this.#endWith(fault)
    this.#to = this.#chunk.length
    this.#from = this.#chunk.length
  }

  /**
   * Stops sending the provider's bytes. A stream that has begun gets an end from the gateway. For any other stream nothing is sent, so that
   * another route can serve the call.
   */
  #endWith(fault: StreamFault): void {
    this.#over = 'event'
    this.#ended = false
    // `fail` takes the collected parts, so its result is added again.
    const ending = this.#early === null ? this.fail(fault) : null
    if (ending !== null) this.#parts.push(ending)
  }

  #passChunk(bytes: Uint8Array, start: number, end: number, hasUsage: boolean): void {
    if (this.#head === null) this.#head = end - start > headMaxBytes ? '' : textOf(bytes, start, end)
    const chunk = hasUsage ? this.#tap.usageChunk : null
    const isLastUsage = chunk?.isLast === true
    if (isLastUsage && this.#options.withholdsUsage && chunk.isUsageOnly) this.#drop(bytes, start)
    else if (isLastUsage && !this.#options.withholdsUsage) this.#holdUsage(bytes, start, end, chunk.takesBill)
    else {
      this.#edit(bytes, this.#editsOf(bytes, start, end))
      this.#pass(bytes, true)
    }
  }

  /** Sends the end mark. Before it, usage that the provider did not report is added. */
  #done(bytes: Uint8Array, start: number): void {
    this.#over = 'line'
    if (this.#dataLines > 0 && this.#isOpen) {
      // A client does not read an end mark after other data of the same event, so it gets an event of its own.
      if (bytes === this.#chunk) this.#passTo(start)
      this.#parts.push(lineEnd)
      this.#isOpen = false
    }
    if (this.#tap.usage === null && !this.#tap.failed) {
      if (bytes === this.#chunk) this.#passTo(start)
      this.#addEstimate(this.#isOpen ? '\n' : '')
      this.#isOpen = false
    }
    this.#pass(bytes, true)
  }

  /** Adds estimated usage when the provider has reported none. */
  #addEstimate(before: string): void {
    if (this.#tap.usage === null && !this.#options.withholdsUsage) this.#parts.push(Buffer.from(before + this.#estimate()))
  }

  #estimate(): string {
    const { model, newId, nowSeconds, bill } = this.#context
    const head = parsed(this.#head ?? '')
    const usage = this.usage()
    return dataFrame({
      id: typeof head['id'] === 'string' ? head['id'] : newId('chatcmpl-'),
      object: 'chat.completion.chunk',
      created: typeof head['created'] === 'number' ? head['created'] : nowSeconds,
      model: this.#options.echo === null && typeof head['model'] === 'string' ? head['model'] : model,
      choices: [],
      usage: { ...usageToOpenAi(usage), estimated: true },
      x_br: bill(usage),
    })
  }

  /** Lets a line pass. The lines of one chunk are sent together, at a change or at the end of the chunk. */
  #pass(bytes: Uint8Array, isOpen: boolean): void {
    this.#isOpen = isOpen
    if (bytes === this.#chunk) return
    // The line was joined from several chunks without its line end. An overlong line was already sent in parts.
    if (bytes !== overlongLine && this.#from === 0) this.#parts.push(bytes)
    this.#parts.push(lineEnd)
    this.#from = this.#to
  }

  /** Sends the unsent part of the chunk up to an offset. */
  #passTo(offset: number): void {
    if (offset > this.#from) this.#parts.push(this.#chunk.subarray(this.#from, offset))
    this.#from = Math.max(this.#from, offset)
  }

  /** Leaves out this line. */
  #skip(bytes: Uint8Array, start: number): void {
    if (bytes === this.#chunk) this.#passTo(start)
    this.#from = this.#to
  }

  /** Leaves out the event of this data line. */
  #drop(bytes: Uint8Array, start: number): void {
    this.#skip(bytes, start)
    // An event that has begun is ended. It then has no data, and readers ignore it.
    if (this.#isOpen) this.#parts.push(lineEnd)
    this.#isOpen = false
    this.#isDropping = true
  }

  /** Returns the edits of the line: the catalog's id of the model, and thinking in the member where clients read it. */
  #editsOf(bytes: Uint8Array, start: number, end: number): readonly ByteEdit[] {
    const { echo } = this.#options
    const found = echo === null ? null : modelAt(bytes, start, end)
    const renamed: readonly ByteEdit[] = echo === null || found === null ? noEdits : [{ ...found, bytes: echo }]
    const json = this.#tap.hasOddThinking ? bytes.indexOf(openBrace, start) : -1
    if (json === -1) return renamed
    const edits = reasoningEdits(bytes, json, end)
    return edits.length === 0 ? renamed : [...renamed, ...edits].sort((a, b) => a.from - b.from)
  }

  #edit(bytes: Uint8Array, edits: readonly ByteEdit[]): void {
    if (edits.length === 0) return
    if (bytes !== this.#chunk) {
      this.#parts.push(edited(bytes, edits))
      this.#from = this.#to
      return
    }
    for (const { from, to, bytes: made } of edits) {
      this.#passTo(from)
      this.#parts.push(made)
      this.#from = to
    }
  }

  #holdUsage(bytes: Uint8Array, start: number, end: number, takesBill: boolean): void {
    const raw = this.#rawLine(bytes, start)
    const edits = this.#editsOf(raw, 0, end - start)
    const line = edits.length === 0 ? raw : edited(raw, edits)
    this.#held = new HeldUsage(line, takesBill)
    this.#skip(bytes, start)
  }

  #hold(held: HeldUsage, bytes: Uint8Array, start: number, isBlank: boolean): void {
    const length = bytes === this.#chunk ? this.#to - start : bytes.length + lineEnd.length
    held.hold(length, isBlank, () => this.#rawLine(bytes, start))
    this.#skip(bytes, start)
  }

  /** Returns a copy of the line with its line end. */
  #rawLine(bytes: Uint8Array, start: number): Buffer {
    return bytes === this.#chunk ? Buffer.from(bytes.subarray(start, this.#to)) : Buffer.concat([bytes, lineEnd])
  }

  /** Sends the held usage, with the bill when it was the last usage. */
  #release(isBilled: boolean): void {
    const held = this.#held
    if (held === null) return
    this.#held = null
    this.#parts.push(isBilled ? this.#billed(held) : held.line)
    this.#pushBytes(held.takeTail())
    this.#isOpen = !held.isClosed
  }

  #billed({ line, takesBill }: HeldUsage): Buffer {
    const usage = this.usage()
    const bill = this.#context.bill(usage)
    if (!takesBill) {
      const chunk = parsed(line.toString('utf8'))
      const hasUsage = typeof chunk['usage'] === 'object' && chunk['usage'] !== null
      return Buffer.from(`data: ${JSON.stringify({ ...chunk, usage: hasUsage ? chunk['usage'] : usageToOpenAi(usage), x_br: bill })}\n`)
    }
    const close = line.lastIndexOf(125)
    return Buffer.concat([line.subarray(0, close), Buffer.from(`,"x_br":${JSON.stringify(bill)}`), line.subarray(close)])
  }

  #pushBytes(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#parts.push(bytes)
  }

  #taken(): Uint8Array | null {
    const parts = this.#parts
    if (parts.length === 0) return null
    this.#parts = []
    const [only] = parts
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
  }
}
