import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { NewsItem } from '../../../platform/db/db-control-log.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import { maskSecret, type Sealer } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { ToolCredential } from '../registry/callable-tool.ts'
import { toolConnectionChanged, toolConnectionEnded } from '../registry/tool-news.ts'
import { clientDocumentUrl } from './client-document.ts'
import { deleteStatesOfServer, deleteUnusedClient, findOAuthClient, putOAuthClient } from './client-queries.ts'
import { type ConnectionRow, endConnectionsOfServer, findConnectionOf, insertConnection, replaceTokens } from './connections/connection-queries.ts'
import { toolTokenOwner } from './connections/held-connection.ts'
import { findIssuer, readIssuer } from './issuer/find-issuer.ts'
import { checkCodeFlow, type FoundIssuer, isSameUrl } from './issuer/issuer-metadata.ts'
import { OAuthFailure } from './issuer/oauth-failure.ts'
import type { IssuedToken, TokenRequests } from './issuer/token-requests.ts'
import { openClient, toolClientOwner } from './oauth-client.ts'

/** What an admin gives for a server that takes tokens. */
export interface ClientParams {
  readonly kind: 'client_credentials' | 'oauth_user'
  /** Null: the client-id metadata document of this gateway, for a server to which people connect. */
  readonly clientId: string | null
  readonly clientSecret: string | null
  /** With spaces between them. Empty: those that the server names. */
  readonly scopes: string
  /** Null: the first issuer that the server names. */
  readonly issuer: string | null
}

/** A client that was tried at its issuer. The token is null when people connect themselves. */
export interface TriedClient {
  readonly params: ClientParams & { readonly clientId: string }
  readonly found: FoundIssuer
  readonly token: IssuedToken | null
}

export interface ServerOAuthDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly sealer: Sealer
  readonly outbound: Pick<Outbound, 'toUserUrl' | 'guard'>
  readonly requests: TokenRequests
  readonly baseUrl: () => string
}

/** Longest time of one attempt to revoke a token. */
const revokeMs = 10_000

/** The OAuth clients of servers: tries them, writes them, asks for their tokens, and revokes these. */
export class ServerOAuth {
  readonly #deps: ServerOAuthDeps
  constructor(deps: ServerOAuthDeps) {
    this.#deps = deps
  }

