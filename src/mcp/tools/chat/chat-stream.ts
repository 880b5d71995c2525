/** Reads a chat completion, streamed or whole, into the single answer that a tool returns. Decision 0460 says why it is bounded. */
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

/** A chunk of a stream, with `delta`, or a whole completion, with `message`. */
const chatPart = z.looseObject({
  id: z.string().nullish(),
  model: z.string().nullish(),
  choices: z.array(z.looseObject({ delta: choiceText.nullish(), message: choiceText.nullish(), finish_reason: z.string().nullish() })).nullish(),
  usage: usageShape.nullish(),
  x_br: costShape.nullish(),
  error: z.looseObject({ message: z.string().nullish(), code: z.string().nullish() }).nullish(),
})

/**
 * Maximum size of an answer in bytes of JSON, with text and reasoning together. A tool result contains the text twice, and must fit into the answer
 * of one POST (`answerBytesMax`). The rest of the answer is not read.
 */
export const chatAnswerMaxBytes = 900 * 1024

/** The errors with which the gateway itself ends a stream. The key is the code in the error frame. */
const streamErrors: Readonly<Record<string, ErrorName>> = {
  budget_exceeded: 'budget_exceeded',
  agent_budget_exceeded: 'agent_budget_exceeded',
  run_budget_exceeded: 'run_budget_exceeded',
  invalid_api_key: 'invalid_api_key',
  agent_revoked: 'agent_revoked_label',
  agent_paused: 'agent_paused',
  run_ended: 'run_ended',
  database_unavailable: 'database_unavailable',
}

export type ChatUsage = z.output<typeof usageShape>

/** The part of an answer that has arrived so far. */
export class ChatAnswer {
  readonly #text = new GrowingText()
  readonly #reasoning = new GrowingText()
  #leftBytes = chatAnswerMaxBytes
  /** True when the answer is longer than `chatAnswerMaxBytes`. In that case `text` and `reasoning` contain only the beginning of the answer. */
  isTooLong = false
  model: string | null = null
  finishReason: string | null = null
  usage: ChatUsage | null = null
  costInr: number | null = null
  provider: string | null = null
  /**
   * The error frame that ended the stream. The provider broke off, or the gateway ended the stream, for example because of a spent budget. Null when
   * there was no error frame.
   */
  broken: GatewayError | null = null

  get text(): string {
    return this.#text.text
  }
  get reasoning(): string {
    return this.#reasoning.text
  }
  /** Number of characters of text and reasoning. */
  get chars(): number {
    return this.#text.length + this.#reasoning.length
  }

  /** Adds one chunk, or a whole completion. A text that is not valid JSON of this shape is ignored. */
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

  /** Returns the beginning of a piece, as much as still fits. */
  #fitting(piece: string): string {
    if (piece === '' || this.isTooLong) return ''
    const fits = piece.length <= this.#leftBytes ? writtenBytes(piece) <= this.#leftBytes : false
    const taken = fits ? piece : beginningOf(piece, this.#leftBytes)
    this.isTooLong = !fits
    this.#leftBytes -= writtenBytes(taken)
    return taken
  }
}

/** Returns the number of bytes of a text in JSON, without its quotes. */
const writtenBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

/** Returns the longest beginning of a text that has at most `maxBytes` bytes in JSON. */
function beginningOf(text: string, maxBytes: number): string {
  let low = 0
  // Each character takes at least one byte.
  let high = Math.min(text.length, maxBytes)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (writtenBytes(wholeCharacters(text, middle)) <= maxBytes) low = middle
    else high = middle - 1
  }
  return wholeCharacters(text, low)
}

/** Returns the first `length` units of a text. A surrogate pair is never split. */
const wholeCharacters = (text: string, length: number): string => text.slice(0, /[\uD800-\uDBFF]/.test(text.charAt(length - 1)) ? length - 1 : length)

/** Returns the error of an answer that an error frame ended. When the credential was revoked, the error says that a retry does not help. */
function brokenBy(code: string, message: string): GatewayError {
  const said = message === '' ? {} : { message }
  if (code === 'agent_revoked') return fail('agent_revoked_label', { ...said, ...revokedEvidence })
  return fail(streamErrors[code] ?? 'upstream_stream_error', code === 'invalid_api_key' ? { ...said, shouldRetry: false } : said)
}

/** The fields that a tool result has in addition to `agent_revoked`. */
export const revokedEvidence = { extra: { reason: 'agent_revoked' }, shouldRetry: false } as const

/**
 * How the reading of a stream ended: at its end, by the signal, or because the answer is too long. The rest of an answer that is too long is not
 * read.
 */
export type ReadingEnd = 'whole' | 'aborted' | 'too-long'

/**
 * Adds a stream of server-sent events to `answer` until the stream ends, `signal` aborts or the answer is too long. When the gateway itself cuts the
 * stream, this reads on to the frame that gives the reason. An event of more than `lineMaxBytes` breaks the answer. At the end this calls the
 * iterator's `return()`. The gateway then closes the provider's stream and settles the call. A read that hangs is not awaited.
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
    // This is not awaited, because `return()` of a generator waits for its pending read. The abort ends that read.
    iterator.return?.()?.then(undefined, () => undefined)
  }
}

/** Waits for promises unless a signal aborts. */
export interface AbortWait {
  /** Returns the value of `coming`, or 'aborted' when the signal aborts first. It allows one wait at a time. */
  unless<T>(coming: Promise<T>): Promise<T | 'aborted'>
  /** Removes the listener from the signal, so that a long-lived signal collects no listeners. */
  stop(): void
}

/**
 * Returns a wait that ends when a signal aborts. It keeps no value after the wait. By contrast, `Promise.race` with one abort promise would keep
 * every value of a stream until the signal aborts. Decision 0466 says why.
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
