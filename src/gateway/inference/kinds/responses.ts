import type { HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import { parseRouterFields, type RouterFields, routerOnlyNames } from '../../wire/chat/router-fields.ts'
import { unseenDigitsOf } from '../../wire/json/json-body.ts'
import { editMembers } from '../../wire/json/json-members.ts'
import { responsesFormat } from '../../wire/responses/format.ts'
import { responseUsage } from '../../wire/responses/reply/response-object.ts'
import { type ParsedResponses, parseResponses, promptTextOfInput } from '../../wire/responses/request/request.ts'
import { responsesToChat } from '../../wire/responses/request/to-chat.ts'
import { performChat } from '../attempt/perform-chat.ts'
import type { Kind } from './kind.ts'
import { parseObject } from './parse-object.ts'
import { asksThought, type ParsedRequest } from './request.ts'

/** Requests in OpenAI's Responses format. A route that takes this format gets them in this format. For all other routes the gateway translates them. */
export const responsesKind: Kind = {
  usageKind: 'responses',
  modelKind: 'chat',
  hasOutput: true,
  format: responsesFormat,
  perform: performChat,

  parse({ bytes }): ParsedRequest {
    const { fields, stripped, touched } = parseRouterFields(parseObject(bytes))
    const sent = touched ? editMembers(bytes, withoutRouterFields) : bytes
    return new ResponsesRequest(parseResponses(stripped, unseenDigitsOf(bytes)), fields, nativeOf(stripped, sent))
  },

  /** Adds `usage` when the provider reports none, so that every caller can add up. */
  complete(reply, usage) {
    const given = reply['usage']
    return typeof given === 'object' && given !== null ? null : { ...reply, usage: responseUsage(usage) }
  },
}

const withoutRouterFields: ReadonlyMap<string, undefined> = new Map(routerOnlyNames.map(name => [name, undefined]))

function nativeOf(body: NativeRequest['body'], bytes: Buffer | null): NativeRequest {
  return { format: 'openai-responses', body, bytes, stream: body['stream'] === true, headers: {}, query: '' }
}

/** A Responses request. It is translated when a route first needs the hub format. A relay never needs it. */
class ResponsesRequest implements ParsedRequest {
  readonly operation = 'chat'
  readonly answers = 1
  readonly asksThought: boolean
  readonly withholdUsage = false
  readonly forwarded = null
  readonly modelId: string
  readonly fields: RouterFields
  readonly stream: boolean
  readonly maxTokens: number | null
  readonly promptTokens: number
  readonly promptMedia: ParsedRequest['promptMedia']
  readonly promptUnreadTokens: ParsedRequest['promptUnreadTokens']
  readonly promptDigitTokens: ParsedRequest['promptDigitTokens']
  readonly needs: ParsedRequest['needs']
  readonly native: NativeRequest
  readonly #parsed: ParsedResponses
  #hub: HubRequest | null = null

  constructor(parsed: ParsedResponses, fields: RouterFields, native: NativeRequest) {
    this.#parsed = parsed
    this.modelId = parsed.model
    this.fields = fields
    this.stream = parsed.stream
    this.maxTokens = parsed.maxTokens
    this.promptTokens = parsed.promptTokensEstimate
    this.promptMedia = parsed.promptMedia
    this.promptUnreadTokens = parsed.promptUnreadTokens
    this.promptDigitTokens = parsed.promptDigitTokens
    this.needs = { tools: parsed.hasTools, vision: parsed.hasImages }
    this.native = native
    this.asksThought = asksThought(this.native.body)
  }

  get hub(): HubRequest {
    this.#hub ??= { operation: 'chat', ...responsesToChat(this.native.body), bytes: null, stream: this.stream, translated: true }
    return this.#hub
  }

  checkFor({ route }: Attempt): void {
    if (route.dialect !== this.native.format) void this.hub
  }

  promptText(): string {
    return promptTextOfInput(this.native.body)
  }

  withMaxTokens(answerMaxTokens: number): ParsedRequest {
    const { body, bytes } = this.native
    const capped = bytes === null ? null : editMembers(bytes, new Map([['max_output_tokens', String(answerMaxTokens)]]))
    const native = nativeOf({ ...body, max_output_tokens: answerMaxTokens }, capped)
    return new ResponsesRequest({ ...this.#parsed, maxTokens: answerMaxTokens }, this.fields, native)
  }
}
