import { fail } from '../../platform/errors.ts'
import { isObject } from '../../platform/json.ts'
import { checkEffort } from './reasoning-effort.ts'
import { estimateTokens } from './usage.ts'

/** What the pipeline needs to know of a chat request. */
export interface ParsedChat {
  readonly model: string
  readonly stream: boolean
  /** The ceiling on output tokens of the whole call, reasoning included: the cap of one answer times `n`; null = none given. */
  readonly maxTokens: number | null
  /** The cap of one answer as the caller gave it: `max_tokens`, `max_completion_tokens`, or the lower of both. */
  readonly answerMaxTokens: number | null
  /** `n`: how many answers are asked for. */
  readonly answers: number
  /** The caller's own `stream_options.include_usage`; undefined = not said. */
  readonly includeUsage: boolean | undefined
  /** ceil(UTF-8 bytes of message text, tool definitions, reply schema and parts of unknown types / 3), plus a fixed number per image or audio part. */
  readonly promptTokensEstimate: number
  readonly hasTools: boolean
  readonly hasImages: boolean
}

/** Tokens that an image part is taken for. Source: the usual tile prices of vision models (85 low; 85 + 8 tiles of 170 at most for high). */
export const imageTokens = { low: 85, high: 1445 } as const
/** Tokens that an audio or file part is taken for, whose length is not known here. */
export const filePartTokens = 2000
/** What providers put into the prompt beside the messages. */
const promptFields = ['tools', 'functions', 'response_format'] as const
/** Tokens around each message: role and separators. */
const messageTokens = 4
/** Most answers in one call; the usual bound of the field. */
const answersMax = 128
/** Most output tokens that one call is reckoned with, however many it asks for: what they could cost must fit into the books. */
const callTokensMax = 1_000_000_000

/**
 * Checks an OpenAI chat request by hand, because it is on the hot path, and reads what metering and routing need. Unknown fields,
 * roles and part types are the provider's to judge. null counts as absent. Throws `bad_request` that names the field.
 */
export function parseChat(body: unknown): ParsedChat {
  if (!isObject(body)) throw bad('The body must be a JSON object.')
  const model = modelOf(body)
  const messages = body['messages']
  if (!Array.isArray(messages) || messages.length === 0) throw bad('"messages" must be a non-empty array.')
  const size = { bytes: 0, tokens: messages.length * messageTokens, hasImages: false }
  for (let index = 0; index < messages.length; index++) readMessage(messages[index], index, size)
  const tools = body['tools']
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) throw bad('"tools" must be an array.')
  const hasTools = Array.isArray(tools) && tools.length > 0
  for (const name of promptFields) size.bytes += bytesOf(body[name])
  checkEffort(body['reasoning_effort'])
  const stream = flag(body['stream'], 'stream') ?? false
  const answers = positive(body['n'], 'n') ?? 1
  if (answers > answersMax) throw bad(`"n" must be at most ${answersMax}.`)
  const answerMaxTokens = lower(positive(body['max_tokens'], 'max_tokens'), positive(body['max_completion_tokens'], 'max_completion_tokens'))
  return {
    model,
    stream,
    maxTokens: answerMaxTokens === null ? null : Math.min(answerMaxTokens * answers, callTokensMax),
    answerMaxTokens,
    answers,
    includeUsage: includeUsageOf(body['stream_options']),
    promptTokensEstimate: estimateTokens(size.bytes) + size.tokens,
    hasTools,
    hasImages: size.hasImages,
  }
}

/** The `model` of a request: a non-empty string. Throws `bad_request`. */
export function modelOf(body: Readonly<Record<string, unknown>>): string {
  const model = body['model']
  if (typeof model !== 'string' || model === '') throw bad('"model" must be a non-empty string.')
  return model
}

/** The text of the last user turn; '' when it has none. */
export function promptTextOf(body: Readonly<Record<string, unknown>>): string {
  const messages = body['messages']
  if (!Array.isArray(messages)) return ''
  const last: unknown = messages.findLast((message: unknown) => isObject(message) && message['role'] === 'user')
  const content = isObject(last) ? last['content'] : undefined
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n')
}

interface PromptSize {
  bytes: number
  tokens: number
  hasImages: boolean
}

function readMessage(message: unknown, index: number, size: PromptSize): void {
  if (!isObject(message)) throw bad(`"messages[${index}]" must be an object.`)
  if (typeof message['role'] !== 'string' || message['role'] === '') throw bad(`"messages[${index}].role" must be a non-empty string.`)
  const content = message['content']
  if (typeof content === 'string') size.bytes += Buffer.byteLength(content)
  else if (Array.isArray(content)) for (let part = 0; part < content.length; part++) readPart(content[part], `messages[${index}].content[${part}]`, size)
  else if (!((content === null || content === undefined) && mayHaveNone(message)))
    throw bad(`"messages[${index}].content" must be a string or an array of parts.`)
  const calls = message['tool_calls'] ?? message['function_call']
  size.bytes += bytesOf(calls)
  const reasoning = message['reasoning_content']
  if (typeof reasoning === 'string') size.bytes += Buffer.byteLength(reasoning)
}

/** An assistant turn that called something, refused, spoke or only thought needs no text, and a function may return nothing. */
function mayHaveNone(message: Readonly<Record<string, unknown>>): boolean {
  const { role, tool_calls: calls, refusal, reasoning_content: thought } = message
  if (role === 'function') return true
  if (role !== 'assistant') return false
  const isSaid = (text: unknown): boolean => typeof text === 'string' && text !== ''
  return (Array.isArray(calls) && calls.length > 0) || isObject(message['function_call']) || isSaid(refusal) || isSaid(thought) || isObject(message['audio'])
}

function readPart(part: unknown, at: string, size: PromptSize): void {
  if (!isObject(part) || typeof part['type'] !== 'string') throw bad(`"${at}" must be an object with a "type".`)
  if (typeof part['text'] === 'string') {
    size.bytes += Buffer.byteLength(part['text'])
  } else if (part['type'] === 'image_url') {
    size.hasImages = true
    const image = part['image_url']
    size.tokens += isObject(image) && image['detail'] === 'low' ? imageTokens.low : imageTokens.high
  } else if (part['type'] === 'input_audio' || part['type'] === 'file') {
    size.tokens += filePartTokens
  } else readUnknownPart(part, size)
}

/** Of a type that is not known here everything counts as text, but for what looks like media. */
function readUnknownPart(part: Readonly<Record<string, unknown>>, size: PromptSize): void {
  const text = JSON.stringify(part, (key, value: unknown) => {
    if (typeof value !== 'string' || (key !== 'data' && !value.startsWith('data:'))) return value
    size.tokens += filePartTokens
    return ''
  })
  size.bytes += Buffer.byteLength(text)
}

/** Bytes of an object as JSON; 0 for what is none. */
function bytesOf(value: unknown): number {
  return typeof value === 'object' && value !== null ? Buffer.byteLength(JSON.stringify(value)) : 0
}

function includeUsageOf(options: unknown): boolean | undefined {
  if (options === undefined || options === null) return undefined
  if (!isObject(options)) throw bad('"stream_options" must be an object.')
  return flag(options['include_usage'], 'stream_options.include_usage')
}

function flag(value: unknown, name: string): boolean | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'boolean') throw bad(`"${name}" must be true or false.`)
  return value
}

function positive(value: unknown, name: string): number | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1) throw bad(`"${name}" must be a whole number of at least 1.`)
  return value
}

function lower(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b)
}

function bad(message: string): Error {
  return fail('bad_request', { message })
}
