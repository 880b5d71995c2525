import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import { checkCallCount, checkMessageCalls, checkMessageCount, checkPartCount, checkToolCount } from '../list-bounds.ts'
import { type PromptMedia, PromptSize } from '../prompt-size.ts'
import { checkEffort } from './reasoning-effort.ts'

/** The facts about a chat request that the pipeline needs. */
export interface ParsedChat {
  readonly model: string
  readonly stream: boolean
  /** Maximum number of output tokens of the whole call, including reasoning: the cap of one answer times `n`; null: the request gives none. */
  readonly maxTokens: number | null
  /** The cap of one answer as the caller gave it: `max_tokens`, `max_completion_tokens`, or the lower of both. */
  readonly answerMaxTokens: number | null
  /** `n`: the number of answers. */
  readonly answers: number
  /** The caller's `stream_options.include_usage`; undefined: not given. */
  readonly includeUsage: boolean | undefined
  /** ceil(UTF-8 bytes of all text / 3), plus the assumed tokens of images, sound and files. */
  readonly promptTokensEstimate: number
  /** Left out if the prompt has no media. */
  readonly promptMedia?: PromptMedia | undefined
  /** The part of the estimate that a provider may not read: thinking of earlier turns, and settings. Left out if there is none. */
  readonly promptUnreadTokens?: number | undefined
  /** The part of the estimate that only tokenizers with a token for each digit count. Left out if there is none. */
  readonly promptDigitTokens?: number | undefined
  readonly hasTools: boolean
  readonly hasImages: boolean
}

/** Fields other than the messages that providers put into the prompt. */
const promptFields = ['tools', 'functions', 'response_format', 'tool_choice', 'function_call'] as const
/** Fields that do not count as settings. `model` is one of them, because its value is a name from the catalog. */
const readFields: ReadonlySet<string> = new Set(['model', 'messages', ...promptFields])
/** The assumed number of tokens around each message, for its role and separators. */
const messageTokens = 4
/** Maximum number of answers in one call. It is the usual limit among providers. */
const answersMax = 128
/**
 * Maximum number of output tokens that are assumed for one call, whatever the request says. Their cost must fit into the amounts that the database stores.
 */
const callTokensMax = 1_000_000_000

/**
 * Checks an OpenAI chat request and reads the facts that metering and routing need. It is on the hot path, so it has its own checks instead of a schema.
 * The provider checks unknown fields, roles and part types. null counts as absent. `digits` is the number of digits that long numbers have lost in `body`,
 * from `unseenDigitsOf`. Throws `bad_request` that names the field.
 */
export function parseChat(body: unknown, digits = 0): ParsedChat {
  if (!isObject(body)) throw bad('The body must be a JSON object.')
  const model = modelOf(body)
  const messages = body['messages']
  if (!Array.isArray(messages) || messages.length === 0) throw bad('"messages" must be a non-empty array.')
  checkMessageCount(messages)
  const size = new PromptSize(messages.length * messageTokens)
  for (let index = 0; index < messages.length; index++) readMessage(messages[index], index, size)
  checkCallCount(size.calls)
  const tools = body['tools']
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) throw bad('"tools" must be an array.')
  const hasTools = Array.isArray(tools) && tools.length > 0
  if (hasTools) checkToolCount(tools)
  const isToolless = body['tool_choice'] === 'none'
  for (const name of promptFields) {
    if (name === 'response_format' || (name === 'tools' && isToolless)) size.unread(body[name])
    else size.json(body[name])
  }
  size.settings(body, readFields)
  size.digits(digits)
  checkEffort(body['reasoning_effort'])
  const stream = flag(body['stream'], 'stream') ?? false
  const answers = positive(body['n'], 'n') ?? 1
  if (answers > answersMax) throw bad(`"n" must be at most ${answersMax}.`)
  const answerMaxTokens = lower(positive(body['max_tokens'], 'max_tokens'), positive(body['max_completion_tokens'], 'max_completion_tokens'))
  const { media, unreadTokens, digitTokens } = size
  return {
    model,
    stream,
    maxTokens: answerMaxTokens === null ? null : Math.min(answerMaxTokens * answers, callTokensMax),
    answerMaxTokens,
    answers,
    includeUsage: includeUsageOf(body['stream_options']),
    promptTokensEstimate: size.estimate,
    promptUnreadTokens: unreadTokens === 0 ? undefined : unreadTokens,
    promptDigitTokens: digitTokens === 0 ? undefined : digitTokens,
    promptMedia: media,
    hasTools,
    hasImages: size.hasImages,
  }
}

/** Returns the `model` of a request, a non-empty string. Throws `bad_request`. */
export function modelOf(body: Readonly<Record<string, unknown>>): string {
  const model = body['model']
  if (typeof model !== 'string' || model === '') throw bad('"model" must be a non-empty string.')
  return model
}

