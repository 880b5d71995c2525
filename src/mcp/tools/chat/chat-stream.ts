/** Reads a chat completion, streamed or whole, into the one answer that a tool returns. Decision 0460 says why it is bounded. */
import { z } from 'zod'
import { boundedObject } from '../../../gateway/wire/json/json-texts.ts'
import { GrowingText } from '../../../gateway/wire/sse/growing-text.ts'
import { SseEventReader } from '../../../gateway/wire/sse/sse-events.ts'
import { lineMaxBytes } from '../../../gateway/wire/sse/sse-lines.ts'
import { type ErrorName, fail, type GatewayError } from '../../../platform/errors.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'

const usageShape = z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number(), total_tokens: z.number() })
const costShape = z.looseObject({ cost_inr: z.number().nullish(), value_inr: z.number().nullish(), provider: z.string().nullish() })
const choiceText = z.looseObject({ content: z.string().nullish(), reasoning_content: z.string().nullish() })

/** A chunk of a stream or a whole completion: `delta` in one, `message` in the other. */
const chatPart = z.looseObject({
  id: z.string().nullish(),
  model: z.string().nullish(),
  choices: z.array(z.looseObject({ delta: choiceText.nullish(), message: choiceText.nullish(), finish_reason: z.string().nullish() })).nullish(),
  usage: usageShape.nullish(),
  x_br: costShape.nullish(),
  error: z.looseObject({ message: z.string().nullish(), code: z.string().nullish() }).nullish(),
})

/**
 * Most of an answer, text and reasoning together, in bytes as JSON writes them. A tool result has the text twice, and fits into what one POST
 * may answer (`answerBytesMax`). What comes after it is not read.
 */
export const chatAnswerMaxBytes = 900 * 1024

/** The ends that the gateway itself puts to a stream, by the code of their frame. */
const streamErrors: Readonly<Record<string, ErrorName>> = {
  budget_exceeded: 'budget_exceeded',
  agent_budget_exceeded: 'agent_budget_exceeded',
  invalid_api_key: 'invalid_api_key',
  agent_revoked: 'agent_revoked_label',
  agent_paused: 'agent_paused',
  database_unavailable: 'database_unavailable',
}

export type ChatUsage = z.output<typeof usageShape>

/** What has arrived of an answer so far. */
export class ChatAnswer {
  readonly #text = new GrowingText()
  readonly #reasoning = new GrowingText()
  #leftBytes = chatAnswerMaxBytes
  /** The answer has more than `chatAnswerMaxBytes`; `text` and `reasoning` have its beginning. */
  isTooLong = false
  model: string | null = null
  finishReason: string | null = null
  usage: ChatUsage | null = null
  costInr: number | null = null
  provider: string | null = null
  /** Set when the stream ended with an error frame: the provider broke off, or the gateway ended it, for example on a spent budget. */
  broken: GatewayError | null = null

  get text(): string {
    return this.#text.text
  }
  get reasoning(): string {
    return this.#reasoning.text
  }
  /** Characters of text and reasoning. */
  get chars(): number {
    return this.#text.length + this.#reasoning.length
  }

  /** Takes in one chunk, or a whole completion. A text that is not JSON of this shape is passed over. */
  add(json: string): void {
    const parsed = chatPart.safeParse(boundedObject(json))
    if (!parsed.success) return
    const part = parsed.data
    if (part.error) this.broken = brokenBy(part.error.code ?? '', part.error.message ?? '')
    if (part.model) this.model = part.model
    if (part.usage) this.usage = part.usage
    if (part.x_br) {
      this.costInr = part.x_br.cost_inr ?? this.costInr
      this.provider = part.x_br.provider ?? this.provider
    }
    const choice = part.choices?.[0]
    if (!choice) return
    const said = choice.delta ?? choice.message
    this.#reasoning.append(this.#fitting(said?.reasoning_content ?? ''))
    this.#text.append(this.#fitting(said?.content ?? ''))
    if (choice.finish_reason) this.finishReason = choice.finish_reason
  }

  /** The beginning of a piece that there is room for. */
  #fitting(piece: string): string {
    if (piece === '' || this.isTooLong) return ''
    const fits = piece.length <= this.#leftBytes ? writtenBytes(piece) <= this.#leftBytes : false
    const taken = fits ? piece : beginningOf(piece, this.#leftBytes)
    this.isTooLong = !fits
    this.#leftBytes -= writtenBytes(taken)
    return taken
  }
}

