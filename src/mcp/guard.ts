/** What a request to /mcp must pass before its body is read: where it comes from, and with which credential. */
import type { IncomingHttpHeaders } from 'node:http'
import { validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'
import { fail, GatewayError } from '../platform/errors.ts'

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

/** Host names that /mcp answers to: the one of the base URL, loopback, and the operator's extra ones. */
export function allowedHostNames(baseUrl: string, extra: readonly string[]): string[] {
  return [...new Set([new URL(baseUrl).hostname, ...loopbackNames, ...extra.map(name => name.toLowerCase())])]
}

/**
 * Refuses what a web page in somebody's browser could send here: an Origin that is not ours, or a Host that a rebound name carries.
 * Programs send no Origin. Throws `foreign_origin`.
 */
export function checkOrigin(headers: IncomingHttpHeaders, hostNames: string[]): void {
  if (!validateHostHeader(headers.host, hostNames).ok)
    throw fail('foreign_origin', { message: 'This Host name is not served here. The operator can add it with ALLOWED_HOSTS.' })
  if (!validateOriginHeader(headers.origin, hostNames).ok) throw fail('foreign_origin', { message: 'Requests from this Origin are not allowed here.' })
}

/** A gateway key, or an agent token. */
const gatewayShaped = /^(?:br-\S+|[\w-]+\.[\w-]+\.[\w-]+)$/

/**
 * The headers with the caller's credential in Authorization. Some clients cannot set that header, so x-br-api-key (first) and
 * x-api-key (last) count too, when their value has the shape of a gateway credential.
 */
export function withBearer(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const own = headers['x-br-api-key']
  if (typeof own === 'string' && gatewayShaped.test(own)) return { ...headers, authorization: `Bearer ${own}` }
  const other = headers['x-api-key']
  if (headers.authorization === undefined && typeof other === 'string' && gatewayShaped.test(other)) return { ...headers, authorization: `Bearer ${other}` }
  return headers
}

/**
 * A 401 with its challenge. It names no resource metadata: clients that see some start an OAuth login and drop the bearer header
 * that their user has configured.
 */
export function withChallenge(error: GatewayError, realm: string): GatewayError {
  if (error.status !== 401) return error
  const reason = error.options.extra?.['reason']
  const challenge = `Bearer realm="${realm}", error="invalid_token"${typeof reason === 'string' ? `, error_description="${reason}"` : ''}`
  return new GatewayError(error.errorName, { ...error.options, message: error.message, headers: { ...error.options.headers, 'www-authenticate': challenge } })
}

/** A client of streamable HTTP must take both forms of answer, because the server chooses. Throws `not_acceptable` and `unsupported_media_type`. */
export function checkMediaTypes(headers: IncomingHttpHeaders): void {
  const accept = headers.accept ?? ''
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    throw fail('not_acceptable', { message: 'Send "Accept: application/json, text/event-stream".' })
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw fail('unsupported_media_type', { message: 'Send "Content-Type: application/json".' })
}
