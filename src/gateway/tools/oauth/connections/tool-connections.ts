import type { Clock } from '../../../../platform/clock.ts'
import type { Db } from '../../../../platform/db/db.ts'
import type { ControlLog } from '../../../../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import type { CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { Log } from '../../../../platform/observe/log.ts'
import type { Outbound } from '../../../../platform/outbound/outbound.ts'
import type { AddressTests } from '../../../../platform/security/address-tests.ts'
import type { SessionPrincipal } from '../../../../platform/security/principal.ts'
import { hashKey, type Sealer } from '../../../../platform/security/secrets.ts'
import type { Ids } from '../../../../platform/values/ids.ts'
import { lockOrg, lockToolServer } from '../../registry/servers/tool-server-queries.ts'
import { noToolServer } from '../../registry/sync/tool-sync.ts'
import { toolConnectionEnded } from '../../registry/tool-news.ts'
import { findOAuthClient, type OAuthClientRow } from '../client-queries.ts'
import { findIssuer, readIssuer } from '../issuer/find-issuer.ts'
import { checkCodeFlow, type FoundIssuer } from '../issuer/issuer-metadata.ts'
import { failureIn } from '../issuer/oauth-failure.ts'
import type { IssuedToken, TokenRequests } from '../issuer/token-requests.ts'
import { openClient } from '../oauth-client.ts'
import type { ServerOAuth } from '../server-oauth.ts'
import { callbackPath } from './callback-path.ts'
import { endConnection, findListedConnection, type ListedConnection, listConnections } from './connection-queries.ts'
import { deleteOldStates, deleteSurplusStates, findActiveMember, insertState, type StateRow, takeState } from './state-queries.ts'

export interface ToolConnectionsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly outbound: Pick<Outbound, 'toUserUrl' | 'guard'>
  readonly addressTests: Pick<AddressTests, 'take' | 'passed'>
  readonly requests: TokenRequests
  readonly oauth: ServerOAuth
  readonly baseUrl: () => string
  /** Reads the tools of a server after an owner or admin connected. It must not throw. */
  onConnected(orgId: number, serverId: string): void
}

/** How long a person may take at the issuer. */
const stateTtlMs = 10 * 60_000
const secretBytes = 32
/** Maximum number of consents of a person that are under way. A new one ends the oldest. */
const statesMax = 10
const stateShape = /^[A-Za-z0-9_-]{43}$/
const firstId = '00000000-0000-0000-0000-000000000000'

/** What a list of connections contains. `userId` null: everybody. `serverId` null: every server. */
export interface ConnectionFilter {
  readonly userId: number | null
  readonly serverId: string | null
  /** The id behind which the page begins. */
  readonly after: string | null
  readonly limit: number
}

/** Returns the name that ties the sealed verifier of a consent to its row. */
export const toolStateOwner = (stateHash: Buffer): string => `tool_oauth_state:${stateHash.toString('hex')}`

/** The connections of people with servers: the way to the issuer and back, lists, and the end. */
export class ToolConnections {
  readonly #deps: ToolConnectionsDeps
  constructor(deps: ToolConnectionsDeps) {
    this.#deps = deps
  }

  /**
   * Returns the address at the issuer where the person consents. The consent belongs to this session, works once, and ends after 10 minutes. Throws
   * `not_found`, `bad_request`, `unavailable`, `rate_limit_exceeded`.
   */
  async begin({ orgId, userId, sessionId }: SessionPrincipal, serverId: string, signal: CancelSignal): Promise<{ url: URL; expiresAt: Date }> {
    const { db, clock, ids, sealer, requests, addressTests } = this.#deps
    const client = await this.#clientOf(orgId, serverId)
    addressTests.take(orgId)
    const found = await this.#tried(() => this.#issuerOf(client, signal))
    addressTests.passed(orgId)
    const [state, verifier] = [ids.secret('', secretBytes), ids.secret('', secretBytes)]
    const url = await this.#tried(() => requests.consentUrl(found, this.#opened(client), { redirectUri: this.#redirectUri(), state, verifier }))
    const hash = hashKey(state)
    const expiresAt = new Date(clock.nowMs() + stateTtlMs)
    await db.tx(async tx => {
      await tx.exec(deleteSurplusStates, orgId, userId, statesMax - 1)
      const sealed = sealer.seal(verifier, toolStateOwner(hash))
      await tx.exec(insertState, orgId, hash, serverId, userId, sessionId, sealed, found.issuer, found.resource, expiresAt)
    })
    return { url, expiresAt }
  }

  /**
   * Takes a person back from the issuer: checks state and `iss`, exchanges the code, and keeps the sealed tokens. `query` has what the issuer sent. Throws
   * `bad_request` when the consent was not begun in this session, was used or is too old, and when the issuer declined or sent what does not hold. Throws
   * `unavailable` when the issuer does not answer.
   */
  async finish({ orgId, userId, role, sessionId }: SessionPrincipal, query: Readonly<Record<string, string>>, signal: CancelSignal): Promise<ListedConnection> {
    const { db, clock, controlLog } = this.#deps
    const state = query['state'] ?? ''
    const taken = stateShape.test(state) ? await db.maybe(takeState, orgId, hashKey(state), userId, sessionId) : null
    if (taken === null || taken.expiresAt.getTime() <= clock.nowMs()) throw notBegun()
    const client = await this.#clientOf(orgId, taken.serverId)
    if (client.issuer !== taken.issuer) throw changed()
    const { token, found } = await this.#tried(() => this.#exchange(client, taken, state, query, signal))
    const id = await controlLog.change(async tx => {
      // A person who leaves locks the organisation too, so a connection is either ended by that or refused here.
      await tx.one(lockOrg, orgId)
      if ((await tx.maybe(findActiveMember, orgId, userId)) === null) throw fail('forbidden', { message: 'You are no member of this organisation any more.' })
      if ((await tx.maybe(lockToolServer, orgId, taken.serverId)) === null) throw noToolServer()
      const now = await tx.maybe(findOAuthClient, orgId, taken.serverId)
      if (now === null || now.issuer !== taken.issuer || now.clientId !== client.clientId || now.url !== client.url) throw changed()
      const news = await this.#deps.oauth.connect(tx, orgId, taken.serverId, userId, found, token)
      return { value: news.ref, news: [news] }
    })
    if (role !== 'member') this.#deps.onConnected(orgId, taken.serverId)
    return db.one(findListedConnection, orgId, id)
  }

