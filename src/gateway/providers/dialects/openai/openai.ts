import { isObject } from '../../../../platform/values/json.ts'
import { nameReasoning } from '../../../wire/chat/chat-reply.ts'
import type { ChatStreamDecoder } from '../../../wire/chat/chat-stream.ts'
import { ChatStreamTap } from '../../../wire/chat/chat-tap.ts'
import { hasDoubles } from '../../../wire/json/json-doubles.ts'
import { type TokenUsage, usageFromOpenAi, usageOfEmbeddings } from '../../../wire/usage.ts'
import type { Dialect, HubRequest, StreamTap, Target, UpstreamRequest } from '../../dialect.ts'
import { classifyFailure } from '../../failure.ts'
import type { Provider } from '../../provider.ts'
import { userAgent } from '../../user-agent.ts'
import { answersInChat } from '../answers.ts'
import { jsonBody, withoutHalves } from '../json-values.ts'
import { withoutSignedIds } from '../signed-ids.ts'
import { OpenAiStreamDecoder } from './openai-decoder.ts'
import { plainRequest } from './openai-plain.ts'

/** The dialect of OpenAI chat completions and embeddings. It is the hub format itself, so nothing is translated and few fields change. */
export const openAiDialect: Dialect = {
  request(request: HubRequest, target: Target): UpstreamRequest {
    const { chat, embeddings } = urlsOf(target.provider)
    const plain = request.translated ? plainRequest(request, target) : null
    return {
      method: 'POST',
      url: request.operation === 'chat' ? chat : embeddings,
      headers: openAiHeaders(request, target),
      ...(plain === null ? bodyOf(request, target) : bodyOf({ ...request, body: plain.body }, target, withoutHalves)),
      dropped: plain === null ? none : plain.dropped,
    }
  },
  relay: null,
  reply: (_operation, reply): Record<string, unknown> => nameReasoning(reply) ?? reply,
  answers: answersInChat,
  usageOf(operation, reply): TokenUsage | null {
    const usage = typeof reply === 'object' && reply !== null && 'usage' in reply ? reply.usage : null
    return operation === 'embeddings' ? usageOfEmbeddings(usage) : usageFromOpenAi(usage)
  },
  failure: classifyFailure,
  decoder: (eventMaxBytes): ChatStreamDecoder => new OpenAiStreamDecoder(eventMaxBytes),
  tap: (): StreamTap => new ChatStreamTap(),
}

const none: readonly string[] = Object.freeze([])

interface Urls {
  readonly chat: string
  readonly embeddings: string
}

/** The URLs of each provider. They are built once per provider, because look-ups by the same string object are faster. */
const urlsByProvider = new WeakMap<Provider, Urls>()

function urlsOf(provider: Provider): Urls {
  const known = urlsByProvider.get(provider)
  if (known !== undefined) return known
  const made = { chat: `${provider.baseUrl}/chat/completions`, embeddings: `${provider.baseUrl}/embeddings` }
  urlsByProvider.set(provider, made)
  return made
}

/**
 * Returns the gateway's own headers. No header of the caller is sent to a provider. The accepted encoding is identity, so that the gateway can read
 * and relay bytes immediately.
 */
export function openAiHeaders({ stream }: Pick<HubRequest, 'stream'>, { provider, credential }: Target): Readonly<Record<string, string>> {
  // Calls with one credential of one provider have the same headers, so they are made once.
  const owner = credential ?? provider
  const known = headersByOwner.get(owner)
  if (known?.provider === provider && known.stream === stream) return known.headers
  const headers = Object.freeze(makeHeaders(stream, provider, credential))
  headersByOwner.set(owner, { provider, stream, headers })
  return headers
}

interface KnownHeaders {
  readonly provider: Provider
  readonly stream: boolean
  readonly headers: Readonly<Record<string, string>>
}

const headersByOwner = new WeakMap<object, KnownHeaders>()

