import { isObject } from '../../platform/json.ts'
import type { StreamFault } from '../wire/chat-stream.ts'
import { ChatStreamTap } from '../wire/chat-tap.ts'
import type { ClientFormat, ReplyContext } from '../wire/client-format.ts'
import { modelAt } from '../wire/model-echo.ts'
import { dataFrame, doneFrame } from '../wire/sse.ts'
import { type LineSink, overlongLine, SseLineScanner } from '../wire/sse-lines.ts'
import { type TokenUsage, usageToOpenAi } from '../wire/usage.ts'
import { estimated, type StreamPassage } from './passage.ts'

/** What is done to the lines on their way. */
export interface ChatRelayOptions {
  /** The caller said include_usage: false. */
  readonly withholdsUsage: boolean
  /** JSON text that stands for the provider's name of the model; null = both call it the same. */
  readonly echo: Buffer | null
}

/** A line with usage that waits for the next one: only the last of them gets the bill. */
interface HeldUsage {
  readonly line: Buffer
  readonly chunk: Readonly<Record<string, unknown>>
  /** What came behind it: the end of its event, comments. */
  readonly tail: Buffer[]
  isClosed: boolean
}

const lineEnd = Buffer.from('\n')
const eventEnd = Buffer.from('\n\n')
/** Of a longer first chunk the id is not looked for. */
const headMaxBytes = 4096

/**
 * Relays an OpenAI chat stream to an OpenAI client. Lines pass as they came, and whole ones only; the exceptions are the usage that
 * ends the stream, which gets the bill (`x_br`) or is kept back, the `model` where the provider calls it something else, and a usage
 * chunk with our estimate where the provider sends none.
 */
export class ChatRelayPassage implements StreamPassage, LineSink {
  readonly #tap = new ChatStreamTap()
  readonly #lines = new SseLineScanner(this)
  readonly #format: ClientFormat
  readonly #context: ReplyContext
  readonly #options: ChatRelayOptions
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
  /** The first chunk of the stream: id and time for a chunk of our own. */
  #head: string | null = null

  constructor(format: ClientFormat, context: ReplyContext, options: ChatRelayOptions) {
    this.#format = format
    this.#context = context
    this.#options = options
  }

