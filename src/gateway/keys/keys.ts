import type { Clock } from '../../platform/clock.ts'
import { type Db, isUniqueViolation } from '../../platform/db.ts'
import type { ControlLog } from '../../platform/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { ExpiringCache } from '../../platform/expiring-cache.ts'
import type { Ids } from '../../platform/ids.ts'
import type { CallPolicy, Capability, KeyLimits, KeyScope, Role } from '../../platform/principal.ts'
import { hashKey, hashKeyText } from '../../platform/secrets.ts'
import { keyPrefix, looksLikeKey, newKey } from './key-format.ts'
import { KeyUse } from './key-use.ts'
import { findForAuth, findIdByHash, insertKey, type KeyRow, keyExists, retireExpiredName, revokeKey, setKeyEnabled, setKeyLimits } from './queries.ts'

export type KeyState = 'active' | 'disabled' | 'disabled_inactive' | 'expired' | 'revoked'

/** A key as authentication sees it. The same object is given out while it is cached. */
export interface KeyRecord {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
  /** Role of the live membership; null for a key that no user backs. */
  readonly role: Role | null
  readonly workspaceId: number | null
  readonly name: string
  readonly scope: KeyScope
  readonly limits: KeyLimits
  readonly capabilities: readonly Capability[]
  /** At most one; empty when nothing is ruled. */
  readonly policies: readonly CallPolicy[]
  /** 'revoked' also when the user behind the key is no member any more. */
  readonly state: KeyState
  readonly expiresAtMs: number | null
}

export interface NewKey {
  readonly orgId: number
  readonly userId: number | null
  readonly workspaceId: number | null
  /** 1 to 100 characters, unique among the active keys of the org. */
  readonly name: string
  readonly scope: KeyScope
  /** null = none; left out = the default of a new key (DEFAULT_RPM). */
  readonly rpmLimit?: number | null
  readonly dailyLimit?: number | null
  /** 1 to 365 whole days; left out = never. */
  readonly expiresDays?: number
}

export interface CreatedKey {
  readonly id: number
  /** The whole key. It is shown here and never again. */
  readonly key: string
  readonly prefix: string
  readonly name: string
  readonly scope: KeyScope
  readonly tier: string
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
  readonly expiresAt: Date | null
  readonly createdAt: Date
}

export interface KeysDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly controlLog: ControlLog
  /** CACHE_TTL_MS: at most this long a change of another process may go unseen when its news is lost. */
  readonly cacheTtlMs: number
  /** DEFAULT_RPM. */
  readonly defaultRpm: number
}

const keysCachedMax = 50_000
/** Which id a hash has never changes, so only memory bounds how long it is kept. */
const hashTtlMs = 24 * 3600_000
const unknownKeyTtlMs = 2_000
const expiresDaysMax = 365
const dayMs = 24 * 3600_000
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the point.
const nameShape = /^[^\u0000-\u001f\u007f-\u009f]{1,100}$/u

/** API keys: made, found at every call, changed and revoked. A change is seen by this process at once, by others within a second or, when news are lost, within the cache's life. */
export class Keys {
  readonly #deps: KeysDeps
  readonly #idByHash: ExpiringCache<string, number>
  readonly #records: ExpiringCache<number, KeyRecord>
  readonly use: KeyUse

