/** What a request to /mcp must pass before its body is read: where it comes from, and with which credential. */
import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6 } from 'node:net'
import { fail, GatewayError } from '../../platform/errors.ts'

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

/** Host names that /mcp answers to: the one of the base URL, loopback, and the operator's extra ones. Ports are not looked at. */
export function allowedHostNames(baseUrl: string, extra: readonly string[]): string[] {
  const entries = extra.map(entry => entry.trim().replace(/^https?:\/\//i, '')).map(entry => (isIPv6(entry) ? `[${entry}]` : entry))
  const names = [baseUrl, ...entries.map(entry => `http://${entry}`)].map(hostNameOf)
  return [...new Set([...loopbackNames, ...names.filter(name => name !== null)])]
}

/** The host of an http(s) origin as a browser writes it (lower case, punycode, IPv6 in brackets), without the dot of a full name; null when it is none. */
function hostNameOf(origin: string): string | null {
  if (!URL.canParse(origin)) return null
  const { protocol, username, hostname, pathname, search, hash } = new URL(origin)
  const isOrigin = /^https?:$/.test(protocol) && `${username}${search}${hash}` === '' && pathname === '/'
  return isOrigin ? hostname.replace(/\.$/, '') : null
}

/**
 * Refuses what a web page in somebody's browser could send here: an Origin that is not ours, or a Host that a rebound name carries.
 * Programs send no Origin. X-Forwarded-Host is not looked at, because anybody can send it. Throws `foreign_origin`.
 */
export function checkOrigin({ host, origin }: IncomingHttpHeaders, hostNames: readonly string[]): void {
  const served = (name: string | null): boolean => name !== null && hostNames.includes(name)
  if (!served(hostNameOf(`http://${host ?? ''}`)))
    throw fail('foreign_origin', { message: 'This Host name is not served here. The operator can add it with ALLOWED_HOSTS.' })
  if (origin && !served(hostNameOf(origin))) throw fail('foreign_origin', { message: 'Requests from this Origin are not allowed here.' })
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
 * A 401 with its challenge, and with what a client of MCP can do. It names no resource metadata: clients that see some start an OAuth
 * login and drop the bearer header that their user has configured.
 */
export function withChallenge(error: GatewayError, realm: string, headers: IncomingHttpHeaders): GatewayError {
  if (error.status !== 401) return error
  const reason = error.options.extra?.['reason']
  const parameters = `error="invalid_token"${typeof reason === 'string' ? `, error_description="${reason}"` : ''}`
  const message = missingCredential(headers) ?? (reason === 'token_expired' ? `${error.message} ${renewal}` : error.message)
  return challenged(error, realm, parameters, message)
}

/** A refusal with a bearer challenge of these parameters. A realm is the operator's text, so what no header can carry is left out of it. */
export function challenged(error: GatewayError, realm: string, parameters: string, message = error.message): GatewayError {
  const challenge = `Bearer realm="${realm.replace(/[^\x20-\x7e]|["\\]/g, '')}", ${parameters}`
  return new GatewayError(error.errorName, { ...error.options, message, headers: { ...error.options.headers, 'www-authenticate': challenge } })
}

const renewal = '`brigade mcp --agent <name>` renews tokens by itself for clients that read theirs once.'

/** What is wrong when no credential of ours came: mostly settings of the client that nobody filled in. Null when one came. Nothing of the header is repeated. */
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

/** A client of streamable HTTP must take both forms of answer, because the server chooses. Throws `not_acceptable` and `unsupported_media_type`. */
export function checkMediaTypes(headers: IncomingHttpHeaders): void {
  const accept = headers.accept ?? ''
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    throw fail('not_acceptable', { message: 'Send "Accept: application/json, text/event-stream".' })
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw fail('unsupported_media_type', { message: 'Send "Content-Type: application/json".' })
}