  /** Finds the issuer of a server, and gets the first token of a client with client credentials. Throws OAuthFailure. */
  async tried(url: string, params: ClientParams, signal: CancelSignal): Promise<TriedClient> {
    const found = await findIssuer(this.#deps.outbound, url, params.issuer, signal)
    const client = { ...params, clientId: params.clientId ?? this.#documentUrl(found) }
    if (params.kind === 'client_credentials') return { params: client, found, token: await this.#deps.requests.clientCredentials(found, client, signal) }
    checkCodeFlow(found, client.clientSecret === null)
    return { params: client, found, token: null }
  }

  /** Replaces the client of a server, and ends every connection with the server. The caller holds the lock of the server. */
  async write(tx: Tx, orgId: number, serverId: string, { params, found, token }: TriedClient): Promise<NewsItem[]> {
    const { sealer, clock } = this.#deps
    const news = await this.end(tx, orgId, serverId)
    const { clientId, clientSecret, scopes } = params
    const sealed = clientSecret === null ? null : sealer.seal(clientSecret, toolClientOwner(orgId, serverId))
    const mask = clientSecret === null ? null : maskSecret(clientSecret)
    await tx.exec(putOAuthClient, orgId, serverId, clientId, sealed, mask, scopes, found.issuer, new Date(clock.nowMs()))
    return token === null ? news : [...news, await this.connect(tx, orgId, serverId, null, found, token)]
  }

  /** Writes a connection: new tokens for the one that there is, or a new one. The caller holds the lock of the server. Returns the news. */
  async connect(
    tx: Tx,
    orgId: number,
    serverId: string,
    userId: number | null,
    found: Pick<FoundIssuer, 'issuer' | 'resource'>,
    token: IssuedToken,
  ): Promise<NewsItem> {
    const { sealer, clock, ids } = this.#deps
    const nowMs = clock.nowMs()
    const before = userId === null ? null : await tx.maybe(findConnectionOf, orgId, serverId, userId)
    const id = before?.id ?? ids.uuidv7(nowMs)
    const access = sealer.seal(token.access, toolTokenOwner(id, 'access'))
    const refresh = token.refresh === null ? null : sealer.seal(token.refresh, toolTokenOwner(id, 'refresh'))
    const of = [found.issuer, found.resource, token.scopes, access, refresh, token.renewAt, token.expiresAt] as const
    // Some issuers end the whole consent when one of its tokens is revoked, so the tokens before are forgotten and not revoked.
    if (before !== null && userId !== null) await tx.exec(replaceTokens, orgId, serverId, userId, ...of, id)
    else await tx.exec(insertConnection, orgId, id, serverId, userId, ...of, new Date(nowMs))
    return { kind: toolConnectionChanged, ref: id }
  }

  /** Ends every connection with a server and every consent under way. The caller holds the lock of the server. Returns the news, which cut running calls. */
  async end(tx: Tx, orgId: number, serverId: string): Promise<NewsItem[]> {
    await tx.exec(deleteStatesOfServer, orgId, serverId)
    const ended = await tx.many(endConnectionsOfServer, orgId, serverId, new Date(this.#deps.clock.nowMs()))
    await tx.exec(deleteUnusedClient, orgId, serverId)
    return ended.map(({ id }) => ({ kind: toolConnectionEnded, ref: id }))
  }

  /**
   * Asks the issuer for the next tokens of a connection. The server must still name that issuer and that resource; otherwise nothing is sent to anybody.
   * Throws OAuthFailure.
   */
  async nextTokens(row: ConnectionRow, signal: CancelSignal): Promise<IssuedToken> {
    const { db, sealer, outbound, requests } = this.#deps
    const client = await db.maybe(findOAuthClient, row.orgId, row.serverId)
    if (client === null || client.issuer !== row.issuer) throw new OAuthFailure('moved', 'the server has another issuer now')
    if (row.userId !== null && row.refreshSealed === null) throw new OAuthFailure('grant', 'the issuer gave no refresh token')
    const found = await findIssuer(outbound, client.url, row.issuer, signal)
    if (!isSameUrl(found.resource, row.resource)) throw new OAuthFailure('moved', 'the server names another resource now')
    const opened = openClient(sealer, client)
    if (row.userId === null || row.refreshSealed === null) return requests.clientCredentials(found, opened, signal)
    return requests.refresh(found, opened, sealer.open(row.refreshSealed, toolTokenOwner(row.id, 'refresh')), signal)
  }

  /** Revokes the tokens of a connection at its issuer. Returns whether the issuer took it. Never throws. */
  async revoke(row: ConnectionRow): Promise<boolean> {
    const { sealer } = this.#deps
    try {
      // The end of a refresh token ends its access tokens (RFC 7009, 2.1).
      if (row.refreshSealed !== null) return await this.#revoke(row, sealer.open(row.refreshSealed, toolTokenOwner(row.id, 'refresh')), 'refresh_token')
      if (row.accessSealed !== null) return await this.#revoke(row, sealer.open(row.accessSealed, toolTokenOwner(row.id, 'access')), 'access_token')
      return false
    } catch {
      return false
    }
  }

  /** Revokes tokens that came after their connection had ended. Never throws. */
  async revokeUnkept(row: ConnectionRow, { access, refresh }: IssuedToken): Promise<void> {
    await this.#revoke(row, refresh ?? access, refresh === null ? 'access_token' : 'refresh_token').catch(() => undefined)
  }

  #documentUrl({ metadata }: FoundIssuer): string {
    const url = clientDocumentUrl(this.#deps.baseUrl())
    if (metadata.client_id_metadata_document_supported === true && url !== null) return url
    throw new OAuthFailure(
      'protocol',
      url === null
        ? 'client_id is not given, and this gateway has no public https address for a client-id metadata document'
        : 'client_id is not given, and the issuer takes no client-id metadata documents',
    )
  }

  /** The tokens go to the issuer that gave them. A server whose client belongs to another issuer by now cannot prove itself there. */
  async #revoke({ orgId, serverId, issuer }: ConnectionRow, token: string, hint: string): Promise<boolean> {
    const { db, sealer, outbound, requests } = this.#deps
    const client = await db.maybe(findOAuthClient, orgId, serverId)
    if (client === null || client.issuer !== issuer) return false
    const signal = AbortSignal.timeout(revokeMs)
    return requests.revoke({ metadata: await readIssuer(outbound, issuer, signal) }, openClient(sealer, client), token, hint, signal)
  }
}

/** Returns the header with an access token. */
export const bearerHeader = (access: string): ToolCredential => ({ name: 'authorization', value: `Bearer ${access}` })
