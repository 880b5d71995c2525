/** Requests for access tokens: one form to a token endpoint, one short JSON reply. */
import type { Clock } from '../../platform/clock.ts'
import type { Outbound, OutboundRequest } from '../../platform/outbound/outbound.ts'
import { isObject, parsedObject } from '../../platform/values/json.ts'
import { CredentialsError } from './authorise.ts'
import type { AccessToken } from './bearer.ts'

export interface TokenDeps {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly dial: Outbound['toProvider']
}

/** The longest wait for a token, in milliseconds. Calls wait for it, so it is short. */
export const tokenWaitMs = 5_000
const replyMaxBytes = 64 * 1024
const tokenMaxChars = 16 * 1024
/** The life of a token whose reply does not name it. */
const lifeDefaultSeconds = 300
const lifeMaxSeconds = 24 * 3600

/** Requests a token. The fields go as a form. Rejects with CredentialsError, which names the endpoint's error code and no part of the credentials. */
export function postForToken(url: string, form: Readonly<Record<string, string>>, what: string, deps: TokenDeps): Promise<AccessToken> {
  const body = new URLSearchParams(form).toString()
  return tokenFrom({ method: 'POST', url, headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }, body }, what, deps)
}

/** Sends a request whose reply is a token. Rejects with CredentialsError. */
export async function tokenFrom(request: OutboundRequest, what: string, { clock, dial }: TokenDeps): Promise<AccessToken> {
  let status: number
  let text: string
  try {
    const reply = await dial({ ...request, signal: AbortSignal.timeout(tokenWaitMs) })
    status = reply.status
    text = (await reply.body.buffer(replyMaxBytes)).toString('utf8')
  } catch (cause) {
    throw new CredentialsError(`${what} gave no token: ${codeOf(cause)}`, { cause })
  }
  const reply = parsedObject(text) ?? {}
  const { access_token: token } = reply
  if (status !== 200 || typeof token !== 'string' || !isToken(token))
    throw new CredentialsError(`${what} gave no token: it answered ${status}${errorIn(reply)}`, { isRefusal: status >= 400 && status < 500 && status !== 429 })
  return { token, endMs: clock.nowMs() + 1000 * lifeIn(reply, clock.nowMs() / 1000) }
}

/** A token of printable characters, as it can be sent in a header. */
const isToken = (text: string): boolean => text.length <= tokenMaxChars && /^[\x21-\x7e]+$/.test(text)

/** Returns the life in seconds. App Service does not say how long a token lives, but when it ends. */
function lifeIn({ expires_in: life, expires_on: end }: Readonly<Record<string, unknown>>, nowSeconds: number): number {
  const seconds = numberIn(life) ?? (numberIn(end) ?? nowSeconds + lifeDefaultSeconds) - nowSeconds
  return Math.min(Math.max(seconds, 0), lifeMaxSeconds)
}

function numberIn(value: unknown): number | null {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : null
}

/** Returns the error code of a refusal: `invalid_client`. Descriptions are left out, because they quote what was sent. */
function errorIn(reply: Readonly<Record<string, unknown>>): string {
  const { error } = reply
  const code = isObject(error) ? error['status'] : error
  return typeof code === 'string' && /^[\w.-]{1,60}$/.test(code) ? ` ${code}` : ''
}

function codeOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `no answer within ${tokenWaitMs / 1000} s`
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown error'
}
