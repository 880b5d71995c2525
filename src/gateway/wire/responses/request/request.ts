import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { modelOf } from '../../chat/chat.ts'
import { checkCallableCount, checkMessageCount, checkPartCount, checkToolCount } from '../../list-bounds.ts'
import { type PromptMedia, PromptSize } from '../../prompt-size.ts'
import { isGiven, textOf } from '../json.ts'
import { callableCount, checkToolChoice, checkTools } from './tools.ts'

/** The facts about a Responses request that the pipeline needs. */
export interface ParsedResponses {
  readonly model: string
  readonly stream: boolean
  readonly maxTokens: number | null
  readonly promptTokensEstimate: number
  /** Left out if the prompt has no media. */
  readonly promptMedia?: PromptMedia
  /** The part of the estimate that a provider may not read: thinking of earlier turns, and settings. Left out if there is none. */
  readonly promptUnreadTokens?: number
  /** The part of the estimate that only tokenizers with a token for each digit count. Left out if there is none. */
  readonly promptDigitTokens?: number
  readonly hasTools: boolean
  readonly hasImages: boolean
}

/** Tokens around each item. */
const itemTokens = 4

/** Fields that refer to data that a server stores between two calls. The gateway stores none. */
const keeping: Readonly<Record<string, string>> = {
  previous_response_id: 'No response is stored here; send the whole conversation as "input".',
  conversation: 'No conversation is stored here; send the whole of it as "input".',
  prompt: 'No prompt templates are stored here; send "instructions" and "input".',
}

/**
 * Checks a Responses request and reads the facts that metering and routing need. Unknown fields are passed on, or are reported as dropped. null counts as
 * absent. `digits` is the number of digits that long numbers have lost in `body`, from `unseenDigitsOf`. Throws `bad_request` that names the field, and
 * `unsupported_operation` for features that no route offers.
 */
export function parseResponses(body: JsonObject, digits = 0): ParsedResponses {
  const model = modelOf(body)
  for (const [name, why] of Object.entries(keeping)) if (isGiven(body[name])) throw fail('unsupported_operation', { message: `"${name}": ${why}` })
  if (body['background'] === true) throw fail('unsupported_operation', { message: '"background": responses run while the caller waits; leave it out.' })
  const { input, instructions, stream, tools } = body
  if (typeof input !== 'string' && !Array.isArray(input)) throw fail('bad_request', { message: '"input" must be a string or an array of items.' })
  if (input.length === 0) throw fail('bad_request', { message: '"input" must not be empty.' })
  if (isGiven(instructions) && typeof instructions !== 'string') throw fail('bad_request', { message: '"instructions" must be a string.' })
  if (isGiven(stream) && typeof stream !== 'boolean') throw fail('bad_request', { message: '"stream" must be true or false.' })
  if (Array.isArray(input)) checkItems(input)
  if (Array.isArray(tools)) checkToolCount(tools)
  checkTools(tools, 'tools')
  const callable = callableCount(body)
  checkCallableCount(callable)
  checkToolChoice(body['tool_choice'])
  checkRepeated(body)
  const size = sizeOf(body)
  size.digits(digits)
  const { media, unreadTokens, digitTokens } = size
  return {
    model,
    stream: stream === true,
    maxTokens: positive(body['max_output_tokens'], 'max_output_tokens'),
    promptTokensEstimate: size.estimate,
    ...(unreadTokens === 0 ? {} : { promptUnreadTokens: unreadTokens }),
    ...(digitTokens === 0 ? {} : { promptDigitTokens: digitTokens }),
    ...(media === undefined ? {} : { promptMedia: media }),
    hasTools: callable > 0 || (Array.isArray(tools) && tools.length > 0),
    hasImages: size.hasImages,
  }
}

/** Fields that the reply repeats, without `tools`. `tools` needs no check here, because the estimate of the prompt already serialises it. */
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

/**
 * Throws RangeError for a field that is nested too deeply to be written. Without this check, the error would occur only when the reply is written, after
 * the provider has done paid work.
 */
function checkRepeated(body: JsonObject): void {
  for (const name of repeated) if (typeof body[name] === 'object') JSON.stringify(body[name])
}

/** Refuses items that refer to stored data, because no route can serve them. Also refuses items with tools that a provider would run. */
function checkItems(items: readonly unknown[]): void {
  checkMessageCount(items, 'input')
  items.forEach((item, index) => {
    if (!isObject(item)) throw fail('bad_request', { message: `"input[${index}]" must be an object.` })
    if (isReference(item))
      throw fail('unsupported_operation', { message: `"input[${index}]" refers to a stored item, and nothing is stored here. Send the item itself.` })
    checkFiles(item['content'], `input[${index}].content`)
    checkFiles(item['output'], `input[${index}].output`)
    // An `mcp_list_tools` item describes the tools of a remote MCP server but offers none of them. Such an item is accepted only with the caller's own
    // provider key.
    if (item['type'] !== 'mcp_list_tools') checkTools(item['tools'], `input[${index}].tools`)
  })
}

