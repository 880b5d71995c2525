import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import { checkCallCount, checkMessageCount, checkPartCount, checkToolCount } from '../../list-bounds.ts'
import { type PromptMedia, PromptSize } from '../../prompt-size.ts'
import { configOf, declarationsOf, fieldOf, nameIn, objectAt, textAt } from '../fields.ts'

/** The facts about a request of Google's API that the pipeline needs on every route. */
export interface GeminiFacts {
  /** The limit on the tokens of all answers together; null: the request gives none. */
  readonly maxTokens: number | null
  /** `candidateCount`: the number of answers. */
  readonly answers: number
  /** The estimate: text by its bytes, media by their assumed tokens. */
  readonly promptTokens: number
  /** Left out if the prompt has no media. */
  readonly promptMedia?: PromptMedia
  /** The part of the estimate that a provider may not read. Left out if there is none. */
  readonly promptUnreadTokens?: number
  /** The part of the estimate that only tokenizers with a token for each digit count. Left out if there is none. */
  readonly promptDigitTokens?: number
  readonly hasTools: boolean
  readonly hasImages: boolean
  /** True when the request asks its model to think. */
  readonly asksThought: boolean
}

/** The assumed number of tokens around each content, for its role and separators. */
const contentTokens = 4
/** Google's own limit of answers. */
const answersMax = 8
/** Output tokens that are assumed for one call, whatever the request says. */
const callTokensMax = 1_000_000_000
/** Fields that are not settings of the call. */
const readFields: ReadonlySet<string> = new Set(['model', 'contents', 'systemInstruction', 'system_instruction', 'tools', 'toolConfig', 'tool_config'])

/**
 * Reads the facts that routing and metering need. If the request is passed on unchanged, the provider checks the rest. `digits` is the number of digits
 * that long numbers have lost in `body`. Throws `bad_request` that names the field.
 */
export function geminiFacts(body: JsonObject, digits = 0): GeminiFacts {
  const { contents, tools } = body
  if (!Array.isArray(contents) || contents.length === 0) throw fail('bad_request', { message: '"contents" must be a non-empty array.' })
  checkMessageCount(contents, 'contents')
  if (Array.isArray(tools)) checkToolCount(tools)
  checkToolCount(declarationsOf(body), 'tools.functionDeclarations')
  const size = new PromptSize(contents.length * contentTokens)
  contents.forEach((content: unknown, index) => {
    if (!isObject(content)) throw fail('bad_request', { message: `"contents[${index}]" must be an object.` })
    measureContent(content, size)
  })
  checkCallCount(size.calls)
  measureContent(fieldOf(body, 'systemInstruction'), size)
  const calling = objectAt(objectAt(body, 'toolConfig'), 'functionCallingConfig')
  if (calling['mode'] === 'NONE') size.unread(tools)
  else size.json(tools)
  size.label(fieldOf(body, 'toolConfig'))
  size.settings(body, readFields)
  size.digits(digits)
  return { ...limitsOf(body), ...sizeOf(size), hasTools: Array.isArray(tools) && tools.length > 0 }
}

function sizeOf(size: PromptSize): Pick<GeminiFacts, 'promptTokens' | 'promptMedia' | 'promptUnreadTokens' | 'promptDigitTokens' | 'hasImages'> {
  const { estimate, media, unreadTokens, digitTokens, hasImages } = size
  return {
    promptTokens: estimate,
    ...(unreadTokens === 0 ? {} : { promptUnreadTokens: unreadTokens }),
    ...(digitTokens === 0 ? {} : { promptDigitTokens: digitTokens }),
    ...(media === undefined ? {} : { promptMedia: media }),
    hasImages,
  }
}

