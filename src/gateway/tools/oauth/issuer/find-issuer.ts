import type { z } from 'zod'
import { abortSignalOf, type CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../../platform/outbound/outbound.ts'
import { exchanged, headerOf } from './guarded-exchange.ts'
import {
  checkDocument,
  checkIssuer,
  covers,
  type FoundIssuer,
  type IssuerDocument,
  isSameUrl,
  issuerDocument,
  issuerDocumentUrls,
  resourceDocument,
  resourceDocumentUrls,
} from './issuer-metadata.ts'
import { OAuthFailure } from './oauth-failure.ts'

/** Longest time of a whole discovery: at most six requests. */
const discoveryMs = 20_000
const challengeMaxChars = 4096

type Outgoing = Pick<Outbound, 'toUserUrl' | 'guard'>

/**
 * Finds the issuer of a server: asks the server, reads the metadata of the resource (RFC 9728), and reads the metadata of the issuer (RFC 8414, OpenID
 * Connect). With `wanted`, only that issuer is accepted, and the server must still name it. Every address passes the URL guard, and no redirect is
 * followed. Throws OAuthFailure: `moved` when the server names another issuer than the wanted one. Decision 0829 says why.
 */
export async function findIssuer(outbound: Outgoing, server: string, wanted: string | null, signal: CancelSignal): Promise<FoundIssuer> {
  const cut = AbortSignal.any([abortSignalOf(signal), AbortSignal.timeout(discoveryMs)])
  try {
    const resource = await readResource(outbound, server, cut)
    if (resource === null && wanted === null)
      throw new OAuthFailure('protocol', 'the server has no protected-resource metadata (RFC 9728), and "issuer" is not given')
    if (resource !== null && !covers(resource.resource, server)) throw new OAuthFailure('moved', 'the metadata of the server names another resource')
    const named = resource?.authorization_servers ?? []
    const issuer = wanted ?? named[0]
    if (issuer === undefined) throw new OAuthFailure('protocol', 'the metadata of the server names no issuer')
    if (resource !== null && !named.some(each => isSameUrl(each, issuer))) throw new OAuthFailure('moved', 'the server names another issuer now')
    const metadata = await readIssuer(outbound, issuer, cut)
    return { issuer: metadata.issuer, resource: resource?.resource ?? server, resourceScopes: resource?.scopes_supported ?? [], metadata }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (cut.aborted && !(error instanceof OAuthFailure)) throw tooLate(error)
    throw error
  }
}

const tooLate = (cause: unknown): OAuthFailure => new OAuthFailure('unavailable', 'the issuer could not be found in time', { cause })

/** Reads the metadata of an issuer from its own well-known addresses. Throws OAuthFailure. */
export async function readIssuer(outbound: Outgoing, issuer: string, signal: CancelSignal): Promise<IssuerDocument> {
  checkIssuer(issuer, outbound.guard)
  for (const url of issuerDocumentUrls(issuer)) {
    const document = await documentAt(outbound, url, issuerDocument, signal)
    if (document === null) continue
    checkDocument(document, issuer, outbound.guard)
    return document
  }
  throw new OAuthFailure('protocol', 'the issuer has no metadata (RFC 8414 or OpenID Connect)')
}

/** The server's own answer says where the metadata is. Without it, the well-known addresses are tried. */
async function readResource(outbound: Outgoing, server: string, signal: CancelSignal): Promise<z.output<typeof resourceDocument> | null> {
  const named = await challengedUrl(outbound, server, signal)
  for (const url of named === null ? resourceDocumentUrls(server) : [named]) {
    const document = await documentAt(outbound, url, resourceDocument, signal)
    if (document !== null) return document
  }
  return null
}

const probe = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
const resourceMetadataParam = /(?:^|[\s,])resource_metadata\s*=\s*(?:"([^"\\\s]{1,2048})"|([^\s,"]{1,2048}))/i

/** Returns the `resource_metadata` of the challenge that the server answers to a request without a credential. Null when it has none. */
async function challengedUrl(outbound: Outgoing, server: string, signal: CancelSignal): Promise<string | null> {
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const { status, headers: got } = await exchanged(outbound, { method: 'POST', url: server, headers, body: probe }, signal)
  if (status !== 401) return null
  const challenge = (headerOf(got, 'www-authenticate') ?? '').slice(0, challengeMaxChars)
  const found = resourceMetadataParam.exec(challenge)
  const url = found?.[1] ?? found?.[2] ?? null
  if (url !== null && !URL.canParse(url)) throw new OAuthFailure('protocol', 'resource_metadata in the challenge of the server is not a URL')
  return url
}

/** Returns null when there is no such document. Throws OAuthFailure for every other answer than a proper document. */
async function documentAt<T extends z.ZodType>(outbound: Outgoing, url: string, shape: T, signal: CancelSignal): Promise<z.output<T> | null> {
  const { status, bytes } = await exchanged(outbound, { method: 'GET', url, headers: { accept: 'application/json' } }, signal)
  const { host } = new URL(url)
  if (status === 429 || status >= 500) throw new OAuthFailure('unavailable', `${host} answered ${status}`)
  if (status >= 300 && status < 400) throw new OAuthFailure('protocol', `${host} answered with a redirect, which is not followed`)
  if (status !== 200) return null
  const parsed = shape.safeParse(jsonOf(bytes))
  if (!parsed.success) throw new OAuthFailure('protocol', `the metadata at ${host} is not as the protocol says`)
  return parsed.data
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return null
  }
}
