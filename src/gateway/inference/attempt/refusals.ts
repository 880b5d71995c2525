/** Replies of providers that are no success. */
import { type Reply, reply } from '../../../platform/endpoint.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { Dialect } from '../../providers/dialect.ts'
import { publicMessage } from '../../providers/public-message.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ClientFormat } from '../../wire/client-format.ts'
import { boundedObject } from '../../wire/json/json-texts.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import type { ClientError, Failed } from '../replies/answer.ts'

/** Largest error body that is read. */
const errorBodyMaxBytes = 1024 * 1024
/** The same of a server that somebody has registered. */
const ownErrorBodyMaxBytes = 64 * 1024

/** Reads a refusal: the client's own fault goes to it as it is, everything else may be tried elsewhere. */
export async function readRefusal(
  upstream: OutboundReply,
  attempt: Attempt,
  dialect: Pick<Dialect, 'failure'>,
  request: ParsedRequest,
): Promise<ClientError | Failed> {
  const given = await errorBodyOf(upstream, attempt.route.provider.userGiven === true ? ownErrorBodyMaxBytes : errorBodyMaxBytes)
  const bytes = withoutCredentials(given, attempt, request)
  const text = bytes.toString('utf8')
  const failure = dialect.failure(upstream.status, upstream.headers, text)
  const answer: ClientError = { kind: 'client-error', attempt, status: upstream.status, bytes }
  // A redirect is no answer to anybody: it would lead the caller, with its credential, to where the provider says.
  const relayed = upstream.status >= 400 && isRelayed(attempt, request) ? { ...answer, relayed: relayedHeaders(upstream.headers) } : null
  if (failure.kind === 'client') return relayed ?? answer
  const message = `${attempt.route.provider.id} answered ${upstream.status}: ${publicMessage(text, attempt.credential, request.native.body)}`
  const refusal = failure.kind === 'declined' ? { refusal: relayed ?? answer } : {}
  return { kind: 'failed', attempt, failure, message, ...(relayed === null ? {} : { relayed }), ...refusal }
}

/** What a refusal says; nothing of one that is too long to be read. */
async function errorBodyOf({ body }: OutboundReply, maxBytes: number): Promise<Buffer> {
  try {
    return await body.buffer(maxBytes)
  } catch (error) {
    if (error instanceof BodyTooLargeError) return Buffer.alloc(0)
    throw error
  }
}

/** Who calls a provider in its own format and on a credential of its own gets its refusals as they are. */
export const isRelayed = ({ route, byok }: Attempt, { native }: ParsedRequest): boolean => byok && native.format !== 'openai' && route.dialect === native.format

const relayedNames = /^(?:anthropic-|retry-after|x-should-retry$|request-id$)/

/** What of a native reply's headers goes on to a caller on a credential of its own: its limits there, and how the provider names the call. */
export function relayedHeaders(headers: OutboundReply['headers']): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string' && relayedNames.test(name)) kept[name] = value
  const type = headers['content-type']
  if (typeof type === 'string') kept['content-type'] = type
  return kept
}

/** Shortest credential that is looked for in a text: of fewer characters it is nobody's secret, and taking it out would spoil the text. */
const secretMinChars = 6

/**
 * A provider's refusal goes to the caller as it is, but for the credential that it may quote: one that the caller must not see, or one of
 * its own that must not be kept with what is kept of the call.
 */
function withoutCredentials(bytes: Buffer, { credential, forwarded }: Attempt, request: ParsedRequest): Buffer {
  const sent = forwarded === true ? [request.forwarded?.authorization, request.forwarded?.xApiKey] : [credential]
  const text = bytes.toString('utf8')
  const quoted = sent
    .flatMap(secret => secret?.reveal().split(/\s+/) ?? [])
    .filter(word => word.length >= secretMinChars && !/^(?:bearer|basic)$/i.test(word) && text.includes(word))
  return quoted.length === 0 ? bytes : Buffer.from(quoted.reduce((left, word) => left.replaceAll(word, '[secret]'), text))
}

/** The provider's 4xx as it is; only a null `code` or `type` is filled, and a body that is no JSON is wrapped. Clients of other formats get it in theirs. */
export function clientErrorReply(answer: ClientError, format: ClientFormat, more: Readonly<Record<string, string>> = {}): Reply {
  const provider = answer.attempt.route.provider.id
  if (answer.relayed !== undefined) return reply.bytes(answer.bytes, { ...answer.relayed, ...more, 'x-br-provider': provider }, answer.status)
  const headers = { ...more, 'x-br-provider': provider, 'content-type': 'application/json; charset=utf-8' }
  const text = answer.bytes.toString('utf8')
  const body: Record<string, unknown> = boundedObject(text) ?? {
    error: { message: text.trim() === '' ? `${provider} refused the request.` : text.slice(0, 2000) },
  }
  const given = body['error']
  const error: Record<string, unknown> =
    typeof given === 'object' && given !== null
      ? { ...given }
      : { message: typeof given === 'string' ? given : String(body['message'] ?? `${provider} refused the request.`) }
  error['message'] = typeof error['message'] === 'string' ? error['message'] : `${provider} refused the request.`
  error['type'] = typeof error['type'] === 'string' ? error['type'] : 'invalid_request_error'
  error['code'] = typeof error['code'] === 'string' ? error['code'] : 'upstream_client_error'
  const shown = { ...body, error }
  return reply.json(format.errorBody?.(shown, answer.status) ?? shown, answer.status, headers)
}
