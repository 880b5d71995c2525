import { fail } from '../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../platform/json.ts'
import { filePartTokens, imageTokens, modelOf } from '../chat.ts'
import { estimateTokens } from '../usage.ts'
import { isGiven, textOf } from './json.ts'
import { checkToolChoice, checkTools } from './tools.ts'

/** What the pipeline needs to know of a Responses request. */
export interface ParsedResponses {
  readonly model: string
  readonly stream: boolean
  readonly maxTokens: number | null
  readonly promptTokensEstimate: number
  readonly hasTools: boolean
  readonly hasImages: boolean
}

/** Tokens around each item. */
const itemTokens = 4

/** Fields that ask for something that would have to be kept here between two calls. */
const keeping: Readonly<Record<string, string>> = {
  previous_response_id: 'No response is stored here; send the whole conversation as "input".',
  conversation: 'No conversation is stored here; send the whole of it as "input".',
  prompt: 'No prompt templates are stored here; send "instructions" and "input".',
}

/**
 * Checks a Responses request and reads what metering and routing need. Unknown fields go on or are named as not carried. null counts
 * as absent. Throws `bad_request` that names the field, and `unsupported_operation` for what is not offered here on any route.
 */
export function parseResponses(body: JsonObject): ParsedResponses {
  const model = modelOf(body)
  for (const [name, why] of Object.entries(keeping)) if (isGiven(body[name])) throw fail('unsupported_operation', { message: `"${name}": ${why}` })
  if (body['background'] === true) throw fail('unsupported_operation', { message: '"background": responses run while the caller waits; leave it out.' })
  const { input, instructions, stream, tools } = body
  if (typeof input !== 'string' && !Array.isArray(input)) throw fail('bad_request', { message: '"input" must be a string or an array of items.' })
  if (input.length === 0) throw fail('bad_request', { message: '"input" must not be empty.' })
  if (isGiven(instructions) && typeof instructions !== 'string') throw fail('bad_request', { message: '"instructions" must be a string.' })
  if (isGiven(stream) && typeof stream !== 'boolean') throw fail('bad_request', { message: '"stream" must be true or false.' })
  if (Array.isArray(input)) checkItems(input)
  checkTools(tools, 'tools')
  checkToolChoice(body['tool_choice'])
  checkRepeated(body)
  const size = sizeOf(body)
  return {
    model,
    stream: stream === true,
    maxTokens: positive(body['max_output_tokens'], 'max_output_tokens'),
    promptTokensEstimate: estimateTokens(size.bytes) + size.tokens,
    hasTools: Array.isArray(tools) && tools.length > 0,
    hasImages: size.hasImages,
  }
}

/** Fields that the reply repeats, beside those that are weighed. */
const repeated = [
  'metadata',
  'reasoning',
  'tool_choice',
  'text',
  'truncation',
  'user',
  'prompt_cache_key',
  'parallel_tool_calls',
  'temperature',
  'top_p',
] as const

/** What cannot be written is said before anybody is dialed and paid, not when the reply is made. Throws the RangeError of a body that is nested too deeply. */
function checkRepeated(body: JsonObject): void {
  for (const name of repeated) if (typeof body[name] === 'object') JSON.stringify(body[name])
}

/** What no route can serve is refused whatever provider is dialed: references to what would have to be stored. */
function checkItems(items: readonly unknown[]): void {
  items.forEach((item, index) => {
    if (!isObject(item)) throw fail('bad_request', { message: `"input[${index}]" must be an object.` })
    if (item['type'] === 'item_reference')
      throw fail('unsupported_operation', { message: `"input[${index}]" refers to a stored item, and nothing is stored here. Send the item itself.` })
    checkFiles(item['content'], `input[${index}].content`)
    checkFiles(item['output'], `input[${index}].output`)
    if (item['type'] === 'tool_search_output') checkTools(item['tools'], `input[${index}].tools`)
  })
}

/** A file by its id would be one of whoever owns the key of the provider. */
function checkFiles(content: unknown, at: string): void {
  if (isObject(content)) checkFile(content, at)
  else if (Array.isArray(content)) for (const [index, part] of content.entries()) checkFile(part, `${at}[${index}]`)
}

function checkFile(part: unknown, at: string): void {
  if (!isObject(part) || !isGiven(part['file_id'])) return
  const instead = part['type'] === 'input_file' ? '"file_data" or "file_url"' : '"image_url"'
  throw fail('unsupported_operation', { message: `"${at}.file_id": no files are stored here. Send the content itself in ${instead}.` })
}

interface PromptSize {
  bytes: number
  tokens: number
  hasImages: boolean
}

function sizeOf(body: JsonObject): PromptSize {
  const size: PromptSize = { bytes: 0, tokens: itemTokens, hasImages: false }
  const { input, instructions, tools, text } = body
  if (typeof instructions === 'string') size.bytes += Buffer.byteLength(instructions)
  if (typeof input === 'string') size.bytes += Buffer.byteLength(input)
  else {
    size.tokens += itemTokens * objectsOf(input).length
    size.bytes += weigh(input, size)
  }
  if (Array.isArray(tools)) size.bytes += weigh(tools, size)
  if (isObject(text) && isObject(text['format']) && text['format']['type'] !== 'text') size.bytes += weigh(text['format'], size)
  return size
}

/** Bytes of everything as JSON but for media, which count by the piece, and what names things without saying anything. */
function weigh(value: unknown, size: PromptSize): number {
  const text = JSON.stringify(value, (key, inner: unknown) => {
    if (key === 'encrypted_content' || key === 'id' || key === 'call_id') return undefined
    if (!isObject(inner)) return inner
    switch (inner['type']) {
      case 'input_image':
        size.hasImages = true
        size.tokens += inner['detail'] === 'low' ? imageTokens.low : imageTokens.high
        return ''
      case 'input_file':
      case 'input_audio':
        size.tokens += filePartTokens
        return ''
      default:
        return inner
    }
  })
  return Buffer.byteLength(text)
}

function positive(value: unknown, name: string): number | null {
  if (!isGiven(value)) return null
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1)
    throw fail('bad_request', { message: `"${name}" must be a whole number of at least 1.` })
  return value
}

/** The text of the last user turn; '' when it has none. */
export function promptTextOfInput(body: JsonObject): string {
  const { input } = body
  if (typeof input === 'string') return input
  const last = objectsOf(input).findLast(item => item['role'] === 'user')
  const content = last?.['content']
  if (typeof content === 'string') return content
  return objectsOf(content)
    .flatMap(part => textOf(part['text']) ?? [])
    .join('\n')
}