/** Bytes of a text as JSON writes it, without its quotes. */
const writtenBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

/** The longest beginning of a text with at most so many written bytes. */
function beginningOf(text: string, maxBytes: number): string {
  let low = 0
  // A character is written with one byte at least.
  let high = Math.min(text.length, maxBytes)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (writtenBytes(wholeCharacters(text, middle)) <= maxBytes) low = middle
    else high = middle - 1
  }
  return wholeCharacters(text, low)
}

/** The beginning of a text up to that length, without half a character at its end. */
const wholeCharacters = (text: string, length: number): string => text.slice(0, /[\uD800-\uDBFF]/.test(text.charAt(length - 1)) ? length - 1 : length)

/** The end that an error frame puts to an answer. A credential that was ended is not worth another try. */
function brokenBy(code: string, message: string): GatewayError {
  const said = message === '' ? {} : { message }
  if (code === 'agent_revoked') return fail('agent_revoked_label', { ...said, ...revokedEvidence })
  return fail(streamErrors[code] ?? 'upstream_stream_error', code === 'invalid_api_key' ? { ...said, shouldRetry: false } : said)
}

/** What a tool result has beside `agent_revoked`. */
export const revokedEvidence = { extra: { reason: 'agent_revoked' }, shouldRetry: false } as const

/** How the reading of a stream ended: at its end, by the signal, or because the answer is too long, so that the rest was not read. */
export type ReadingEnd = 'whole' | 'aborted' | 'too-long'

/**
 * Feeds a stream of server-sent events into `answer` until it ends, `signal` aborts or the answer is too long. A stream that the gateway itself
 * cuts is read to the frame that says why. An event of more than `lineMaxBytes` breaks the answer. The iterator's `return()` is called on the way
 * out, which is where the gateway hangs up on the provider and settles the call; a read that hangs does not hold us up.
 */
export async function readChatStream(chunks: AsyncIterable<Uint8Array>, answer: ChatAnswer, signal: AbortSignal, onPiece: () => void): Promise<ReadingEnd> {
  const events = new SseEventReader(lineMaxBytes)
  const iterator = chunks[Symbol.asyncIterator]()
  const aborted = whenAborted(signal)
  try {
    for (;;) {
      const coming = iterator.next()
      const first = await aborted.unless(coming)
      const next = first === 'aborted' && signal.reason instanceof CallCutError ? await coming : first
      if (next === 'aborted') return 'aborted'
      if (next.done) return !signal.aborted || answer.broken !== null ? 'whole' : 'aborted'
      for (const event of events.push(next.value)) if (event.kind === 'event' && event.data !== '[DONE]') answer.add(event.data)
      onPiece()
      if (answer.isTooLong) return 'too-long'
      if (events.isOver) return 'whole'
    }
  } catch (thrown) {
    if (signal.aborted) return 'aborted'
    throw thrown
  } finally {
    aborted.stop()
    // Not awaited: `return()` of a generator waits for its pending read, and the abort ends that read.
    iterator.return?.()?.then(undefined, () => undefined)
  }
}

/** Waits for other things unless a signal aborts. */
export interface AbortWait {
  /** What `coming` comes to, or 'aborted' when the signal aborts first. One wait at a time. */
  unless<T>(coming: Promise<T>): Promise<T | 'aborted'>
  /** Lets go of the signal, so that a long-lived one gathers no listeners. */
  stop(): void
}

/**
 * The wait for the abort of a signal. It keeps nothing of what it has waited for: `Promise.race` with one promise for the abort would keep every
 * value of a stream until the signal aborts. Decision 0466 says why.
 */
export function whenAborted(signal: AbortSignal): AbortWait {
  let wake = (): void => undefined
  const listener = (): void => wake()
  signal.addEventListener('abort', listener, { once: true })
  return {
    unless: coming =>
      new Promise((resolve, reject) => {
        wake = () => resolve('aborted')
        if (signal.aborted) wake()
        coming.then(resolve, reject)
      }),
    stop() {
      wake = () => undefined
      signal.removeEventListener('abort', listener)
    },
  }
}
