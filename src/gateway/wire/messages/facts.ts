import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/json.ts'
import { filePartTokens, imageTokens, modelOf } from '../chat.ts'
import { estimateTokens } from '../usage.ts'

/** What the pipeline needs to know of a messages request, whoever serves it. */
export interface MessagesFacts {
  readonly model: string
  readonly stream: boolean
  /** `max_tokens`; null where it is absent or no ceiling at all, which the provider, or the translation, refuses. */
  readonly maxTokens: number | null
  /** Estimate: text by its bytes, images and documents by a fixed number. */
  readonly promptTokens: number
  readonly hasTools: boolean
  readonly hasImages: boolean
}

/** Tokens around each message: role and separators. */
const messageTokens = 4

/**
 * Reads what routing and metering need. Whether the rest is well formed is the provider's business where the request goes on as it is.
 * Throws `bad_request` that names the field.
 */
export function messagesFacts(body: Readonly<Record<string, unknown>>): MessagesFacts {
  const model = modelOf(body)
  const { messages, tools, stream, max_tokens: maxTokens } = body
  if (!Array.isArray(messages) || messages.length === 0) throw fail('bad_request', { message: '"messages" must be a non-empty array.' })
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') throw fail('bad_request', { message: '"stream" must be true or false.' })
  const size: Size = { bytes: 0, tokens: messages.length * messageTokens, hasImages: false }
  for (const message of messages) if (isObject(message)) measure(message['content'], size)
  measure(body['system'], size)
  if (Array.isArray(tools)) size.bytes += Buffer.byteLength(JSON.stringify(tools))
  return {
    model,
    stream: stream === true,
    maxTokens: typeof maxTokens === 'number' && Number.isSafeInteger(maxTokens) && maxTokens > 0 ? maxTokens : null,
    promptTokens: estimateTokens(size.bytes) + size.tokens,
    hasTools: Array.isArray(tools) && tools.length > 0,
    hasImages: size.hasImages,
  }
}

/** The text of the last user turn; '' when it has none. */
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

interface Size {
  bytes: number
  tokens: number
  hasImages: boolean
}

function measure(content: unknown, size: Size): void {
  if (typeof content === 'string') size.bytes += Buffer.byteLength(content)
  else if (Array.isArray(content)) for (const block of content) if (isObject(block)) measureBlock(block, size)
}

function measureBlock(block: Readonly<Record<string, unknown>>, size: Size): void {
  switch (block['type']) {
    case 'text':
      measure(block['text'], size)
      break
    case 'thinking':
      measure(block['thinking'], size)
      break
    case 'image':
      size.hasImages = true
      size.tokens += imageTokens.high
      break
    case 'document':
      measureDocument(block, size)
      break
    case 'tool_result':
      measure(block['content'], size)
      break
    case 'redacted_thinking':
      break
    default:
      size.bytes += Buffer.byteLength(JSON.stringify(block))
  }
}

/** Text is counted as text; of a file only that it is there is known. */
function measureDocument({ source, title, context }: Readonly<Record<string, unknown>>, size: Size): void {
  measure(title, size)
  measure(context, size)
  if (isObject(source) && source['type'] === 'text') measure(source['data'], size)
  else if (isObject(source) && source['type'] === 'content') measure(source['content'], size)
  else size.tokens += filePartTokens
}