  /** Some providers tell running figures: those of a stream that has not come to its end are not the last. */
  get reported(): boolean {
    const { usageChunk, finished } = this.#tap
    return usageChunk !== null && (finished || isLast(usageChunk))
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
  get atBoundary(): boolean {
    return !this.#isOpen
  }

  push(chunk: Uint8Array): Uint8Array | null {
    this.#chunk = chunk
    this.#from = 0
    this.#to = 0
    this.#lines.push(chunk)
    if (this.#parts.length === 0 && this.#from === 0 && this.#to === chunk.length) return chunk
    this.#passTo(this.#to)
    return this.#taken()
  }

  end(): { bytes: Uint8Array | null; complete: boolean } {
    if (this.#tap.finished) return { bytes: null, complete: true }
    this.#isEnding = true
    // The end of the bytes ends the last event, which may be the end mark itself.
    const rest = this.#lines.atBoundary ? null : this.push(this.#lines.isInLine ? eventEnd : lineEnd)
    const complete = this.#tap.finished || (this.#tap.usage !== null && !this.#tap.failed)
    this.#release(complete && !this.#options.withholdsUsage)
    if (this.#isOpen) this.#parts.push(eventEnd)
    if (!this.#tap.finished && (complete || this.#tap.failed)) this.#parts.push(Buffer.from(doneFrame))
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
    const told = this.#tap.usage
    const counted = estimated(this.#context.promptTokens, this.#tap.outputChars)
    return told === null || this.reported ? (told ?? counted) : { ...told, completionTokens: Math.max(told.completionTokens, counted.completionTokens) }
  }

  keepAlive(): Uint8Array | null {
    return this.#isOpen || this.finished ? null : Buffer.from(this.#format.keepAlive)
  }

  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    const kind = this.#tap.line(bytes, start, end, nextInChunk)
    this.#to = nextInChunk
    if (this.#isDropping) {
      this.#skip(bytes, start)
      this.#isDropping = kind !== 'blank'
      return
    }
    // The beginning of a field, of which the end is missing.
    if (kind === 'other' && this.#isEnding) {
      this.#skip(bytes, start)
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

  overlong(part: Uint8Array): void {
    this.#release(false)
    this.#passTo(this.#to)
    this.#parts.push(part)
    this.#isOpen = true
    // What of the line lies in this chunk has just been given out.
    this.#to = this.#chunk.length
    this.#from = this.#chunk.length
  }

  #passChunk(bytes: Uint8Array, start: number, end: number, hasUsage: boolean): void {
    if (this.#head === null) this.#head = end - start > headMaxBytes ? '' : textOf(bytes, start, end)
    const chunk = hasUsage ? this.#tap.usageChunk : null
    const isLastUsage = chunk !== null && isLast(chunk)
    const isCut = this.#isEnding && !isJson(textOf(bytes, start, end))
    // Nobody is told half an error, so the stream needs ours.
    if (isCut) this.#tap.failed = false
    if (isCut || (isLastUsage && this.#options.withholdsUsage && isUsageOnly(chunk))) this.#drop(bytes, start)
    else if (isLastUsage && !this.#options.withholdsUsage) this.#holdUsage(bytes, start, end, chunk)
    else {
      this.#echo(bytes, start, end)
      this.#pass(bytes, true)
    }
  }

  /** The end mark; before it the usage that the provider did not tell. */
  #done(bytes: Uint8Array, start: number): void {
    if (this.#tap.usage === null && !this.#tap.failed && !this.#options.withholdsUsage) {
      if (bytes === this.#chunk) this.#passTo(start)
      this.#parts.push(Buffer.from((this.#isOpen ? '\n' : '') + this.#estimate()))
      this.#isOpen = false
    }
    this.#pass(bytes, true)
  }

  #estimate(): string {
    const { model, newId, nowSeconds, bill } = this.#context
    const head = parsed(this.#head?.replace(/^data:/, '') ?? '')
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

  #echo(bytes: Uint8Array, start: number, end: number): void {
    const { echo } = this.#options
    const found = echo === null ? null : modelAt(bytes, start, end)
    if (echo === null || found === null) return
    if (bytes === this.#chunk) this.#passTo(found.from)
    else this.#parts.push(bytes.subarray(0, found.from))
    this.#parts.push(echo)
    if (bytes === this.#chunk) this.#from = found.to
    else {
      this.#parts.push(bytes.subarray(found.to))
      this.#from = this.#to
    }
  }

  #holdUsage(bytes: Uint8Array, start: number, end: number, chunk: Readonly<Record<string, unknown>>): void {
    const { echo } = this.#options
    const raw = this.#rawLine(bytes, start)
    const found = echo === null ? null : modelAt(raw, 0, end - start)
    const line = echo === null || found === null ? raw : Buffer.concat([raw.subarray(0, found.from), echo, raw.subarray(found.to)])
    this.#held = { line, chunk: echo === null || found === null ? chunk : { ...chunk, model: this.#context.model }, tail: [], isClosed: false }
    this.#skip(bytes, start)
  }

  #hold(held: HeldUsage, bytes: Uint8Array, start: number, isBlank: boolean): void {
    held.tail.push(this.#rawLine(bytes, start))
    held.isClosed = isBlank
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

  #billed({ line, chunk }: HeldUsage): Buffer {
    const usage = this.usage()
    const bill = this.#context.bill(usage)
    const hasUsage = typeof chunk['usage'] === 'object' && chunk['usage'] !== null
    if (!hasUsage || 'x_br' in chunk)
      return Buffer.from(`data: ${JSON.stringify({ ...chunk, usage: hasUsage ? chunk['usage'] : usageToOpenAi(usage), x_br: bill })}\n`)
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

/** The usage that may be the last: behind the end of the answer or in the chunk that says why it ended. */
function isLast(chunk: Readonly<Record<string, unknown>>): boolean {
  const { choices, error } = chunk
  if (error !== undefined && error !== null) return false
  return !Array.isArray(choices) || choices.length === 0 || choices.some((choice: unknown) => isObject(choice) && typeof choice['finish_reason'] === 'string')
}

const isUsageOnly = ({ choices }: Readonly<Record<string, unknown>>): boolean => !Array.isArray(choices) || choices.length === 0

const textOf = (bytes: Uint8Array, start: number, end: number): string => Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')

const isJson = (line: string): boolean => Object.keys(parsed(line.replace(/^data:/, ''))).length > 0

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
