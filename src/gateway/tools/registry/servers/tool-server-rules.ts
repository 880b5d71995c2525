import { fail } from '../../../../platform/errors.ts'
import type { UrlGuard } from '../../../../platform/outbound/url-guard.ts'
import { cleanName } from '../../../../platform/values/clean-name.ts'
import type { ClientParams } from '../../oauth/server-oauth.ts'
import type { ToolCredential } from '../callable-tool.ts'

/** The parameters of a registration, with trimmed texts. */
export interface ServerParams {
  readonly name: string
  readonly url: string
  /** The header that the server requires. Null: none. */
  readonly header: ToolCredential | null
  /** How the gateway or its people get tokens for the server. Null: they get none. A server has a header or a client, never both. */
  readonly client: ClientParams | null
  readonly residency: 'india' | 'global'
  readonly priceUinr: bigint
  /** Null: TOOL_TIMEOUT_MS. */
  readonly timeoutMs: number | null
}

/** The changed fields of a server. An omitted field keeps its value. */
export type ServerChange = Partial<ServerParams>

const urlMaxChars = 2048
const slugMaxChars = 16
const slugShape = /^[a-z][a-z0-9-]{0,15}$/
/** Slugs that mean something else in the addresses of MCP: `?toolsets=tools:search` is the set of the tools that find tools. */
const reservedSlugs: ReadonlySet<string> = new Set(['search'])
const headerNameShape = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/
/** The form of a value that can be sent in a header without a change. */
const headerValueShape = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/
/** Headers that the gateway or HTTP sets itself. */
const ownHeaders = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'last-event-id',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/**
 * Returns the parameters with the URL in the form that the gateway connects to. Throws `bad_name` and `bad_request` for every fault that can be found
 * without a connection, such as a private or reserved address.
 */
export function checkedParams(params: ServerParams, guard: UrlGuard, gatewayUrl: string): ServerParams {
  const name = cleanName(params.name)
  if (params.header !== null) checkHeader(params.header)
  if (params.client !== null) checkClient(params.client, guard)
  const url = params.url.length <= urlMaxChars && URL.canParse(params.url) ? new URL(params.url) : null
  if (url === null) throw fail('bad_request', { message: '"url" must be a URL such as https://tools.example.com/mcp.' })
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(params.url))
    throw fail('bad_request', { message: '"url" must not carry a query or a fragment. A secret belongs in "auth".' })
  guard.check(url)
  if (URL.canParse(gatewayUrl) && url.host === new URL(gatewayUrl).host)
    throw fail('bad_request', { message: '"url" is this gateway itself: calls would go round in a circle.' })
  return { ...params, name, url: url.href }
}

function checkHeader({ name, value }: ToolCredential): void {
  const lower = name.toLowerCase()
  if (!headerNameShape.test(name) || ownHeaders.has(lower) || lower.startsWith('mcp-') || lower.startsWith('proxy-') || lower.startsWith('sec-'))
    throw fail('bad_request', { message: '"auth.header_name" must be the name of a header that the gateway does not set itself, such as Authorization.' })
  if (!headerValueShape.test(value))
    throw fail('bad_request', { message: '"auth.header_value" must be 1 to 4096 printable characters, such as Bearer and the token.' })
}

/** What OAuth allows in a client id and in a secret (RFC 6749, A.1 and A.2). */
const clientTextShape = /^[\x20-\x7e]{1,2048}$/
/** Scopes with one space between them (RFC 6749, A.4). */
const scopesShape = /^(?:[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*)?$/
const scopesMaxChars = 1000

function checkClient({ clientId, clientSecret, scopes, issuer }: ClientParams, guard: UrlGuard): void {
  if ((clientId !== null && !clientTextShape.test(clientId)) || (clientSecret !== null && !clientTextShape.test(clientSecret)))
    throw fail('bad_request', { message: '"auth.client_id" and "auth.client_secret" must be 1 to 2048 printable characters.' })
  if (scopes.length > scopesMaxChars || !scopesShape.test(scopes))
    throw fail('bad_request', { message: `"auth.scopes" must be scopes with one space between them, at most ${scopesMaxChars} characters.` })
  if (issuer === null) return
  if (issuer.length > urlMaxChars || !URL.canParse(issuer) || /[?#]/.test(issuer))
    throw fail('bad_request', { message: '"auth.issuer" must be a URL without query and fragment, such as https://login.example.com.' })
  guard.check(new URL(issuer))
}

/** Returns the slug of a new server: the given one, or one that is made from the name. Throws `bad_request` for an invalid slug, and `tool_slug_taken`. */
export function slugFor(given: string | null, name: string, taken: readonly string[]): string {
  if (given === null) return freeSlug(name, taken)
  if (!slugShape.test(given)) throw fail('bad_request', { message: '"slug" must have 1 to 16 of the characters a-z, 0-9 and -, and begin with a letter.' })
  if (reservedSlugs.has(given))
    throw fail('tool_slug_taken', { message: `The slug "${given}" means something else in the addresses of MCP. Choose another one.` })
  if (taken.includes(given)) throw fail('tool_slug_taken')
  return given
}

function freeSlug(name: string, taken: readonly string[]): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, slugMaxChars)
    .replace(/-+$/, '')
  const slug = plain === '' ? 'tools' : plain
  if (!taken.includes(slug) && !reservedSlugs.has(slug)) return slug
  for (let number = 2; ; number++) {
    const numbered = `${slug.slice(0, slugMaxChars - 1 - String(number).length).replace(/-+$/, '')}-${number}`
    if (!taken.includes(numbered)) return numbered
  }
}

/** Returns true when a URL has another origin (scheme, host, port) than before. Returns false for an invalid URL, because the URL rules refuse it later. */
export const isElsewhere = (given: string, before: string): boolean => URL.canParse(given) && new URL(given).origin !== new URL(before).origin