/** Returns the text of the last user turn, or '' if there is none. */
export function promptTextOf(body: Readonly<Record<string, unknown>>): string {
  const messages = body['messages']
  if (!Array.isArray(messages)) return ''
  const last: unknown = messages.findLast((message: unknown) => isObject(message) && message['role'] === 'user')
  const content = isObject(last) ? last['content'] : undefined
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n')
}

/** Members of a message whose names do not count as text. */
const messageFields: ReadonlySet<string> = new Set(['refusal', 'name', 'tool_call_id', 'audio'])

function readMessage(message: unknown, index: number, size: PromptSize): void {
  if (!isObject(message)) throw bad(`"messages[${index}]" must be an object.`)
  if (typeof message['role'] !== 'string' || message['role'] === '') throw bad(`"messages[${index}].role" must be a non-empty string.`)
  const content = message['content']
  if (typeof content === 'string') size.text(content)
  else if (Array.isArray(content)) readParts(content, index, size)
  else if (!((content === null || content === undefined) && mayHaveNone(message)))
    throw bad(`"messages[${index}].content" must be a string or an array of parts.`)
  const calls = message['tool_calls']
  if (Array.isArray(calls)) {
    checkMessageCalls(calls, () => `messages[${index}].tool_calls`)
    size.calls += calls.length
  }
  for (const name in message) {
    if (name === 'content') continue
    const value = message[name]
    if (name === 'role' || name === 'cache_control') size.label(value)
    else if (name === 'tool_calls' || name === 'function_call') size.json(value)
    else if (name === 'reasoning_content') size.thought(value)
    else if (messageFields.has(name)) size.any(value)
    else size.unknown(name, value)
  }
}

/**
 * Whether a message may have no content. An assistant turn that only calls tools, refuses, speaks or thinks needs no text, and a function may return nothing.
 */
function mayHaveNone(message: Readonly<Record<string, unknown>>): boolean {
  const { role, tool_calls: calls, refusal, reasoning_content: thought } = message
  if (role === 'function') return true
  if (role !== 'assistant') return false
  const isSaid = (text: unknown): boolean => typeof text === 'string' && text !== ''
  return (Array.isArray(calls) && calls.length > 0) || isObject(message['function_call']) || isSaid(refusal) || isSaid(thought) || isObject(message['audio'])
}

function readParts(parts: readonly unknown[], index: number, size: PromptSize): void {
  checkPartCount(parts, () => `messages[${index}].content`)
  for (let part = 0; part < parts.length; part++) readPart(parts[part], index, part, size)
}

function readPart(part: unknown, message: number, index: number, size: PromptSize): void {
  if (!isObject(part) || typeof part['type'] !== 'string') throw bad(`"messages[${message}].content[${index}]" must be an object with a "type".`)
  const { type } = part
  for (const name in part) {
    const value = part[name]
    if (name === 'text') size.json(value)
    else if (name === 'type' || name === 'cache_control' || name === 'id') size.label(value)
    else if (name === 'image_url') readImage(value, type === 'image_url', size)
    else if (name === 'input_audio' && type === 'input_audio' && isObject(value)) readAudio(value, size)
    else if (name === 'file' && isObject(value)) readFile(value, size)
    else if (name === 'file_data') readFile({ file_data: value }, size)
    else if (name === 'file_url' || name === 'video_url' || name === 'document_url') readLink(value, size)
    else size.unknown(name, value)
  }
}

/** Adds a picture, given as its address or as an object with the address. */
function readImage(image: unknown, isPart: boolean, size: PromptSize): void {
  if (isPart) size.hasImages = true
  if (!isObject(image)) {
    size.image(image)
    return
  }
  size.image(image['url'], image['detail'])
  for (const name in image) {
    if (name === 'detail') size.label(image[name])
    else if (name !== 'url') size.unknown(name, image[name])
  }
}

function readAudio(audio: Readonly<Record<string, unknown>>, size: PromptSize): void {
  for (const name in audio) {
    const value = audio[name]
    if (name === 'data' && typeof value === 'string') {
      if (!size.dataUrl(value)) size.payload('audio/', value)
    } else if (name === 'format' || name === 'id') size.label(value)
    else size.unknown(name, value)
  }
}

function readFile(file: Readonly<Record<string, unknown>>, size: PromptSize): void {
  for (const name in file) {
    const value = file[name]
    if (name === 'file_data' && typeof value === 'string') {
      if (!size.dataUrl(value)) size.payload('', value)
    } else if (name === 'file_url') readLink(value, size)
    else if (name === 'file_id') size.label(value)
    else size.unknown(name, value)
  }
}

/** Adds a file or a film by its address, or by an object with the address. */
function readLink(link: unknown, size: PromptSize): void {
  if (!isObject(link)) {
    size.link(link)
    return
  }
  size.link(link['url'])
  for (const name in link) if (name !== 'url') size.unknown(name, link[name])
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