/** True for a reference to a stored item. A reference may omit its type; a message without a type has a role. */
const isReference = ({ type, role, id }: JsonObject): boolean => type === 'item_reference' || (!isGiven(type) && !isGiven(role) && isGiven(id))

/** Refuses files that are given by their id. Such a file would belong to the owner of the provider's key. */
function checkFiles(content: unknown, at: string): void {
  if (isObject(content)) checkFile(content, at)
  else if (Array.isArray(content)) {
    checkPartCount(content, () => at)
    for (const [index, part] of content.entries()) checkFile(part, at, index)
  }
}

function checkFile(part: unknown, at: string, index?: number): void {
  if (!isObject(part) || !isGiven(part['file_id'])) return
  const instead = part['type'] === 'input_file' ? '"file_data" or "file_url"' : '"image_url"'
  throw fail('unsupported_operation', {
    message: `"${at}${index === undefined ? '' : `[${index}]`}.file_id": no files are stored here. Send the content itself in ${instead}.`,
  })
}

/** Fields that are not settings of the call. */
const readFields: ReadonlySet<string> = new Set(['model', 'input', 'instructions', 'tools', 'tool_choice', 'text'])

function sizeOf(body: JsonObject): PromptSize {
  const size = new PromptSize(itemTokens)
  const { input, instructions, tools, text } = body
  if (typeof instructions === 'string') size.text(instructions)
  if (typeof input === 'string') size.text(input)
  else if (Array.isArray(input)) {
    size.tokens(itemTokens * objectsOf(input).length)
    for (const item of input) weighItem(item, size)
  }
  if (Array.isArray(tools)) {
    if (body['tool_choice'] === 'none') size.unread(tools)
    else size.json(tools)
  }
  size.label(body['tool_choice'])
  size.label(text)
  size.settings(body, readFields)
  return size
}

/** Members of items and parts that do not count in the estimate while they are short. */
const labels: ReadonlySet<string> = new Set(['type', 'id', 'role', 'status', 'phase', 'detail'])

/** Members of items and parts that every provider reads. */
const texts: ReadonlySet<string> = new Set(['text', 'refusal', 'name', 'arguments', 'input'])

function weighOther(name: string, value: unknown, size: PromptSize): void {
  if (labels.has(name)) size.label(value)
  else if (texts.has(name)) {
    size.text(name)
    size.any(value)
  } else size.unknown(name, value)
}

function weighItem(item: unknown, size: PromptSize): void {
  if (!isObject(item)) {
    size.any(item)
    return
  }
  for (const name in item) {
    const value = item[name]
    if (name === 'content' || name === 'output' || name === 'summary') weighContent(value, size)
    else if (name === 'encrypted_content') size.sealed(value)
    else if (name === 'tools') size.json(value)
    else weighOther(name, value, size)
  }
}

/** Measures a text, a part, or a list of parts. */
function weighContent(content: unknown, size: PromptSize): void {
  if (isObject(content)) weighPart(content, size)
  else if (Array.isArray(content))
    for (const part of content) {
      if (isObject(part)) weighPart(part, size)
      else size.json(part)
    }
  else size.json(content)
}

function weighPart(part: JsonObject, size: PromptSize): void {
  const { type } = part
  const isImage = type === 'input_image' || type === 'computer_screenshot'
  if (type === 'input_image') size.hasImages = true
  for (const name in part) {
    const value = part[name]
    if (name === 'image_url' && isImage) size.image(value, part['detail'])
    else if (name === 'file_url' && type === 'input_file') size.link(value)
    else if (name === 'file_data' && type === 'input_file' && typeof value === 'string') {
      if (!size.dataUrl(value)) size.payload('', value)
    } else if (type === 'input_audio' && (name === 'data' || name === 'input_audio')) weighAudio(value, size)
    else weighOther(name, value, size)
  }
}

/** Measures sound, given as base64 or in an object with its format. */
function weighAudio(audio: unknown, size: PromptSize): void {
  if (typeof audio === 'string') {
    if (!size.dataUrl(audio)) size.payload('audio/', audio)
  } else if (isObject(audio))
    for (const name in audio) {
      if (name === 'data') weighAudio(audio[name], size)
      else if (name === 'format') size.label(audio[name])
      else size.unknown(name, audio[name])
    }
  else size.any(audio)
}

function positive(value: unknown, name: string): number | null {
  if (!isGiven(value)) return null
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1)
    throw fail('bad_request', { message: `"${name}" must be a whole number of at least 1.` })
  return value
}

/** Returns the text of the last user turn, or '' if there is none. */
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
