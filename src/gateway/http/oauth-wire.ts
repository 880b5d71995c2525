/** What is different on rows for OAuth clients: how a form comes in, how a credential may stand in Basic, how an error goes out. */
import { type ErrorName, errorTable, fail, type GatewayError } from '../../platform/errors.ts'
import { isWellEncoded } from './url-text.ts'

/** Replies of these rows carry tokens or what is known of them. */
export const notStored = { 'cache-control': 'no-store', pragma: 'no-cache' } as const

/** Errors whose own code is one of OAuth. */
const own: ReadonlySet<ErrorName> = new Set(['unsupported_grant_type', 'unsupported_token_type', 'invalid_target', 'invalid_scope', 'issuer_unavailable'])

/** The `error` of RFC 6749 §5.2 (and RFC 6750, 7009, 8693) that stands for an error of ours. */
export function oauthErrorCode(name: ErrorName): string {
  const { code, status } = errorTable[name]
  if (own.has(name)) return code
  if (status === 401) return 'invalid_client'
  if (status === 403) return 'insufficient_scope'
  if (status === 429 || status === 503) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** What RFC 6749 allows in a description: printable ASCII but the quote and the backslash. */
const notInDescription = /[^\x20-\x21\x23-\x5b\x5d-\x7e]+/g

/** The body of an error as OAuth libraries read it. */
export function oauthErrorBody(error: GatewayError): { error: string; error_description: string } {
  return { error: oauthErrorCode(error.errorName), error_description: error.message.replaceAll('"', "'").replace(notInDescription, ' ') }
}

/** A form as names and values. A name that occurs twice is a list; an empty value counts as left out, as RFC 6749 §3.2 asks. Throws `unsupported_media_type`, `bad_request`. */
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

/** The password of `Authorization: Basic`, decoded as RFC 6749 §2.3.1 has clients encode it; null for another scheme, empty for an invalid text. */
export function basicPassword(authorization: string | undefined): string | null {
  // Trimmed first: a pattern with room for spaces at both sides takes a time that grows with their square.
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
