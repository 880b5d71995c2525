import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import { modelOf } from '../../chat/chat.ts'
import { checkCallCount, checkMessageCount, checkPartCount, checkToolCount } from '../../list-bounds.ts'
import { type PromptMedia, PromptSize } from '../../prompt-size.ts'

/** The facts about a messages request that the pipeline needs on every route. */
export interface MessagesFacts {
  readonly model: string
  readonly stream: boolean
  /** `max_tokens`; null if it is absent or invalid. The provider or the translation then refuses the request. */
  readonly maxTokens: number | null
  /** The estimate: text by its bytes, images and documents by their assumed tokens. */
  readonly promptTokens: number
  /** Left out if the prompt has no media. */
  readonly promptMedia?: PromptMedia
  /** The part of the estimate that a provider may not read: thinking of earlier turns, and settings. Left out if there is none. */
  readonly promptUnreadTokens?: number
  /** The part of the estimate that only tokenizers with a token for each digit count. Left out if there is none. */
  readonly promptDigitTokens?: number
  readonly hasTools: boolean
  readonly hasImages: boolean
}

/** The assumed number of tokens around each message, for its role and separators. */
const messageTokens = 4
/** Parts of the prompt other than the messages. All of them are text. */
const promptFields = ['tools', 'tool_choice', 'output_config', 'output_format'] as const
/** Fields that are not settings of the call. */
const readFields: ReadonlySet<string> = new Set(['model', 'messages', 'system', ...promptFields])

/**
 * Reads the facts that routing and metering need. If the request is passed on unchanged, the provider checks the rest. `digits` is the number of digits
 * that long numbers have lost in `body`, from `unseenDigitsOf`. Throws `bad_request` that names the field.
 */
export function messagesFacts(body: Readonly<Record<string, unknown>>, digits = 0): MessagesFacts {
  const model = modelOf(body)
  const { messages, tools, stream, max_tokens: maxTokens } = body
  if (!Array.isArray(messages) || messages.length === 0) throw fail('bad_request', { message: '"messages" must be a non-empty array.' })
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') throw fail('bad_request', { message: '"stream" must be true or false.' })
  checkMessageCount(messages)
  if (Array.isArray(tools)) checkToolCount(tools)
  const size = new PromptSize(messages.length * messageTokens)
  for (const message of messages) measureMessage(message, size)
  checkCallCount(size.calls)
  measure(body['system'], size)
  const choice = body['tool_choice']
  const isToolless = isObject(choice) && choice['type'] === 'none'
  for (const name of promptFields) {
    if (name === 'output_config' || name === 'output_format' || (name === 'tools' && isToolless)) size.unread(body[name])
    else size.json(body[name])
  }
  size.settings(body, readFields)
  size.digits(digits)
  const { media, unreadTokens, digitTokens } = size
  return {
    model,
    stream: stream === true,
    maxTokens: typeof maxTokens === 'number' && Number.isSafeInteger(maxTokens) && maxTokens > 0 ? maxTokens : null,
    promptTokens: size.estimate,
    ...(unreadTokens === 0 ? {} : { promptUnreadTokens: unreadTokens }),
    ...(digitTokens === 0 ? {} : { promptDigitTokens: digitTokens }),
    ...(media === undefined ? {} : { promptMedia: media }),
    hasTools: Array.isArray(tools) && tools.length > 0,
    hasImages: size.hasImages,
  }
}

/** Returns the text of the last user turn, or '' if there is none. */
export function lastUserText(body: Readonly<Record<string, unknown>>): string {
  const messages: readonly unknown[] = Array.isArray(body['messages']) ? body['messages'] : []
  const last = messages.findLast(message => isObject(message) && message['role'] === 'user')
  const content = isObject(last) ? last['content'] : undefined
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .flatMap((block: unknown) => (isObject(block) && block['type'] === 'text' && typeof block['text'] === 'string' ? [block['text']] : []))
    .join('\n')
}

function measureMessage(message: unknown, size: PromptSize): void {
  if (!isObject(message)) {
    size.any(message)
    return
  }
  for (const name in message) {
    if (name === 'content') measure(message[name], size)
    else if (name === 'role') size.label(message[name])
    else size.unknown(name, message[name])
  }
}

/** Measures a text or a list of blocks. */
function measure(content: unknown, size: PromptSize): void {
  if (typeof content === 'string') size.text(content)
  else if (Array.isArray(content)) {
    checkPartCount(content, () => 'content')
    for (const block of content) {
      if (isObject(block)) measureBlock(block, size)
      else size.any(block)
    }
  } else size.any(content)
}

/** Members of every block that do not count in the estimate while they are short. */
const labels: ReadonlySet<string> = new Set(['type', 'cache_control', 'tool_use_id', 'is_error'])
/** Members of a block that are measured by its type. All others count as text. */
const measured: Readonly<Record<string, Readonly<Record<string, (value: unknown, size: PromptSize) => void>>>> = {
  text: { text: measure },
  thinking: { thinking: (value, size) => size.thought(value), signature: (value, size) => size.sealed(value) },
  redacted_thinking: { data: (value, size) => size.sealed(value) },
  tool_result: { content: measure },
  image: { source: measureImage },
  document: { title: measure, context: measure, source: measureSource },
}

function measureBlock(block: Readonly<Record<string, unknown>>, size: PromptSize): void {
  const { type } = block
  if (type === 'tool_use') size.calls++
  const known = typeof type === 'string' && Object.hasOwn(measured, type) ? measured[type] : undefined
  if (known === undefined) {
    if (type === 'tool_use' || type === 'search_result') size.any(block)
    else size.unknown('', block)
    return
  }
  if (type === 'image') size.hasImages = true
  for (const name in block) {
    const value = block[name]
    const read = Object.hasOwn(known, name) ? known[name] : undefined
    if (read !== undefined) read(value, size)
    else if (labels.has(name)) size.label(value)
    else size.unknown(name, value)
  }
}

/** Measures a picture, given as base64 or by its address. */
function measureImage(source: unknown, size: PromptSize): void {
  if (!isObject(source)) {
    size.image(source)
    return
  }
  const { type, media_type: mediaType, data } = source
  if (type === 'base64' && typeof data === 'string') size.payload(imageType(mediaType), data)
  else size.image(source['url'])
  for (const name in source) {
    if (name === 'url' || (name === 'data' && type === 'base64' && typeof data === 'string')) continue
    if (name === 'type' || name === 'media_type') size.label(source[name])
    else size.unknown(name, source[name])
  }
}

/** Returns the media type. An invalid type counts as a picture, because a provider either treats the value as a picture or refuses it. */
const imageType = (mediaType: unknown): string => (typeof mediaType === 'string' && mediaType.includes('/') ? mediaType : 'image/')

/** Measures a document. Text counts as text. A file counts with an assumed number of tokens. */
function measureSource(source: unknown, size: PromptSize): void {
  if (!isObject(source)) {
    size.link(source)
    return
  }
  const { type, media_type: mediaType } = source
  if (type !== 'text' && type !== 'content' && type !== 'base64') size.link(source['url'])
  for (const name in source) {
    const value = source[name]
    if (name === 'type' || name === 'media_type') size.label(value)
    else if (name === 'content' || (name === 'data' && type === 'text')) measure(value, size)
    else if (name === 'data' && type === 'base64' && typeof value === 'string') size.payload(typeof mediaType === 'string' ? mediaType : '', value)
    else if (name === 'url') {
      if (type === 'text' || type === 'content' || type === 'base64') size.link(value)
    } else size.unknown(name, value)
  }
}
