/** Reads provider replies without success. */
import { type Reply, reply } from '../../../platform/endpoint.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { withoutAccount } from '../../providers/clouds/account-names.ts'
import type { Dialect } from '../../providers/dialect.ts'
import { publicMessage } from '../../providers/public-message.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ClientFormat } from '../../wire/client-format.ts'
import { boundedObject } from '../../wire/json/json-texts.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import type { ClientError, Failed } from '../replies/answer.ts'

/** The largest error body that is read, in bytes. */
const errorBodyMaxBytes = 1024 * 1024
/** The largest error body of an own server, in bytes. */
const ownErrorBodyMaxBytes = 64 * 1024

/** Reads a refusal. A refusal because of the client's request goes to the client unchanged. After any other failure another route may be tried. */
export async function readRefusal(
  upstream: OutboundReply,
  attempt: Attempt,
  dialect: Pick<Dialect, 'failure'>,
  request: ParsedRequest,
): Promise<ClientError | Failed> {
  const given = await errorBodyOf(upstream, attempt.route.provider.userGiven === true ? ownErrorBodyMaxBytes : errorBodyMaxBytes)
  const isQuoting = quotesCredentials(upstream, attempt)
  const bytes = isQuoting ? Buffer.alloc(0) : withoutCredentials(given, attempt, request)
  const text = bytes.toString('utf8')
  const failure = dialect.failure(upstream.status, upstream.headers, isQuoting ? given.toString('utf8') : text)
  const answer: ClientError = { kind: 'client-error', attempt, status: upstream.status, bytes }
  // A redirect is never relayed. It would lead the caller, with its credential, to an address that the provider chooses.
  const relayed = upstream.status >= 400 && isRelayed(attempt, request) ? { ...answer, relayed: relayedHeaders(upstream.headers) } : null
  if (failure.kind === 'client') return relayed ?? answer
  const said = isQuoting ? errorNameIn(upstream) : publicMessage(text, attempt.credential, request.native.body)
  const message = `${attempt.route.provider.id} answered ${upstream.status}: ${said}`
  const refusal = failure.kind === 'declined' ? { refusal: relayed ?? answer } : {}
  return { kind: 'failed', attempt, failure, message, ...(relayed === null ? {} : { relayed }), ...refusal }
}

/** A refusal of a signature quotes what was signed, with the session token. So the text of such a refusal is never passed on. */
const quotesCredentials = ({ status }: OutboundReply, { identity }: Attempt): boolean => identity !== undefined && (status === 401 || status === 403)

/** Returns the error name that AWS writes in a header: `AccessDeniedException`. */
const errorNameIn = ({ headers }: OutboundReply): string =>
  /^[A-Za-z]{1,80}(?=:|$)/.exec(String(headers['x-amzn-errortype'] ?? ''))?.[0] ?? 'it refused the identity'

/** Returns the body of a refusal, or an empty body when it is too long. */
async function errorBodyOf({ body }: OutboundReply, maxBytes: number): Promise<Buffer> {
  try {
    return await body.buffer(maxBytes)
  } catch (error) {
    if (error instanceof BodyTooLargeError) return Buffer.alloc(0)
    throw error
  }
}

/**
 * Returns true when the caller uses its own credential and the provider's own format. Such a caller gets the provider's refusals unchanged. A cloud
 * writes refusals in a form of its own.
 */
export const isRelayed = ({ route, byok }: Attempt, { native }: ParsedRequest): boolean =>
  byok && native.format !== 'openai' && route.dialect === native.format && route.provider.cloud === undefined

const relayedNames = /^(?:anthropic-|retry-after|x-should-retry$|request-id$)/

/** Returns the headers of a native reply for a caller with its own credential: the caller's limits at the provider, and the provider's id of the call. */
export function relayedHeaders(headers: OutboundReply['headers']): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string' && relayedNames.test(name)) kept[name] = value
  const type = headers['content-type']
  if (typeof type === 'string') kept['content-type'] = type
  return kept
}

/** The shortest credential that is searched for in a text. A shorter one is not a secret, and removing it would spoil the text. */
const secretMinChars = 6

/**
 * Returns a provider's refusal without the credential that it may quote, and without the operator's account. The platform's credential must not reach the
 * caller, and the caller's own credential must not be kept in records of the call.
 */
function withoutCredentials(bytes: Buffer, { credential, forwarded, byok, route }: Attempt, request: ParsedRequest): Buffer {
  const sent = forwarded === true ? [request.forwarded?.authorization, request.forwarded?.xApiKey] : [credential]
  const text = bytes.toString('utf8')
  const quoted = sent
    .flatMap(secret => secret?.reveal().split(/\s+/) ?? [])
    .filter(word => word.length >= secretMinChars && !/^(?:bearer|basic)$/i.test(word) && text.includes(word))
  const shown = quoted.reduce((left, word) => left.replaceAll(word, '[secret]'), text)
  const mended = byok ? shown : withoutAccount(shown, route.provider)
  return mended === text ? bytes : Buffer.from(mended)
}

/**
 * Returns the provider's 4xx reply for the client. In the hub format it is unchanged, except that a null `code` or `type` is filled in and a
 * body that is not JSON is wrapped. Other formats get it in their own shape.
 */
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
