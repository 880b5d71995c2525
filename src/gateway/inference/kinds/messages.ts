import { fail } from '../../../platform/errors.ts'
import { Secret } from '../../../platform/security/secret.ts'
import type { Forwarded, HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import { parseRouterFields, type RouterFields, routerOnlyNames } from '../../wire/chat/router-fields.ts'
import { unseenDigitsOf } from '../../wire/json/json-body.ts'
import { editMembers } from '../../wire/json/json-members.ts'
import { providerCredential } from '../../wire/messages/credentials.ts'
import { messagesFormat } from '../../wire/messages/format.ts'
import { lastUserText, type MessagesFacts, messagesFacts } from '../../wire/messages/request/facts.ts'
import { refuseProviderRun } from '../../wire/messages/request/hub-tools.ts'
import { messagesToHub } from '../../wire/messages/request/to-hub.ts'
import { performChat } from '../attempt/perform-chat.ts'
import { refuseDearerMessages } from '../media/surcharges.ts'
import type { Kind } from './kind.ts'
import { parseObject } from './parse-object.ts'
import { asksThought, type CallInput, type ParsedRequest } from './request.ts'
import { thinkingWithin, withFields } from './thinking-length.ts'

/** Requests in Anthropic's Messages format. A route that takes this format gets them in this format. For all other routes the gateway translates them. */
export const messagesKind: Kind = {
  usageKind: 'messages',
  modelKind: 'chat',
  hasOutput: true,
  format: messagesFormat,
  perform: performChat,
  parse: parseMessages,
  complete: () => null,
}

/** The headers of the format that a relay passes on. */
const relayedHeaders = ['anthropic-version', 'anthropic-beta'] as const

/** Parses a body in the messages format and the headers that the endpoint lets through. Throws `bad_request` and `bad_steps`. */
export function parseMessages({ bytes, headers, query }: CallInput): ParsedRequest {
  const { fields, stripped, touched } = parseRouterFields(parseObject(bytes))
  const credential = providerCredential(headers)
  const secretOf = (text: string | null): Secret | null => (text === null ? null : new Secret(text))
  return new MessagesRequest(messagesFacts(stripped, unseenDigitsOf(bytes)), fields, {
    native: {
      format: 'anthropic',
      body: stripped,
      bytes: touched ? editMembers(bytes, withoutRouterFields) : bytes,
      stream: stripped['stream'] === true,
      headers: Object.fromEntries(relayedHeaders.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]]]))),
      query,
    },
    forwarded: credential === null ? null : { authorization: secretOf(credential.authorization), xApiKey: secretOf(credential.xApiKey) },
    overflows: overflowOf(headers['x-br-overflow']),
  })
}

const withoutRouterFields: ReadonlyMap<string, undefined> = new Map(routerOnlyNames.map(name => [name, undefined]))

/** Returns true for `byok`: the saved key is tried after a forwarded credential that has reached its rate limit. */
function overflowOf(header: string | undefined): boolean {
  const text = header?.trim() ?? ''
  if (text !== '' && text !== 'byok') throw fail('bad_request', { message: 'x-br-overflow must be "byok" or left out.' })
  return text === 'byok'
}

interface Sent {
  readonly native: NativeRequest
  readonly forwarded: Forwarded | null
  readonly overflows: boolean
}

/** A messages request. It is translated when a route first needs the hub format. A relay never needs it. */
class MessagesRequest implements ParsedRequest {
  readonly operation = 'chat'
  readonly answers = 1
  readonly asksThought: boolean
  readonly withholdUsage = false
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
  readonly forwarded: Forwarded | null
  readonly overflows: boolean
  readonly #facts: MessagesFacts
  #hub: HubRequest | null = null

  constructor(facts: MessagesFacts, fields: RouterFields, { native, forwarded, overflows }: Sent) {
    this.#facts = facts
    this.modelId = facts.model
    this.fields = fields
    this.stream = facts.stream
    this.maxTokens = facts.maxTokens
    this.promptTokens = facts.promptTokens
    this.promptMedia = facts.promptMedia
    this.promptUnreadTokens = facts.promptUnreadTokens
    this.promptDigitTokens = facts.promptDigitTokens
    this.needs = { tools: facts.hasTools, vision: facts.hasImages }
    this.native = native
    this.asksThought = asksThought(this.native.body)
    this.forwarded = forwarded
    this.overflows = overflows
  }

  get hub(): HubRequest {
    this.#hub ??= { operation: 'chat', ...messagesToHub(this.native.body), bytes: null, stream: this.stream, translated: true }
    return this.#hub
  }

  checkFor({ route, byok }: Attempt): void {
    if (route.dialect !== this.native.format) void this.hub
    else if (!byok) {
      refuseProviderRun(this.native.body)
      refuseDearerMessages(this.native.body)
    }
  }

  promptText(): string {
    return lastUserText(this.native.body)
  }

  withMaxTokens(answerMaxTokens: number): ParsedRequest {
    const { body, bytes } = this.native
    const changed = new Map<string, unknown>([...thinkingWithin(body, answerMaxTokens), ['max_tokens', answerMaxTokens]])
    const texts = new Map([...changed].map(([name, value]) => [name, value === undefined ? undefined : JSON.stringify(value)]))
    const native: NativeRequest = {
      ...this.native,
      body: withFields(body, changed),
      bytes: bytes === null ? null : editMembers(bytes, texts),
    }
    return new MessagesRequest({ ...this.#facts, maxTokens: answerMaxTokens }, this.fields, { native, forwarded: this.forwarded, overflows: this.overflows })
  }
}
