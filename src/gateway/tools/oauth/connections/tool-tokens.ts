import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../../platform/clock.ts'
import type { Db } from '../../../../platform/db/db.ts'
import type { ControlLog } from '../../../../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import type { CancelSignal } from '../../../../platform/loop/cancellation.ts'
import { ExpiringCache } from '../../../../platform/loop/expiring-cache.ts'
import type { Log } from '../../../../platform/observe/log.ts'
import type { Sealer } from '../../../../platform/security/secrets.ts'
import type { Ids } from '../../../../platform/values/ids.ts'
import { toolConnectionChanged, toolConnectionEnded } from '../../registry/tool-news.ts'
import type { OAuthFailure } from '../issuer/oauth-failure.ts'
import { failureIn } from '../issuer/oauth-failure.ts'
import type { IssuedToken } from '../issuer/token-requests.ts'
import {
  type ConnectionRow,
  claimRenewal,
  findConnection,
  findConnectionOf,
  findReadingConnection,
  keepTokens,
  needConsent,
  releaseClaim,
} from './connection-queries.ts'
import { type HeldConnection, heldConnection, toolTokenOwner } from './held-connection.ts'

export interface ToolTokensDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** Asks the issuer for the next tokens of a connection. Throws OAuthFailure. */
  nextTokens(row: ConnectionRow, signal: CancelSignal): Promise<IssuedToken>
  /** Revokes tokens that no row keeps. It never throws. */
  revokeUnkept(row: ConnectionRow, token: IssuedToken): Promise<void>
}

const connectionsMax = 20_000
/** News of every change drops a connection from the cache, so the lifetime only limits what lost news could do. */
const ttlMs = 30_000
/** Longest time of a renewal. It is far below the lease, so that a slow process has stopped when another one begins. */
const renewalMs = 25_000
const leaseMs = 60_000
/** How often a process looks whether the process that renews has finished. */
const lookEveryMs = 100
/** An issuer that failed is left alone for this time by this process. */
const pauseMs = 5_000
const keepAttempts = 3
const keepPauseMs = 500

/**
 * The access tokens of connections, in the memory of this process, and their renewal. One process renews a connection at a time, and all callers of all
 * processes get the token that it brings. Decision 0830 says why.
 */
export class ToolTokens {
  readonly #deps: ToolTokensDeps
  readonly #cache: ExpiringCache<string, HeldConnection>
  /** Renewals under way in this process, by connection. */
  readonly #running = new Map<string, Promise<HeldConnection>>()
  /** Connections whose issuer failed, with the monotonic milliseconds until which they are not renewed. */
  readonly #paused = new LRUCache<string, { readonly untilMs: number; readonly error: GatewayError }>({ max: connectionsMax })