function limitsOf(body: JsonObject): Pick<GeminiFacts, 'maxTokens' | 'answers' | 'asksThought'> {
  const given = fieldOf(body, 'generationConfig')
  if (given !== undefined && given !== null && !isObject(given)) throw fail('bad_request', { message: '"generationConfig" must be an object.' })
  const config = configOf(body)
  const answers = positive(config, 'candidateCount') ?? 1
  if (answers > answersMax) throw fail('bad_request', { message: `"generationConfig.candidateCount" must be at most ${answersMax}.` })
  const most = positive(config, 'maxOutputTokens')
  const thinking = objectAt(config, 'thinkingConfig')
  const names = Object.keys(thinking)
  return {
    answers,
    maxTokens: most === null ? null : Math.min(most * answers, callTokensMax),
    asksThought: names.length > 0 && fieldOf(thinking, 'thinkingBudget') !== 0,
  }
}

function positive(config: JsonObject, name: string): number | null {
  const value = fieldOf(config, name)
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  throw fail('bad_request', { message: `"generationConfig.${name}" must be a whole number of at least 1.` })
}

/** Returns the settings with another limit for each answer, under the name that the client used. */
export function withMaxOutput(body: JsonObject, answerMaxTokens: number): { readonly name: string; readonly config: JsonObject } {
  const config = configOf(body)
  return { name: nameIn(body, 'generationConfig'), config: { ...config, [nameIn(config, 'maxOutputTokens')]: answerMaxTokens } }
}

/** Returns the text of the last turn of the user, or '' if there is none. */
export function lastUserText({ contents }: JsonObject): string {
  const list: readonly unknown[] = Array.isArray(contents) ? contents : []
  const last = list.findLast(content => isObject(content) && content['role'] !== 'model')
  const parts: readonly unknown[] = isObject(last) && Array.isArray(last['parts']) ? last['parts'] : []
  return parts.flatMap(part => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n')
}

function measureContent(content: unknown, size: PromptSize): void {
  if (!isObject(content)) {
    size.any(content)
    return
  }
  for (const name in content) {
    const value = content[name]
    if (name === 'role') size.label(value)
    else if (name === 'parts' && Array.isArray(value)) measureParts(value, size)
    else size.unknown(name, value)
  }
}

function measureParts(parts: readonly unknown[], size: PromptSize): void {
  checkPartCount(parts, () => 'parts')
  for (const part of parts) {
    if (isObject(part)) measurePart(part, size)
    else size.any(part)
  }
}

function measurePart(part: JsonObject, size: PromptSize): void {
  for (const name in part) {
    const value = part[name]
    switch (name) {
      case 'text':
        if (part['thought'] === true) size.thought(value)
        else size.any(value)
        break
      case 'thought':
      case 'videoMetadata':
      case 'video_metadata':
        size.label(value)
        break
      case 'thoughtSignature':
      case 'thought_signature':
        size.sealed(value)
        break
      case 'inlineData':
      case 'inline_data':
        measureInline(value, size)
        break
      case 'fileData':
      case 'file_data':
        measureFile(value, size)
        break
      case 'functionCall':
      case 'function_call':
        size.calls++
        size.any(value)
        break
      case 'functionResponse':
      case 'function_response':
        measureResponse(value, size)
        break
      default:
        size.unknown(name, value)
    }
  }
}

function measureInline(blob: unknown, size: PromptSize): void {
  if (!isObject(blob) || typeof blob['data'] !== 'string') {
    size.any(blob)
    return
  }
  const type = textAt(blob, 'mimeType')
  if (type.toLowerCase().startsWith('image/')) size.hasImages = true
  size.payload(type, blob['data'])
}

function measureFile(file: unknown, size: PromptSize): void {
  if (!isObject(file)) {
    size.link(file)
    return
  }
  const type = textAt(file, 'mimeType')
  if (!type.startsWith('image/')) {
    size.link(fieldOf(file, 'fileUri'))
    return
  }
  size.hasImages = true
  size.image(fieldOf(file, 'fileUri'))
}

/** Measures the result of a function. A result may have pictures and files as parts. */
function measureResponse(response: unknown, size: PromptSize): void {
  if (!isObject(response)) {
    size.any(response)
    return
  }
  for (const name in response) {
    const value = response[name]
    if (name === 'parts' && Array.isArray(value)) measureParts(value, size)
    else if (name === 'id' || name === 'name') size.label(value)
    else size.any(value)
  }
}
