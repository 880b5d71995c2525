import { parsedObject } from '../../../platform/values/json.ts'
import { type ByteEdit, reasoningEdits } from '../../wire/chat/chat-reasoning.ts'
import { faultFrom, type StreamFault } from '../../wire/chat/chat-stream.ts'
import { type ChatLine, ChatStreamTap } from '../../wire/chat/chat-tap.ts'
import type { ClientFormat, ReplyContext } from '../../wire/client-format.ts'
import { modelAt } from '../../wire/model-echo.ts'
import { mediaCharsPerChar } from '../../wire/output-chars.ts'
import { LineEnds } from '../../wire/sse/line-ends.ts'
import { dataFrame, doneFrame } from '../../wire/sse/sse.ts'
import { type LineSink, overlongLine, SseLineScanner } from '../../wire/sse/sse-lines.ts'
import { type TokenUsage, usageToOpenAi } from '../../wire/usage.ts'
import { HeldUsage } from '../held-usage.ts'
import { EarlyLines } from '../replies/early-lines.ts'
import { type StreamAdapter, usageSoFar } from './stream-adapter.ts'

/** What is done to the lines on their way. */
export interface ChatRelayOptions {
  /** The caller said include_usage: false. */
  readonly withholdsUsage: boolean
  /** JSON text that stands for the provider's name of the model; null = both call it the same. */
  readonly echo: Buffer | null
  /**
   * Of a server that somebody has registered: most bytes of one event, in however many lines. An event that is longer breaks the stream, and LF
   * is written for every line end, so that the client and the scanner see the same events. Left out: bytes pass as they come, a long line in parts.
   */
  readonly eventMaxBytes?: number
}

const noEdits: readonly ByteEdit[] = Object.freeze([])
const openBrace = 123
const colon = 58
const lineEnd = Buffer.from('\n')
const eventEnd = Buffer.from('\n\n')
/** Of a longer first chunk the id is not looked for. */
const headMaxBytes = 4096

/**
 * Relays an OpenAI chat stream to an OpenAI client. Lines pass as they came, and whole ones only; the exceptions are the usage that
 * ends the stream, which gets the bill (`x_br`) or is kept back, the `model` where the provider calls it something else, thinking that
 * is in another member than `reasoning_content`, and what the provider leaves out at the end: usage, which we estimate, and the end
 * mark behind a `finish_reason`. Nothing goes out before the stream has begun, so that another route can take over, or behind its end.
 */
export class ChatRelayAdapter implements StreamAdapter, LineSink {
  readonly #tap = new ChatStreamTap()
  readonly #lines: SseLineScanner
  readonly #format: ClientFormat
  readonly #context: ReplyContext
  readonly #options: ChatRelayOptions
  /** Null: the bytes pass with the line ends that they have. */
  readonly #lineEnds: LineEnds | null
  /** Bytes of the event under way, without those of comments and of the line under way. */
  #eventBytes = 0
  /** Its lines of data. */
  #dataLines = 0
  /** The chunk that is being cut into lines, up to where it has been given out, and up to where its lines are whole. */
  #chunk: Uint8Array = lineEnd
  #from = 0
  #to = 0
  #parts: Uint8Array[] = []
  #held: HeldUsage | null = null
  /** The bytes given out end inside an event. */
  #isOpen = false
  #isDropping = false
  #isEnding = false
  /** What came before the stream began. */
  #early: EarlyLines | null = new EarlyLines()
  /** The end mark, or the provider's error, has gone by: `line` until the end of its event, then `event`. */
  #over: 'no' | 'line' | 'event' = 'no'
  /** `end` has been called: whether the stream was complete. */
  #ended: boolean | null = null
  /** The model of which the context has been told. */
  #model: string | null = null
  /** The first chunk of the stream: id and time for a chunk of our own. */
  #head: string | null = null

  constructor(format: ClientFormat, context: ReplyContext, options: ChatRelayOptions) {
    this.#format = format
    this.#context = context
    this.#options = options
    this.#lines = new SseLineScanner(this, options.eventMaxBytes)
    this.#lineEnds = options.eventMaxBytes === undefined ? null : new LineEnds()
  }

