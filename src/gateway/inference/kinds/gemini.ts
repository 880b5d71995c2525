import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import { parseRouterFields, type RouterFields, routerOnlyNames } from '../../wire/chat/router-fields.ts'
import { geminiFormat } from '../../wire/gemini/format.ts'
import { usageMetadata } from '../../wire/gemini/reply/usage.ts'
import { type GeminiFacts, geminiFacts, lastUserText, withMaxOutput } from '../../wire/gemini/request/facts.ts'
import { keepOneName } from '../../wire/gemini/request/one-name.ts'
import { geminiToHub } from '../../wire/gemini/request/to-hub.ts'
import { unseenDigitsOf } from '../../wire/json/json-body.ts'
import { editMembers } from '../../wire/json/json-members.ts'
import { performChat } from '../attempt/perform-chat.ts'
import { refuseDearerGemini } from '../media/surcharges.ts'
import type { Kind } from './kind.ts'
import { parseObject } from './parse-object.ts'
import type { CallInput, ParsedRequest } from './request.ts'

/** The model of a call and the form of its reply. Both are in the path of the request. */
export interface GeminiCall {
  readonly model: string
  readonly stream: boolean
}

/** Requests of Google's generateContent. A route that takes this format gets them in this format. For all other routes the gateway translates them. */
export function geminiKind(call: GeminiCall): Kind {
  return {
    usageKind: 'gemini',
    modelKind: 'chat',
    hasOutput: true,
    format: geminiFormat,
    perform: performChat,
    parse: input => parseGemini(call, input),
    /** Adds the usage when the provider reports none, so that every caller can add up. */
    complete: (reply, usage) => (isObject(reply['usageMetadata']) ? null : { ...reply, usageMetadata: usageMetadata(usage) }),
  }
}

const withoutRouterFields: ReadonlyMap<string, undefined> = new Map(routerOnlyNames.map(name => [name, undefined]))

/** Parses a body of generateContent. Throws `bad_request` and `bad_steps`. */
export function parseGemini({ model, stream }: GeminiCall, { bytes }: Pick<CallInput, 'bytes'>): ParsedRequest {
  const { fields, stripped, touched } = parseRouterFields(parseObject(bytes))
  // The bytes still have what is removed here, so the body is written again.
  const sent = keepOneName(stripped) ? null : touched ? editMembers(bytes, withoutRouterFields) : bytes
  const native = nativeOf(stripped, sent, stream)
  return new GeminiRequest(model, geminiFacts(stripped, unseenDigitsOf(bytes)), model === 'best' ? { ...fields, best: true } : fields, native)
}

/**
 * Parses a body of countTokens: contents alone, or a whole request in `generateContentRequest`. The provider is asked for the inner request. Throws
 * `bad_request` and `bad_steps`.
 */
export function parseGeminiCount(model: string, { bytes }: Pick<CallInput, 'bytes'>): ParsedRequest {
  const { fields, stripped } = parseRouterFields(parseObject(bytes))
  keepOneName(stripped)
  const inner = stripped['generateContentRequest'] ?? stripped['generate_content_request'] ?? stripped
  if (!isObject(inner)) throw fail('bad_request', { message: '"generateContentRequest" must be an object.' })
  return new GeminiRequest(model, geminiFacts(inner, unseenDigitsOf(bytes)), fields, nativeOf(inner, null, false))
}

function nativeOf(body: NativeRequest['body'], bytes: Buffer | null, stream: boolean): NativeRequest {
  return { format: 'gemini', body, bytes, stream, headers: {}, query: '' }
}

/** A request of generateContent. It is translated when a route first needs the hub format. A relay never needs it. */
class GeminiRequest implements ParsedRequest {
  readonly operation = 'chat'
  readonly withholdUsage = false
  readonly forwarded = null
  readonly modelId: string
  readonly fields: RouterFields
  readonly stream: boolean
  readonly maxTokens: number | null
  readonly answers: number
  readonly asksThought: boolean
  readonly promptTokens: number
  readonly promptMedia: ParsedRequest['promptMedia']
  readonly promptUnreadTokens: ParsedRequest['promptUnreadTokens']
  readonly promptDigitTokens: ParsedRequest['promptDigitTokens']
  readonly needs: ParsedRequest['needs']
  readonly native: NativeRequest
  readonly #facts: GeminiFacts
  #hub: HubRequest | null = null

  constructor(modelId: string, facts: GeminiFacts, fields: RouterFields, native: NativeRequest) {
    this.#facts = facts
    this.modelId = modelId
    this.fields = fields
    this.stream = native.stream
    this.maxTokens = facts.maxTokens
    this.answers = facts.answers
    this.asksThought = facts.asksThought
    this.promptTokens = facts.promptTokens
    this.promptMedia = facts.promptMedia
    this.promptUnreadTokens = facts.promptUnreadTokens
    this.promptDigitTokens = facts.promptDigitTokens
    this.needs = { tools: facts.hasTools, vision: facts.hasImages }
    this.native = native
  }

  get hub(): HubRequest {
    this.#hub ??= { operation: 'chat', ...geminiToHub(this.modelId, this.native.body, this.stream), bytes: null, stream: this.stream, translated: true }
    return this.#hub
  }

  checkFor({ route, byok }: Attempt): void {
    if (route.dialect !== this.native.format) void this.hub
    else if (!byok) refuseDearerGemini(this.native.body)
  }

  promptText(): string {
    return lastUserText(this.native.body)
  }

  withMaxTokens(answerMaxTokens: number): ParsedRequest {
    const { body, bytes, stream } = this.native
    const { name, config } = withMaxOutput(body, answerMaxTokens)
    const capped = bytes === null ? null : editMembers(bytes, new Map([[name, JSON.stringify(config)]]))
    const facts = { ...this.#facts, maxTokens: answerMaxTokens * this.answers }
    return new GeminiRequest(this.modelId, facts, this.fields, nativeOf({ ...body, [name]: config }, capped, stream))
  }
}
