import { createHmac, timingSafeEqual } from 'node:crypto'
import { parseCookie, stringifySetCookie } from 'cookie'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import type { SessionPrincipal } from '../../platform/security/principal.ts'
import { deriveKey, hashKey } from '../../platform/security/secrets.ts'
import { comparedEmail } from '../../platform/values/email-address.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { Founders } from '../orgs/founders.ts'
import { isOfMember } from '../orgs/members/member-news.ts'
import type { BrowserFamily } from './own-sessions/browser-family.ts'
import { deleteOldSessions, findSession, insertSession, moveSession, noteUse, revokeSession, type SessionRow } from './queries.ts'

/** The cookie of a signed-in person. Decision 0100 says why. */
export const sessionCookie = 'br_session'

export interface SessionsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly controlLog: ControlLog
  /** Receives the founder of an organisation when a session of the organisation is loaded. Optional. */
  readonly founders?: Pick<Founders, 'note'>
  readonly masterKey: Buffer
  /** The other master keys. Cookies that they signed stay valid while the master key is changed. */
  readonly otherMasterKeys?: readonly Buffer[]
  /** The setting SESSION_TTL_S. */
  readonly ttlSeconds: number
  /** The setting CACHE_TTL_MS. */
  readonly cacheTtlMs: number
  /** The setting OPERATOR_EMAILS. When it is left out, nobody is an operator. */
  readonly operatorEmails?: readonly string[]
  readonly baseUrl: () => string
}

/** The `kind` of the control-log item for a session that was ended or moved. The item's `ref` is the session's id. */
export const sessionChanged = 'session_changed'
/** Returns the news that a session has ended or was moved. `sessionId` is the base64 of its hash. */
export const sessionEnded = (sessionId: string): NewsItem => ({ kind: sessionChanged, ref: sessionId })

/** How old the stored time of the last use may be before it is written again. */
const useEveryMs = 60_000
const idBytes = 32
const sessionsCachedMax = 50_000
/** How long this process remembers that a session id is not in the database. */
const unknownTtlMs = 2_000

/**
 * Sessions of signed-in people. The cookie has a random id and a signature over this id. The database has the hash of the id. So neither a forged
 * cookie nor a copy of the table gives access, and a forged cookie costs no query. An ended session is refused immediately in this process, and
 * within a second in other processes.
 */
export class Sessions {
  readonly #deps: SessionsDeps
  readonly #key: Buffer
  /** The first key signs. Signatures of the other keys are also valid. */
  readonly #keys: readonly Buffer[]
  readonly #operators: ReadonlySet<string>
  readonly #rows: ExpiringCache<string, SessionRow>