  constructor(deps: KeysDeps) {
    this.#deps = deps
    const { db, clock } = deps
    this.#idByHash = new ExpiringCache({
      max: keysCachedMax,
      ttlMs: hashTtlMs,
      negativeTtlMs: unknownKeyTtlMs,
      clock,
      load: async hash => (await db.maybe(findIdByHash, Buffer.from(hash, 'base64')))?.id ?? null,
    })
    this.#records = new ExpiringCache({ max: keysCachedMax, ttlMs: deps.cacheTtlMs, clock, load: async id => recordOf(await db.maybe(findForAuth, id)) })
    this.use = new KeyUse(db, clock)
    deps.controlLog.on(news => {
      if (news.kind === 'key_changed' || news.kind === 'key_revoked') this.#records.invalidate(Number(news.ref))
      else if (news.kind === 'member_changed') this.#records.clear()
    })
    deps.controlLog.onGap(() => this.#records.clear())
  }

  /** Makes a key. Throws `bad_name`, `bad_request`, `duplicate_key_name`. */
  async create(wish: NewKey): Promise<CreatedKey> {
    const { db, clock, ids, defaultRpm } = this.#deps
    const name = wish.name.trim()
    if (!nameShape.test(name)) throw fail('bad_name')
    const { expiresDays } = wish
    if (expiresDays !== undefined && !(Number.isInteger(expiresDays) && expiresDays >= 1 && expiresDays <= expiresDaysMax))
      throw fail('bad_request', { message: `expires_days must be a whole number from 1 to ${expiresDaysMax}.` })
    const limits = { rpmLimit: wish.rpmLimit === undefined ? defaultRpm : wish.rpmLimit, dailyLimit: wish.dailyLimit ?? null }
    checkLimits(limits)
    const createdAt = new Date(clock.nowMs())
    const expiresAt = expiresDays === undefined ? null : new Date(clock.nowMs() + expiresDays * dayMs)
    const key = newKey(ids)
    const hash = hashKey(key)
    try {
      const row = await db.tx(async tx => {
        await tx.exec(retireExpiredName, wish.orgId, name, createdAt)
        return tx.one(
          insertKey,
          wish.orgId,
          wish.userId,
          wish.workspaceId,
          name,
          hash,
          keyPrefix(key),
          wish.scope,
          limits.rpmLimit,
          limits.dailyLimit,
          expiresAt,
          createdAt,
        )
      })
      this.#idByHash.invalidate(hash.toString('base64'))
      return { id: row.id, key, prefix: keyPrefix(key), name, scope: wish.scope, tier: row.tier, ...limits, expiresAt, createdAt }
    } catch (error) {
      if (isUniqueViolation(error, 'api_keys_active_name')) throw fail('duplicate_key_name')
      throw error
    }
  }

  /** The key of that text in whatever state it is, or null. Synchronous when cached. */
  findForAuth(token: string): KeyRecord | null | Promise<KeyRecord | null> {
    if (!looksLikeKey(token)) return null
    const id = this.#idByHash.get(hashKeyText(token))
    if (id === null) return null
    return typeof id === 'number' ? this.byId(id) : id.then(found => (found === null ? null : this.byId(found)))
  }

  /** The key of that id in whatever state it is, or null. Synchronous when cached. For ids that a credential vouches for. */
  byId(keyId: number): KeyRecord | null | Promise<KeyRecord | null> {
    const record = this.#records.get(keyId)
    return record instanceof Promise ? record.then(found => this.#asOfNow(found)) : this.#asOfNow(record)
  }

  /** Remembers that the key was used; written in batches, off the path of the call. */
  touch(record: KeyRecord): void {
    this.use.note(record.id)
  }

  /** Ends a key for good and cuts its running calls. Ending it twice is fine. Throws `not_found`. */
  async revoke(orgId: number, keyId: number): Promise<void> {
    await this.#change(orgId, keyId, 'key_revoked', tx => tx.maybe(revokeKey, orgId, keyId, new Date(this.#deps.clock.nowMs())), true)
  }

  /** Switches a key off or on by hand. Throws `not_found`, also for a revoked key. */
  async setEnabled(orgId: number, keyId: number, enabled: boolean): Promise<void> {
    await this.#change(
      orgId,
      keyId,
      'key_changed',
      tx => tx.maybe(setKeyEnabled, orgId, keyId, enabled, enabled ? null : 'manual', new Date(this.#deps.clock.nowMs())),
      false,
    )
  }

  /** Sets both limits; null = none. Throws `not_found` and `bad_request`. */
  async setLimits(orgId: number, keyId: number, limits: KeyLimits): Promise<void> {
    checkLimits(limits)
    await this.#change(orgId, keyId, 'key_changed', tx => tx.maybe(setKeyLimits, orgId, keyId, limits.rpmLimit, limits.dailyLimit), false)
  }

  async #change(
    orgId: number,
    keyId: number,
    kind: string,
    write: (tx: Parameters<Parameters<Db['tx']>[0]>[0]) => Promise<{ id: number } | null>,
    mayBeDone: boolean,
  ): Promise<void> {
    await this.#deps.controlLog.change(async tx => {
      const changed = await write(tx)
      if (changed !== null) return { value: undefined, news: [{ kind, ref: String(keyId) }] }
      if (!mayBeDone || (await tx.maybe(keyExists, orgId, keyId)) === null) throw fail('not_found', { message: 'There is no such key.' })
      return { value: undefined, news: [] }
    })
  }

  /** Expiry is a matter of this moment, not of the moment at which the record was loaded. */
  #asOfNow(record: KeyRecord | null): KeyRecord | null {
    if (record === null || record.expiresAtMs === null || record.state !== 'active' || record.expiresAtMs > this.#deps.clock.nowMs()) return record
    return { ...record, state: 'expired' }
  }
}

/** Makes the keys service. */
export function createKeys(deps: KeysDeps): Keys {
  return new Keys(deps)
}

function checkLimits(limits: KeyLimits): void {
  for (const limit of [limits.rpmLimit, limits.dailyLimit]) {
    if (limit !== null && !(Number.isInteger(limit) && limit >= 0 && limit <= 2 ** 31 - 1))
      throw fail('bad_request', { message: 'A limit must be a whole number that is not negative, or null for none.' })
  }
}

function recordOf(row: KeyRow | null): KeyRecord | null {
  if (row === null) return null
  const { id, orgId, userId, role, workspaceId, name, scope, rpmLimit, dailyLimit } = row
  return {
    id,
    orgId,
    userId,
    role,
    workspaceId,
    name,
    scope,
    limits: { rpmLimit, dailyLimit },
    capabilities: row.capabilities ?? [],
    policies: policiesOf(row),
    state: stateOf(row),
    expiresAtMs: row.expiresAt?.getTime() ?? null,
  }
}

function policiesOf(row: KeyRow): readonly CallPolicy[] {
  const { allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency } = row
  if ([allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency].every(rule => rule === null)) return []
  return [{ owner: 'key', ownerId: row.id, allowedModels, allowedProviders, maxCostUinr, maxOutputTokens, maxConcurrency }]
}

function stateOf(row: KeyRow): KeyState {
  if (row.revokedAt !== null || (row.userId !== null && row.role === null)) return 'revoked'
  if (!row.enabled) return row.disabledReason === 'inactivity' ? 'disabled_inactive' : 'disabled'
  return 'active'
}
