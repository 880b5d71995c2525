/** What an issuer and a protected resource say about themselves, and the rules that Brigade checks before it believes them. */
import { z } from 'zod'
import type { UrlGuard } from '../../../../platform/outbound/url-guard.ts'
import { OAuthFailure } from './oauth-failure.ts'

const urlMaxChars = 2048
const listMax = 1000
const address = z.string().min(1).max(urlMaxChars)
const words = z.array(z.string().max(200)).max(listMax)

/** Metadata of a protected resource (RFC 9728). */
export const resourceDocument = z.looseObject({
  resource: address,
  authorization_servers: z.array(address).max(10).optional(),
  scopes_supported: words.optional(),
})

/** Metadata of an authorization server (RFC 8414, OpenID Connect Discovery). Members that Brigade does not use are dropped. */
export const issuerDocument = z.object({
  issuer: address,
  token_endpoint: address,
  authorization_endpoint: address.optional(),
  revocation_endpoint: address.optional(),
  jwks_uri: address.optional(),
  scopes_supported: words.optional(),
  response_types_supported: words.optional(),
  code_challenge_methods_supported: words.optional(),
  token_endpoint_auth_methods_supported: words.optional(),
  revocation_endpoint_auth_methods_supported: words.optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
  client_id_metadata_document_supported: z.boolean().optional(),
})
export type IssuerDocument = z.output<typeof issuerDocument>

/** An issuer that a server relies on, after all checks. */
export interface FoundIssuer {
  readonly issuer: string
  /** The `resource` of every token (RFC 8707). */
  readonly resource: string
  /** The scopes that the resource names. */
  readonly resourceScopes: readonly string[]
  readonly metadata: IssuerDocument
}

/** Returns the addresses of the resource's metadata: with its path after the well-known name, and at the root. */
export function resourceDocumentUrls(server: string): string[] {
  const { origin, pathname } = new URL(server)
  const root = `${origin}/.well-known/oauth-protected-resource`
  return pathname === '/' ? [root] : [`${root}${pathname}`, root]
}

/** Returns the addresses of an issuer's metadata in the order of the MCP specification. */
export function issuerDocumentUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '')
  const inserted = ['oauth-authorization-server', 'openid-configuration'].map(name => `${origin}/.well-known/${name}${path}`)
  return path === '' ? inserted : [...inserted, `${origin}${path}/.well-known/openid-configuration`]
}

/** Returns whether two URLs name the same issuer or resource. An empty path and `/` are alike; everything else counts. */
export const isSameUrl = (a: string, b: string): boolean => URL.canParse(a) && URL.canParse(b) && new URL(a).href === new URL(b).href

/** Returns whether a resource covers the address of a server: the same origin, and the same path or one above it. */
export function covers(resource: string, server: string): boolean {
  if (!URL.canParse(resource)) return false
  const [outer, inner] = [new URL(resource), new URL(server)]
  const path = outer.pathname.endsWith('/') ? outer.pathname : `${outer.pathname}/`
  return outer.origin === inner.origin && outer.search === '' && outer.hash === '' && `${inner.pathname}/`.startsWith(path)
}

/** Checks the identifier of an issuer: an address that may be dialed, without a query or a fragment (RFC 8414, 2). Throws OAuthFailure. */
export function checkIssuer(issuer: string, guard: UrlGuard): void {
  const url = URL.canParse(issuer) && issuer.length <= urlMaxChars ? new URL(issuer) : null
  if (url === null || url.search !== '' || url.hash !== '') throw new OAuthFailure('protocol', 'the issuer is not a URL without query and fragment')
  checkAddress(issuer, guard)
}

/** Checks every address of an issuer's metadata, and that the metadata is the one of this issuer. Throws OAuthFailure. */
export function checkDocument(document: IssuerDocument, issuer: string, guard: UrlGuard): void {
  if (!isSameUrl(document.issuer, issuer)) throw new OAuthFailure('moved', 'the metadata at the issuer names another issuer')
  for (const at of [document.token_endpoint, document.authorization_endpoint, document.revocation_endpoint]) if (at !== undefined) checkAddress(at, guard)
}

/**
 * Checks that the issuer gives codes to a client that proves itself with PKCE S256. All issuers send people back to one address, so a code of an honest issuer
 * could be sent to another one (RFC 9700, 4.4). A secret makes it useless there; a client without one needs the `iss` of RFC 9207. Throws OAuthFailure.
 */
export function checkCodeFlow({ metadata }: FoundIssuer, isPublic: boolean): void {
  if (isPublic && metadata.authorization_response_iss_parameter_supported !== true)
    throw new OAuthFailure('protocol', 'the issuer does not say that it sends "iss" (RFC 9207), which a client without a secret needs')
  if (metadata.authorization_endpoint === undefined) throw new OAuthFailure('protocol', 'the issuer has no authorization endpoint')
  if (!(metadata.code_challenge_methods_supported ?? []).includes('S256'))
    throw new OAuthFailure('protocol', 'the issuer does not say that it checks PKCE with S256')
}

function checkAddress(text: string, guard: UrlGuard): void {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.hash !== '') throw new OAuthFailure('protocol', 'an address in the metadata of the issuer is not a URL')
  try {
    guard.check(url)
  } catch (error) {
    throw notPublic(url, error)
  }
}

const notPublic = (url: URL, cause: unknown): OAuthFailure =>
  new OAuthFailure('blocked_address', `an address of the issuer, at ${url.host || url.protocol}, is not a public https address`, { cause })