  /** Some providers tell running figures: those of a stream that has not come to its end are not the last. */
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
    return this.#lines.heldBytes
  }

  get fault(): string | null {
    return this.#tap.fault
  }

  push(bytes: Uint8Array): Uint8Array | null {
    if (this.#over === 'event') return null
    const chunk = this.#lineEnds?.read(bytes) ?? bytes
    // It was the second half of a CRLF, of which the first half has passed as LF.
    return chunk.length === 0 ? null : this.#relayed(chunk)
  }

  #relayed(chunk: Uint8Array): Uint8Array | null {
    this.#chunk = chunk
    this.#from = 0
    this.#to = 0
    this.#lines.push(chunk)
    if (this.#parts.length === 0 && this.#from === 0 && this.#to === chunk.length) return chunk
    this.#passTo(this.#to)
    return this.#taken()
  }

  /** A stream that has said why it finished, or has told its final usage, is complete without an end mark; every other one was cut short. */
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

  /** A line that is not whole is not sent: nobody can read half a chunk. */
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
    // The beginning of a line, of which the end is missing: nobody is told half an event.
    else if (this.#isEnding && start < end && !isWholeLine(textOf(bytes, start, end))) this.#drop(bytes, start)
    else {
      const kind = this.#kindOf(bytes, start, end, nextInChunk)
      if (this.#tap.model !== this.#model) this.#named(this.#tap.model)
      this.#read(bytes, start, end, kind)
    }
  }

  /** Before the line goes on: the bill after it may depend on the name. */
  #named(model: string | null): void {
    this.#model = model
    if (model !== null) this.#context.named?.(model)
  }

  /**
   * What the tap says of a line. It reads each line of data by itself, and a client joins those of one event: what only several lines say together
   * has begun the stream when their event ends, and each of them counts for its bytes.
   */
  #kindOf(bytes: Uint8Array, start: number, end: number, nextInChunk: number): ChatLine {
    const kind = this.#tap.line(bytes, start, end, nextInChunk)
    if (kind === 'blank') {
      if (this.#dataLines > 1 && !this.#tap.failed) this.#tap.begun = true
      this.#dataLines = 0
    } else if (kind === 'chunk' && ++this.#dataLines > 1) this.#tap.outputChars += end - start
    return kind
  }

  /** Counts one more line of the event under way, which a blank line ends. No reader keeps a comment. */
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

  /** Whether the stream has begun with this line, which is kept back otherwise. What was kept back goes out before it. */
  #begins(early: EarlyLines, kind: ChatLine, bytes: Uint8Array, start: number): boolean {
    if (this.#tap.begun) {
      this.#early = null
      this.#parts.push(...early.lines)
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
    if (this.#early !== null) this.#parts.push(...this.#early.lines)
    this.#early = null
    this.#release(false)
    this.#passTo(this.#to)
    this.#parts.push(part)
    this.#isOpen = true
    // The part of the line that is in this chunk has just been given out.
    this.#to = this.#chunk.length
    this.#from = this.#chunk.length
  }

  /** Ends a stream with an event that is too long to be looked at: what is in it would not be counted. */
  #refuse(): void {
    const fault = { message: 'The provider sent an event that is too long.', type: 'api_error', code: 'upstream_stream_error' }
    this.#tap.failed = true
    this.#tap.fault = fault.message
    this.#passTo(this.#to)
    this.#endWith(fault)
    this.#to = this.#chunk.length
    this.#from = this.#chunk.length
  }

  /** Nothing more of the provider's goes out. A stream that has begun gets an end of ours; of another one nothing goes out, so that another route can take over. */
  #endWith(fault: StreamFault): void {
    this.#over = 'event'
    this.#ended = false
    // The parts are taken meanwhile.
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

  /** The end mark; before it the usage that the provider did not tell. */
  #done(bytes: Uint8Array, start: number): void {
    this.#over = 'line'
    if (this.#dataLines > 0 && this.#isOpen) {
      // Behind other data it is no end mark to a client: it gets an event of its own.
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

  /** Our usage where the provider has told none. */
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

  /** Lines of one chunk are given out together, when something else comes between or the chunk is through. */
  #pass(bytes: Uint8Array, isOpen: boolean): void {
    this.#isOpen = isOpen
    if (bytes === this.#chunk) return
    // Put together from several chunks, without its line end; an overlong one has been given out.
    if (bytes !== overlongLine && this.#from === 0) this.#parts.push(bytes)
    this.#parts.push(lineEnd)
    this.#from = this.#to
  }

  /** Gives out what of the chunk is still to pass, up to that offset. */
  #passTo(offset: number): void {
    if (offset > this.#from) this.#parts.push(this.#chunk.subarray(this.#from, offset))
    this.#from = Math.max(this.#from, offset)
  }

  /** Leaves this line out. */
  #skip(bytes: Uint8Array, start: number): void {
    if (bytes === this.#chunk) this.#passTo(start)
    this.#from = this.#to
  }

  /** Leaves out the event that this line is the data of. */
  #drop(bytes: Uint8Array, start: number): void {
    this.#skip(bytes, start)
    // An event that has begun is ended; it then has no data, and readers pass over it.
    if (this.#isOpen) this.#parts.push(lineEnd)
    this.#isOpen = false
    this.#isDropping = true
  }

  /** What of the line is written otherwise: our id of the model, and thinking where clients look for it. */
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

  /** A copy of the line with its end. */
  #rawLine(bytes: Uint8Array, start: number): Buffer {
    return bytes === this.#chunk ? Buffer.from(bytes.subarray(start, this.#to)) : Buffer.concat([bytes, lineEnd])
  }

  /** Gives out the usage that was held, with the bill when it was the last. */
  #release(isBilled: boolean): void {
    const held = this.#held
    if (held === null) return
    this.#held = null
    this.#parts.push(isBilled ? this.#billed(held) : held.line, ...held.tail)
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

  #taken(): Uint8Array | null {
    const parts = this.#parts
    if (parts.length === 0) return null
    this.#parts = []
    const [only] = parts
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
  }
}

const textOf = (bytes: Uint8Array, start: number, end: number): string => Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')

/** A line of the end that can be read: the end mark, or data that is whole. */
const isWholeLine = (line: string): boolean => line.startsWith('data:') && (line.slice(5).trim() === '[DONE]' || Object.keys(parsed(line)).length > 0)

/** The object in a line of data; an empty one when there is none. */
const parsed = (line: string): Record<string, unknown> => parsedObject(line.replace(/^data:/, '')) ?? {}

function edited(bytes: Uint8Array, edits: readonly ByteEdit[]): Buffer {
  const parts: Uint8Array[] = []
  let at = 0
  for (const { from, to, bytes: made } of edits) {
    parts.push(bytes.subarray(at, from), made)
    at = to
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}
