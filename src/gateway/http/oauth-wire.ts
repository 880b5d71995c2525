/** The rules that differ on rows for OAuth clients: reading forms, credentials in HTTP Basic, and the shape of errors. */
import { type ErrorName, errorTable, fail, type GatewayError } from '../../platform/errors.ts'
import { isWellEncoded } from './url-text.ts'

/** Headers of replies that contain tokens or data about tokens. */
export const notStored = { 'cache-control': 'no-store', pragma: 'no-cache' } as const

/** Errors of the gateway whose own code is also an OAuth error code. */
const own: ReadonlySet<ErrorName> = new Set(['unsupported_grant_type', 'unsupported_token_type', 'invalid_target', 'invalid_scope', 'issuer_unavailable'])

/** Returns the `error` of RFC 6749 §5.2 (and RFC 6750, 7009, 8693) that corresponds to an error of the gateway. */
export function oauthErrorCode(name: ErrorName): string {
  const { code, status } = errorTable[name]
  if (own.has(name)) return code
  if (status === 401) return 'invalid_client'
  if (status === 403) return 'insufficient_scope'
  if (status === 429 || status === 503) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** Characters that RFC 6749 does not allow in a description. It allows printable ASCII without the quote and the backslash. */
const notInDescription = /[^\x20-\x21\x23-\x5b\x5d-\x7e]+/g

/** Returns the body of an error in the shape of OAuth. */
export function oauthErrorBody(error: GatewayError): { error: string; error_description: string } {
  return { error: oauthErrorCode(error.errorName), error_description: error.message.replaceAll('"', "'").replace(notInDescription, ' ') }
}

/**
 * Returns a form as names and values. A name that occurs twice has a list as its value. An empty value counts as left out, as RFC 6749 §3.2 requires.
 * Throws `unsupported_media_type`, `bad_request`.
 */
export function parseFormBody(bytes: Buffer, contentType: string | undefined): Record<string, string | string[]> {
  const media = contentType?.split(';')[0]?.trim().toLowerCase()
  if (media !== undefined && media !== 'application/x-www-form-urlencoded')
    throw fail('unsupported_media_type', { message: 'This endpoint takes application/x-www-form-urlencoded.' })
  const text = bytes.toString('utf8')
  if (!isWellEncoded(text)) throw fail('bad_request', { message: 'The form has a "%" without two hex digits, or bytes that are no UTF-8.' })
  const values = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (value === '') continue
    const before = values.get(name)
    if (Array.isArray(before)) before.push(value)
    else values.set(name, before === undefined ? value : [before, value])
  }
  return Object.fromEntries(values)
}

/**
 * Returns the password of `Authorization: Basic`, decoded as RFC 6749 §2.3.1 requires. Returns null for another scheme and an empty text for an
 * invalid credential.
 */
export function basicPassword(authorization: string | undefined): string | null {
  // The text is trimmed first, because the time of a regular expression that allows spaces on both sides grows with the square of their number.
  const [, encoded] = /^basic\s+(\S*)$/i.exec(authorization?.trim() ?? '') ?? []
  if (encoded === undefined) return null
  const pair = Buffer.from(encoded, 'base64').toString('utf8')
  const mark = pair.indexOf(':')
  try {
    return mark < 0 ? '' : decodeURIComponent(pair.slice(mark + 1).replaceAll('+', ' '))
  } catch {
    return ''
  }
}
