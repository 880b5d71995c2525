/** The checks of a request to /mcp before its body is read: its origin and its credential. */
import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6 } from 'node:net'
import { fail, GatewayError } from '../../platform/errors.ts'

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

/** Returns the host names that /mcp answers to: the name of the base URL, loopback names, and the operator's extra names. Ports are ignored. */
export function allowedHostNames(baseUrl: string, extra: readonly string[]): string[] {
  const entries = extra.map(entry => entry.trim().replace(/^https?:\/\//i, '')).map(entry => (isIPv6(entry) ? `[${entry}]` : entry))
  const names = [baseUrl, ...entries.map(entry => `http://${entry}`)].map(hostNameOf)
  return [...new Set([...loopbackNames, ...names.filter(name => name !== null)])]
}

/**
 * Returns the host of an HTTP origin as a browser writes it (lower case, punycode, IPv6 in brackets), without a trailing dot. Returns null for an
 * invalid origin.
 */
function hostNameOf(origin: string): string | null {
  if (!URL.canParse(origin)) return null
  const { protocol, username, hostname, pathname, search, hash } = new URL(origin)
  const isOrigin = /^https?:$/.test(protocol) && `${username}${search}${hash}` === '' && pathname === '/'
  return isOrigin ? hostname.replace(/\.$/, '') : null
}

/**
 * Refuses requests that a web page in a browser could send to this server. Such a request has an Origin that is not served here, or a Host that DNS
 * rebinding points here. Programs other than browsers send no Origin. X-Forwarded-Host is ignored, because anybody can set it. Throws
 * `foreign_origin`.
 */
export function checkOrigin({ host, origin }: IncomingHttpHeaders, hostNames: readonly string[]): void {
  const served = (name: string | null): boolean => name !== null && hostNames.includes(name)
  if (!served(hostNameOf(`http://${host ?? ''}`)))
    throw fail('foreign_origin', { message: 'This Host name is not served here. The operator can add it with ALLOWED_HOSTS.' })
  if (origin && !served(hostNameOf(origin))) throw fail('foreign_origin', { message: 'Requests from this Origin are not allowed here.' })
}

/** The shape of a gateway key or an agent token. */
const gatewayShaped = /^(?:br-\S+|[\w-]+\.[\w-]+\.[\w-]+)$/

/**
 * Returns the headers with the caller's credential in Authorization, for clients that cannot set that header. x-br-api-key takes precedence over
 * Authorization, and Authorization over x-api-key. The two other headers count only when their value looks like a gateway credential.
 */
export function withBearer(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const own = headers['x-br-api-key']
  if (typeof own === 'string' && gatewayShaped.test(own)) return { ...headers, authorization: `Bearer ${own}` }
  const other = headers['x-api-key']
  if (headers.authorization === undefined && typeof other === 'string' && gatewayShaped.test(other)) return { ...headers, authorization: `Bearer ${other}` }
  return headers
}

/**
 * Returns a 401 with its challenge and with advice for an MCP client. The challenge names no resource metadata. Clients that find resource metadata
 * start an OAuth login and drop the bearer that their user configured.
 */
export function withChallenge(error: GatewayError, realm: string, headers: IncomingHttpHeaders): GatewayError {
  if (error.status !== 401) return error
  const reason = error.options.extra?.['reason']
  const parameters = `error="invalid_token"${typeof reason === 'string' ? `, error_description="${reason}"` : ''}`
  const message = missingCredential(headers) ?? (reason === 'token_expired' ? `${error.message} ${renewal}` : error.message)
  return challenged(error, realm, parameters, message)
}

/**
 * Returns a refusal with a bearer challenge that has these parameters. The realm is text of the operator. Characters that a header cannot contain are
 * removed from it.
 */
export function challenged(error: GatewayError, realm: string, parameters: string, message = error.message): GatewayError {
  const challenge = `Bearer realm="${realm.replace(/[^\x20-\x7e]|["\\]/g, '')}", ${parameters}`
  return new GatewayError(error.errorName, { ...error.options, message, headers: { ...error.options.headers, 'www-authenticate': challenge } })
}

const renewal = '`brigade mcp --agent <name>` renews tokens by itself for clients that read theirs once.'

/**
 * Returns what is wrong when the request has no credential of the gateway. The usual cause is an unfinished setting of the client. Returns null when
 * there is a credential. The message repeats nothing of the header.
 */
function missingCredential({ authorization, ...headers }: IncomingHttpHeaders): string | null {
  if (headers['x-br-api-key'] !== undefined || headers['x-api-key'] !== undefined) return null
  const [, scheme = '', value = ''] = /^\s*(\S*)\s*(.*)$/.exec(authorization ?? '') ?? []
  if (scheme === '') return `No credential came. ${howToSend}`
  if (/^(\$|%|\{)|[{}]/.test(value === '' ? scheme : value)) return `The credential is the name of a variable that the client did not fill in. ${howToSend}`
  if (!/^bearer$/i.test(scheme)) return `The credential has another form than Bearer. ${howToSend}`
  if (value === '') return `The credential is empty: is the variable set that the client takes it from? ${howToSend}`
  return gatewayShaped.test(value) ? null : `The credential is neither an API key of this gateway (br-…) nor an agent token. ${howToSend}`
}

const howToSend =
  'Send "Authorization: Bearer <API key br-… or agent token>"; there is no OAuth login at this address. `npx brigade connect <client> --write` writes it into the settings of Claude Code, Codex and others.'

/** Throws `not_acceptable` and `unsupported_media_type`. A streamable HTTP client must accept both JSON and event streams, because the server chooses. */
export function checkMediaTypes(headers: IncomingHttpHeaders): void {
  const accept = headers.accept ?? ''
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    throw fail('not_acceptable', { message: 'Send "Accept: application/json, text/event-stream".' })
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw fail('unsupported_media_type', { message: 'Send "Content-Type: application/json".' })
}