  /** Returns a page of connections, and the cursor of the next page. */
  async list(orgId: number, { userId, serverId, after, limit }: ConnectionFilter): Promise<{ connections: readonly ListedConnection[]; next: string | null }> {
    const rows = await this.#deps.db.many(listConnections, orgId, userId, serverId, after ?? firstId, limit + 1)
    const connections = rows.slice(0, limit)
    return { connections, next: rows.length > limit ? (connections.at(-1)?.id ?? null) : null }
  }

  /**
   * Ends a connection: running calls with it end, and its tokens are revoked at the issuer soon after, if the issuer offers that. People end their own, and
   * owners and admins every one. Throws `not_found`.
   */
  async end({ orgId, userId, role }: SessionPrincipal, id: string): Promise<void> {
    const { controlLog, clock } = this.#deps
    await controlLog.change(async tx => {
      const found = await tx.maybe(findListedConnection, orgId, id)
      if (found === null || (found.userId !== userId && role === 'member')) throw noConnection()
      const ended = await tx.maybe(endConnection, orgId, id, new Date(clock.nowMs()))
      return { value: undefined, news: ended === null ? [] : [{ kind: toolConnectionEnded, ref: id }] }
    })
  }

  /** Deletes consents that were never finished. Returns their number. */
  async sweep(): Promise<number> {
    return this.#deps.db.exec(deleteOldStates, new Date(this.#deps.clock.nowMs()))
  }

  async #clientOf(orgId: number, serverId: string): Promise<OAuthClientRow> {
    const client = await this.#deps.db.maybe(findOAuthClient, orgId, serverId)
    if (client === null || client.url === '') throw noToolServer()
    if (client.authKind !== 'oauth_user')
      throw fail('bad_request', { message: 'People do not connect with this server: its credential belongs to the organisation.' })
    return client
  }

  async #issuerOf({ url, issuer, secretSealed }: OAuthClientRow, signal: CancelSignal): Promise<FoundIssuer> {
    const found = await findIssuer(this.#deps.outbound, url, issuer, signal)
    checkCodeFlow(found, secretSealed === null)
    return found
  }

  /** The issuer's own metadata say where codes are exchanged. The issuer is the one to which the person was sent. */
  async #exchange(
    client: OAuthClientRow,
    { issuer, resource, verifierSealed }: StateRow,
    state: string,
    query: Readonly<Record<string, string>>,
    signal: CancelSignal,
  ): Promise<{ token: IssuedToken; found: FoundIssuer }> {
    const { outbound, sealer, requests } = this.#deps
    const read = await readIssuer(outbound, issuer, signal)
    // The issuer has said that it sends `iss`, and may say something else now.
    const metadata = client.secretSealed === null ? { ...read, authorization_response_iss_parameter_supported: true } : read
    const found = { issuer, resource, resourceScopes: [], metadata }
    const callback = new URL(this.#redirectUri())
    for (const [name, value] of Object.entries(query)) callback.searchParams.append(name, value)
    const verifier = sealer.open(verifierSealed, toolStateOwner(hashKey(state)))
    return { token: await requests.exchangeCode(found, this.#opened(client), callback, { state, verifier }, signal), found }
  }

  #opened(client: OAuthClientRow) {
    try {
      return openClient(this.#deps.sealer, client)
    } catch (cause) {
      throw fail('bad_request', { message: 'The secret of this server cannot be opened any more. An admin sends "auth" again.', cause })
    }
  }

  /** Logs only the kind of a failure. */
  async #tried<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const failure = failureIn(error)
      if (failure === null) throw error
      this.#deps.log.warn('tool_connection_failed', { code: failure.kind })
      const message = `The issuer of this server gave no connection: ${failure.message}. Nothing was kept. Begin again with POST /me/tool-servers/{id}/connect.`
      throw failure.kind === 'unavailable' ? fail('unavailable', { message, cause: error }) : fail('bad_request', { message, cause: error })
    }
  }

  #redirectUri(): string {
    return `${this.#deps.baseUrl()}${callbackPath}`
  }
}

const notBegun = (): GatewayError =>
  fail('bad_request', {
    message:
      'This connection was not begun in this session, was finished already, or took longer than 10 minutes. Begin again with POST /me/tool-servers/{id}/connect.',
  })

const changed = (): GatewayError =>
  fail('bad_request', { message: 'An admin changed this server meanwhile. Begin again with POST /me/tool-servers/{id}/connect.' })

const noConnection = (): GatewayError => fail('not_found', { message: 'There is no such connection. GET /me/tool-connections lists yours.' })