function makeHeaders(stream: boolean, provider: Provider, credential: Target['credential']): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    'user-agent': userAgent,
  }
  if (credential === null) return headers
  switch (provider.auth) {
    case 'bearer':
      headers['authorization'] = `Bearer ${credential.reveal()}`
      break
    case 'x-api-key':
    case 'api-key':
    case 'x-key':
    case 'x-goog-api-key':
      headers[provider.auth] = credential.reveal()
      break
    case 'identity':
    case 'none':
      break
  }
  return headers
}

/**
 * Returns the client's bytes if nothing must change. Otherwise returns its fields in their order, with the few edits that the target needs. A body
 * with a repeated name is written again. A provider that reads the first occurrence would otherwise serve a request other than the priced one.
 */
function bodyOf(request: HubRequest, target: Target, mend?: (json: string) => string): Pick<UpstreamRequest, 'body' | 'unwritten'> {
  const { body, bytes } = request
  const { provider, upstreamModel } = target
  const edits = editsOf(request, provider, upstreamModel)
  if (edits === null && bytes !== null && !hasDoubles(bytes, body)) return { body: bytes }
  if (edits === null) return jsonBody(body, target, mend)
  const edited: Record<string, unknown> = { ...body }
  for (const [name, value] of Object.entries(edits)) {
    if (value === undefined) delete edited[name]
    else edited[name] = value
  }
  return jsonBody(edited, target, mend)
}

/** Returns the fields to set. A field with the value undefined is removed. Null means that nothing must change. */
function editsOf({ body, operation, stream }: HubRequest, provider: Provider, upstreamModel: string): Record<string, unknown> | null {
  const edits: Record<string, unknown> = {}
  if (body['model'] !== upstreamModel) edits['model'] = upstreamModel
  if (operation === 'chat') {
    if (stream) editStreamOptions(body, provider, edits)
    editCeilings(body, provider, edits)
    const unsigned = withoutSignedIds(body['messages'])
    if (unsigned !== null) edits['messages'] = unsigned
    if (provider.quirks.includes('system-as-user') && Array.isArray(body['messages'])) {
      const messages: readonly unknown[] = unsigned ?? body['messages']
      if (messages.some(isSystem)) edits['messages'] = messages.map(message => (isSystem(message) ? { ...message, role: 'user' } : message))
    }
  }
  return Object.keys(edits).length === 0 ? null : edits
}

/**
 * Writes the limit of output tokens under the name that the provider reads. Many servers know `max_tokens` only and ignore the newer name, so their answer
 * would have no limit while the charge has one. The lower one of two limits counts. Whoever registered a server knows which name it reads, so a single
 * limit keeps its name there. Decision 0776.
 */
function editCeilings(body: HubRequest['body'], provider: Provider, edits: Record<string, unknown>): void {
  const { max_tokens: plain, max_completion_tokens: newer } = body
  const limit = !isGiven(newer) ? plain : !isGiven(plain) ? newer : Math.min(Number(plain), Number(newer))
  if (provider.quirks.includes('max-completion-tokens')) {
    if (isGiven(plain)) setCeiling(body, edits, { max_tokens: undefined, max_completion_tokens: limit })
  } else if (isGiven(newer) && !provider.userGiven) setCeiling(body, edits, { max_tokens: limit, max_completion_tokens: undefined })
  else if (isGiven(newer) && isGiven(plain)) setCeiling(body, edits, { max_tokens: limit, max_completion_tokens: limit })
}

function setCeiling(body: HubRequest['body'], edits: Record<string, unknown>, limits: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(limits)) if (body[name] !== value) edits[name] = value
}

/** Asks for usage on every stream, whatever the caller requested, because the gateway meters the call by it. Other stream options stay. */
function editStreamOptions(body: HubRequest['body'], provider: Provider, edits: Record<string, unknown>): void {
  const given = body['stream_options']
  const options = isObject(given) ? given : {}
  if (provider.quirks.includes('no-stream-usage')) {
    if (!('include_usage' in options)) return
    const { include_usage: _dropped, ...others } = options
    edits['stream_options'] = Object.keys(others).length === 0 ? undefined : others
  } else if (options['include_usage'] !== true) {
    edits['stream_options'] = { ...options, include_usage: true }
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

function isSystem(message: unknown): message is Record<string, unknown> {
  return isObject(message) && (message['role'] === 'system' || message['role'] === 'developer')
}