  constructor(deps: SessionsDeps) {
    this.#deps = deps
    this.#key = deriveKey(deps.masterKey, 'session-cookie')
    this.#keys = [this.#key, ...(deps.otherMasterKeys ?? []).map(key => deriveKey(key, 'session-cookie'))]
    this.#operators = new Set(deps.operatorEmails)
    this.#rows = new ExpiringCache({
      max: sessionsCachedMax,
      ttlMs: deps.cacheTtlMs,
      negativeTtlMs: unknownTtlMs,
      clock: deps.clock,
      load: async id => {
        const hash = Buffer.from(id, 'base64')
        const row = await deps.db.maybe(findSession, hash)
        if (row === null) return null
        deps.founders?.note(row.orgId, row.founder)
        this.#noteUse(hash, row)
        return row
      },
    })
    deps.controlLog.on(news => {
      if (news.kind === sessionChanged) this.#rows.invalidate(news.ref)
      else if (news.kind === 'member_changed') this.#rows.invalidateWhere(isOfMember(news.ref))
    })
    deps.controlLog.onGap(() => this.#rows.clear())
  }

  /**
   * Signs a person in to one of their organisations. `provenEmail` is the address that the sign-in proved. The session proves nothing when it is left out
   * or differs from the address of the person. `setCookie` is the value of a set-cookie header.
   */
  async create(
    userId: number,
    orgId: number,
    browser: BrowserFamily | null = null,
    provenEmail: string | null = null,
  ): Promise<{ cookie: string; setCookie: string }> {
    const { db, clock, ids, ttlSeconds } = this.#deps
    const id = ids.secret('', idBytes)
    const nowMs = clock.nowMs()
    await db.exec(insertSession, hashKey(id), userId, orgId, new Date(nowMs), new Date(nowMs + ttlSeconds * 1000), browser, provenEmail)
    const value = `${id}.${this.#mac(id)}`
    return { cookie: `${sessionCookie}=${value}`, setCookie: this.#setCookie(value, ttlSeconds) }
  }

  /** Returns the set-cookie value that deletes the cookie. */
  clearingCookie(): string {
    return this.#setCookie('', 0)
  }

  /**
   * Returns the principal of a cookie header. Throws `no_session`. When the database is unreachable, its own error is thrown. Returns without a
   * promise when the session is cached.
   */
  principalOf(cookieHeader: string | undefined): SessionPrincipal | Promise<SessionPrincipal> {
    const sessionId = this.#idOf(cookieHeader)
    if (sessionId === null) throw fail('no_session')
    return this.current(sessionId)
  }

  /**
   * Returns the present principal of a session. Throws `no_session` when it has ended or has expired. Returns without a promise when the session is cached.
   */
  current(sessionId: string): SessionPrincipal | Promise<SessionPrincipal> {
    const row = this.#rows.get(sessionId)
    return row instanceof Promise ? row.then(found => this.#principal(sessionId, found)) : this.#principal(sessionId, row)
  }

  /** Ends a session permanently. */
  async revoke(sessionId: string): Promise<void> {
    await this.#change(sessionId, async tx => (await tx.maybe(revokeSession, Buffer.from(sessionId, 'base64'), new Date(this.#deps.clock.nowMs()))) !== null)
  }

  /** Moves a session to another organisation of the person. Returns false when the person is not an active member there. */
  async move(sessionId: string, orgId: number): Promise<boolean> {
    return this.#change(sessionId, async tx => (await tx.maybe(moveSession, orgId, Buffer.from(sessionId, 'base64'))) !== null)
  }

  /** Deletes expired sessions. Returns their number. */
  async sweep(): Promise<number> {
    return this.#deps.db.exec(deleteOldSessions, new Date(this.#deps.clock.nowMs()))
  }

  #change(sessionId: string, write: (tx: Parameters<Parameters<ControlLog['change']>[0]>[0]) => Promise<boolean>): Promise<boolean> {
    return this.#deps.controlLog.change(async tx => {
      const isChanged = await write(tx)
      return { value: isChanged, news: isChanged ? [sessionEnded(sessionId)] : [] }
    })
  }

  /**
   * Writes the time of a use, at most once for each load of the session into the cache. No request waits for it, and a time that cannot be written is left
   * out.
   */
  #noteUse(hash: Buffer, { lastUsedAt }: SessionRow): void {
    const { db, clock } = this.#deps
    const nowMs = clock.nowMs()
    if (lastUsedAt !== null && Math.abs(nowMs - lastUsedAt.getTime()) < useEveryMs) return
    db.exec(noteUse, hash, new Date(nowMs)).catch(() => undefined)
  }

  #principal(sessionId: string, row: SessionRow | null): SessionPrincipal {
    if (row === null || row.role === null || row.expiresAt.getTime() <= this.#deps.clock.nowMs()) throw fail('no_session')
    return {
      kind: 'session',
      orgId: row.orgId,
      userId: row.userId,
      email: row.email,
      role: row.role,
      capabilities: row.capabilities ?? [],
      sessionId,
      ...(row.isAddressProven && this.#operators.has(comparedEmail(row.email)) ? { isOperator: true } : {}),
    }
  }

  /** Returns the id of the session (base64 of the hash) when the cookie has a valid signature, otherwise null. */
  #idOf(cookieHeader: string | undefined): string | null {
    const value = cookieHeader === undefined ? undefined : parseCookie(cookieHeader)[sessionCookie]
    const [id, mac, ...rest] = value?.split('.') ?? []
    if (id === undefined || mac === undefined || rest.length > 0) return null
    const given = Buffer.from(mac)
    const isOurs = this.#keys.some(key => {
      const expected = Buffer.from(macOf(key, id))
      return expected.length === given.length && timingSafeEqual(expected, given)
    })
    return isOurs ? hashKey(id).toString('base64') : null
  }

  #mac(id: string): string {
    return macOf(this.#key, id)
  }

  #setCookie(value: string, maxAge: number): string {
    return stringifySetCookie({
      name: sessionCookie,
      value,
      httpOnly: true,
      sameSite: 'lax',
      secure: this.#deps.baseUrl().startsWith('https:'),
      path: '/',
      maxAge,
    })
  }
}

function macOf(key: Buffer, id: string): string {
  return createHmac('sha256', key).update(id).digest('base64url')
}