  constructor(deps: ToolTokensDeps) {
    this.#deps = deps
    this.#cache = new ExpiringCache({
      max: connectionsMax,
      ttlMs,
      clock: deps.clock,
      load: async key => {
        const [orgId, serverId = '', userId] = key.split('/')
        const row = await deps.db.maybe(findConnectionOf, Number(orgId), serverId, userId === '' ? null : Number(userId))
        return row === null ? null : heldConnection(deps.sealer, row)
      },
    })
    deps.controlLog.on(({ kind, ref }) => {
      if (kind === toolConnectionChanged || kind === toolConnectionEnded) this.#cache.invalidateWhere(({ id }) => id === ref)
    })
    deps.controlLog.onGap(() => this.#cache.clear())
  }

  /** Returns the connection of a person with a server, or the organisation's own for the user null. Null: there is none. */
  of(orgId: number, serverId: string, userId: number | null): HeldConnection | null | Promise<HeldConnection | null> {
    return this.#cache.get(keyOf(orgId, serverId, userId))
  }

  /** Returns the connection that reads the tools of a server to which people connect. Null: no owner or admin has one that works. */
  async reading(orgId: number, serverId: string): Promise<HeldConnection | null> {
    const row = await this.#deps.db.maybe(findReadingConnection, orgId, serverId)
    return row === null ? null : heldConnection(this.#deps.sealer, row)
  }

  /**
   * Returns the connection with a token that can be sent. Renews a token whose end is near. While the issuer cannot be reached, a token that has not ended is
   * used. Throws the errors of `renewed`.
   */
  async usable(held: HeldConnection, signal: CancelSignal): Promise<HeldConnection> {
    if (held.needsConsentSince !== null) throw consentNeeded()
    const nowMs = this.#deps.clock.nowMs()
    if (held.access !== null && (held.renewAt === null || nowMs < held.renewAt.getTime())) return held
    try {
      return await this.renewed(held, signal)
    } catch (error) {
      const isAlive = held.access !== null && held.expiresAt !== null && nowMs < held.expiresAt.getTime()
      if (isAlive && error instanceof Error && 'code' in error && error.code === 'tool_server_unavailable') return held
      throw error
    }
  }

  /**
   * Returns the connection with newer tokens than the given ones. Throws `tool_connection_required` when a person must consent again, `tool_server_failed`
   * when the issuer refuses the client, `tool_server_unavailable` when it does not answer, and the reason of the signal.
   */
  renewed(held: HeldConnection, signal: CancelSignal): Promise<HeldConnection> {
    const known = this.#running.get(held.id)
    if (known !== undefined) return untilAborted(known, signal)
    const paused = this.#paused.get(held.id)
    if (paused !== undefined && this.#deps.clock.monotonicMs() < paused.untilMs) return Promise.reject(paused.error)
    // The renewal goes on when the caller leaves, because others may wait for it and the issuer may have used up the refresh token.
    const running = this.#renew(held).finally(() => this.#running.delete(held.id))
    this.#running.set(held.id, running)
    running.catch(() => undefined)
    return untilAborted(running, signal)
  }

  async #renew({ orgId, id, version }: HeldConnection): Promise<HeldConnection> {
    const { db, clock, ids, sealer } = this.#deps
    const claim = ids.uuidv7(clock.nowMs())
    const endMs = clock.monotonicMs() + renewalMs
    for (;;) {
      const claimed = await db.maybe(claimRenewal, orgId, id, version, claim, leaseMs)
      if (claimed !== null) return this.#renewClaimed(claimed, claim)
      const row = await db.maybe(findConnection, orgId, id)
      if (row === null) throw connectionRequired()
      if (row.needsConsentSince !== null) throw consentNeeded()
      if (row.version !== version) return heldConnection(sealer, row)
      if (clock.monotonicMs() >= endMs) throw issuerAway(1)
      await clock.sleep(lookEveryMs)
    }
  }

  async #renewClaimed(row: ConnectionRow, claim: string): Promise<HeldConnection> {
    const { sealer } = this.#deps
    let token: IssuedToken
    try {
      token = await this.#deps.nextTokens(row, AbortSignal.timeout(renewalMs))
    } catch (error) {
      throw await this.#failed(row, claim, error)
    }
    const kept = await this.#keep(row, claim, token)
    return kept === null ? this.#overtaken(row, token) : heldConnection(sealer, kept)
  }

  /** Returns the connection with the tokens of a consent that was given meanwhile. When the connection has ended, its new tokens are revoked. */
  async #overtaken(row: ConnectionRow, token: IssuedToken): Promise<HeldConnection> {
    const now = await this.#deps.db.maybe(findConnection, row.orgId, row.id)
    if (now !== null && now.needsConsentSince === null) return heldConnection(this.#deps.sealer, now)
    await this.#deps.revokeUnkept(row, token)
    throw connectionRequired()
  }

  /** The issuer may have used up the old refresh token, so a database that fails once is asked again. */
  async #keep(row: ConnectionRow, claim: string, token: IssuedToken): Promise<ConnectionRow | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#keepOnce(row, claim, token)
      } catch (error) {
        if (attempt === keepAttempts) throw error
        await this.#deps.clock.sleep(keepPauseMs)
      }
    }
  }

  #keepOnce({ orgId, id, version, refreshSealed, scopes }: ConnectionRow, claim: string, token: IssuedToken): Promise<ConnectionRow | null> {
    const { controlLog, sealer } = this.#deps
    const access = sealer.seal(token.access, toolTokenOwner(id, 'access'))
    // An issuer that does not rotate sends no new refresh token.
    const refresh = token.refresh === null ? refreshSealed : sealer.seal(token.refresh, toolTokenOwner(id, 'refresh'))
    return controlLog.change(async tx => {
      const kept = await tx.maybe(keepTokens, orgId, id, version, claim, access, refresh, token.renewAt, token.expiresAt, token.scopes || scopes)
      return { value: kept, news: kept === null ? [] : [{ kind: toolConnectionChanged, ref: id }] }
    })
  }

  /** Ends the claim, and returns the error for the callers. */
  async #failed(row: ConnectionRow, claim: string, error: unknown): Promise<unknown> {
    const { db, log, clock } = this.#deps
    const failure = failureIn(error)
    log.warn('tool_token_not_renewed', { orgId: row.orgId, code: failure?.kind ?? 'error' })
    if (failure !== null && row.userId !== null && (failure.kind === 'grant' || failure.kind === 'moved')) {
      await this.#askConsent(row, claim)
      return consentNeeded()
    }
    await db.exec(releaseClaim, row.orgId, row.id, claim)
    if (failure === null && !isTimeout(error)) return error
    const shown = failure === null || failure.kind === 'unavailable' ? issuerAway(Math.ceil(pauseMs / 1000)) : issuerRefused(failure)
    this.#paused.set(row.id, { untilMs: clock.monotonicMs() + pauseMs, error: shown })
    return shown
  }

  async #askConsent({ orgId, id }: ConnectionRow, claim: string): Promise<void> {
    const { controlLog, clock } = this.#deps
    await controlLog.change(async tx => {
      const marked = await tx.maybe(needConsent, orgId, id, claim, new Date(clock.nowMs()))
      return { value: undefined, news: marked === null ? [] : [{ kind: toolConnectionChanged, ref: id }] }
    })
  }
}

const keyOf = (orgId: number, serverId: string, userId: number | null): string => `${orgId}/${serverId}/${userId ?? ''}`

const isTimeout = (error: unknown): boolean => error instanceof DOMException && (error.name === 'TimeoutError' || error.name === 'AbortError')

/** The person behind the call has no connection with the server. */
const connectionRequired = (): GatewayError => fail('tool_connection_required')

const consentNeeded = (): GatewayError =>
  fail('tool_connection_required', {
    message: 'The connection with the server of this tool works no more: the person must connect again. Nothing was sent to the server.',
  })

const issuerAway = (retryAfterSeconds: number): GatewayError =>
  fail('tool_server_unavailable', {
    message: 'The issuer of the tokens for the server of this tool does not answer. Nothing was sent to the server.',
    retryAfterSeconds,
  })

const issuerRefused = ({ message }: OAuthFailure): GatewayError =>
  fail('tool_server_failed', {
    message: `There is no token for the server of this tool: ${message}. An admin of the organisation can change its credential. Nothing was sent to the server.`,
  })

/** Rejects with the reason of the signal when it aborts first. The work goes on. */
function untilAborted<T>(work: Promise<T>, signal: CancelSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
