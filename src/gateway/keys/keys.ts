import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import type { KeyLimits } from '../../platform/security/principal.ts'
import { hashKey, hashKeyText } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { Founders } from '../orgs/founders.ts'
import { isOfMember } from '../orgs/members/member-news.ts'
import { KeyUse } from './inactivity/key-use.ts'
import { keyPrefix, looksLikeKey, newKey } from './key-format.ts'
import { asPresented, type KeyRecord, knowsSecret, recordOf } from './key-record.ts'
import { bytesOfPolicies, overlapDaysMax, type TierLimits } from './key-rules.ts'
import { type AllowLimits, type CreatedKey, changeKey, endKey, type KeyChanges, lockedKey, makeKey, type NewKey, type WriteTools } from './key-writes.ts'
import { beginTrials, findForAuth, findIdByHash, keyExists, promoteKeys, rotateKey, setCredited } from './queries.ts'

export type { KeyRecord, KeyState } from './key-record.ts'
export type { CreatedKey, NewKey } from './key-writes.ts'

export interface KeysDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly controlLog: ControlLog
  /** Receives the founder of the organisation of each key that is loaded. */
  readonly founders?: Pick<Founders, 'note'>
  /** The setting CACHE_TTL_MS. When the news about a change by another process is lost, this process can miss the change for this time. */
  readonly cacheTtlMs: number
  /** Throws `org_limit_reached` when the organisation may not have one more key. When absent, there is no such limit. */
  readonly allowOneMore?: (tx: Tx, orgId: number) => Promise<void>
  /** The setting DEFAULT_RPM. */
  readonly defaultRpm: number
  /** The settings TRIAL_RPM and TRIAL_DAILY when billing is configured. When absent or null, every key is a standard key. */
  readonly trialLimits?: KeyLimits | null
  /** The limits of trial keys that were made while billing was on. While billing is off, the first credit promotes these keys too. */
  readonly formerTrialLimits?: KeyLimits
}

/** Makes additional writes in the transaction of a change, for example a budget, and returns their news. */
export type Also = (tx: Tx, keyId: number) => Promise<readonly NewsItem[]>

/** A key with a new secret. */
export interface RotatedKey {
  readonly id: number
  /** The whole key. It is returned only here. */
  readonly key: string
  readonly prefix: string
  readonly name: string
  readonly rotatedAt: Date
  /** The time until which the old secret works. Equal to `rotatedAt` when the old secret stopped immediately. */
  readonly previousUntil: Date
}

const keysCachedMax = 50_000
/** Maximum number of bytes of cached keys. The rules of one key may have some tens of kilobytes. Decision 0654 says why. */
const keysCachedBytesMax = 128 * 1024 * 1024
/** Bytes of a record in memory without its rules. */
const recordBytes = 1024
/**
 * A hash always belongs to the same key id, so the cache may keep the pair for a long time. The record says whether the hash still opens
 * the key.
 */
const hashTtlMs = 24 * 3600_000
const unknownKeyTtlMs = 2_000
const dayMs = 24 * 3600_000
const nothingMore: Also = async () => []

/**
 * Makes, finds, changes and revokes API keys. This process sees a change immediately. Other processes see it within a second, or within the
 * cache lifetime when the news is lost.
 */
export class Keys {
  readonly #deps: KeysDeps
  readonly #idByHash: ExpiringCache<string, number>
  readonly #records: ExpiringCache<number, KeyRecord>
  readonly use: KeyUse
  readonly tiers: TierLimits

  constructor(deps: KeysDeps) {
    this.#deps = deps
    const { db, clock } = deps
    this.tiers = { trial: deps.trialLimits ?? null, standard: { rpmLimit: deps.defaultRpm, dailyLimit: null } }
    this.#idByHash = new ExpiringCache({
      max: keysCachedMax,
      ttlMs: hashTtlMs,
      negativeTtlMs: unknownKeyTtlMs,
      clock,
      load: async hash => (await db.maybe(findIdByHash, Buffer.from(hash, 'base64')))?.id ?? null,
    })
    this.#records = new ExpiringCache({
      max: keysCachedMax,
      bytes: { max: keysCachedBytesMax, sizeOf: record => recordBytes + bytesOfPolicies(record.policies) },
      ttlMs: deps.cacheTtlMs,
      clock,
      load: async id => {
        const row = await db.maybe(findForAuth, id)
        if (row !== null) deps.founders?.note(row.orgId, row.founder)
        return recordOf(row, this.tiers)
      },
    })
    this.use = new KeyUse(db, clock)
    deps.controlLog.on(news => {
      if (news.kind === 'key_changed' || news.kind === 'key_revoked') this.#records.invalidate(Number(news.ref))
      else if (news.kind === 'member_changed') this.#records.invalidateWhere(isOfMember(news.ref))
    })
    deps.controlLog.onGap(() => this.#records.clear())
  }

  /**
   * Makes a key. Throws `bad_name`, `bad_request`, `duplicate_key_name`, `not_found`, `org_limit_reached` and whatever `allow` throws.
   * Without `allow` any limits are accepted, because the trial ceiling does not bind the operator.
   */
  async create(params: NewKey, options: { readonly allow?: AllowLimits; readonly also?: Also } = {}): Promise<CreatedKey> {
    const allow: AllowLimits = options.allow ?? (() => undefined)
    const also: Also = options.also ?? nothingMore
    const created = await this.#deps.controlLog.change(async tx => {
      await this.#deps.allowOneMore?.(tx, params.orgId)
      const made = await makeKey(tx, params, allow, this.#tools())
      return { value: made, news: await also(tx, made.id) }
    })
    this.#idByHash.invalidate(hashKeyText(created.key))
    return created
  }

  /** Returns the key with this secret in any state, or null. Returns without a promise when the key is cached. */
  findForAuth(token: string): KeyRecord | null | Promise<KeyRecord | null> {
    if (!looksLikeKey(token)) return null
    const hash = hashKeyText(token)
    const id = this.#idByHash.get(hash)
    if (id === null) return null
    if (typeof id !== 'number') return id.then(found => (found === null ? null : this.#firstSeen(found, hash)))
    const record = this.byId(id)
    return record instanceof Promise ? record.then(found => this.#presented(found, hash)) : this.#presented(record, hash)
  }

  /**
   * Returns the key with this id in any state, or null. Returns without a promise when the key is cached. It checks no secret, so use it only for an
   * id from a verified credential.
   */
  byId(keyId: number): KeyRecord | null | Promise<KeyRecord | null> {
    const record = this.#records.get(keyId)
    return record instanceof Promise ? record.then(found => this.#asOfNow(found)) : this.#asOfNow(record)
  }

  /** Notes that the key was used. The use is written later, in a batch, so that a call does not wait for it. */
  touch(record: KeyRecord): void {
    this.use.note(record.id)
  }

  /**
   * Changes the fields that `changes` contains. Null removes a value. Throws `not_found` (also for a revoked key), `bad_name`,
   * `bad_request`, `duplicate_key_name`, `trial_ceiling`.
   */
  async change(orgId: number, keyId: number, changes: KeyChanges, also: Also = nothingMore): Promise<void> {
    await this.#write(keyId, 'key_changed', async tx => {
      await changeKey(tx, orgId, keyId, changes, this.#tools())
      return { value: undefined, news: await also(tx, keyId) }
    })
  }

  /** Revokes a key permanently and cuts its running calls. A repeated revoke is no error. Throws `not_found`. */
  async revoke(orgId: number, keyId: number): Promise<void> {
    await this.#write(keyId, 'key_revoked', async tx => {
      const isEnded = await endKey(tx, orgId, keyId, this.#tools())
      if (!isEnded && (await tx.maybe(keyExists, orgId, keyId)) === null) throw fail('not_found', { message: 'There is no such key.' })
      // A repeated revoke sends the news again, so that a process that missed it cuts the calls now.
      return { value: undefined, news: [] }
    })
  }

  /** Enables or disables a key. Throws `not_found`, also for a revoked key. */
  async setEnabled(orgId: number, keyId: number, enabled: boolean): Promise<void> {
    await this.change(orgId, keyId, { enabled })
  }

  /** Sets both limits. Null means no limit. Throws `not_found`, `bad_request`, `trial_ceiling`. */
  async setLimits(orgId: number, keyId: number, limits: KeyLimits): Promise<void> {
    await this.change(orgId, keyId, limits)
  }

  /**
   * Gives the key a new secret. The old secret works for `overlapDays` more (0 to 7, fractions count). A still older secret stops now.
   * Running calls and agent tokens of the key continue. `allow` gets the id of the key's user and throws when the caller may not rotate the
   * key. Throws `not_found`, `bad_request`.
   */
  async rotate(orgId: number, keyId: number, overlapDays: number, allow: (userId: number | null) => void = () => undefined): Promise<RotatedKey> {
    if (!(overlapDays >= 0 && overlapDays <= overlapDaysMax))
      throw fail('bad_request', { message: `overlap_days must be a number from 0 to ${overlapDaysMax}.` })
    const { clock, ids } = this.#deps
    const key = newKey(ids)
    const prefix = keyPrefix(key)
    const rotated = await this.#write(keyId, 'key_changed', async tx => {
      const { userId, name, expiresAt } = await lockedKey(tx, orgId, keyId)
      allow(userId)
      const rotatedAt = new Date(clock.nowMs())
      if (expiresAt !== null && expiresAt <= rotatedAt) throw fail('bad_request', { message: 'This key has expired. Make a new one.' })
      const previousUntil = new Date(rotatedAt.getTime() + Math.round(overlapDays * dayMs))
      await tx.exec(rotateKey, orgId, keyId, hashKey(key), prefix, previousUntil, rotatedAt)
      return { value: { id: keyId, key, prefix, name, rotatedAt, previousUntil }, news: [] }
    })
    this.#idByHash.invalidate(hashKeyText(key))
    return rotated
  }

  /**
   * Turns the trial keys of an organisation into standard keys, when the organisation receives credit. A limit that equals the trial limit becomes
   * the standard limit. A lower limit stays. The caller appends the returned news and applies it after the commit. A repeated call changes nothing.
   */
  async promote(tx: Tx, orgId: number, at: Date): Promise<NewsItem[]> {
    await tx.exec(setCredited, orgId, at)
    const { standard } = this.tiers
    const trial = this.tiers.trial ?? this.#deps.formerTrialLimits
    if (trial === undefined) return []
    const promoted = await tx.many(promoteKeys, orgId, trial.rpmLimit, trial.dailyLimit, standard.rpmLimit, standard.dailyLimit)
    return promoted.map(({ id }) => ({ kind: 'key_changed', ref: String(id) }))
  }

  /**
   * Turns the standard keys of all organisations without credit into trial keys while billing is on. This includes keys that were made before billing
   * was switched on. Their limits stay. The process calls this when it starts. Returns the number of changed keys.
   */
  async beginTrials(): Promise<number> {
    return this.tiers.trial === null ? 0 : await this.#deps.db.exec(beginTrials)
  }

  #write<T>(keyId: number, kind: string, write: (tx: Tx) => Promise<{ value: T; news: readonly NewsItem[] }>): Promise<T> {
    return this.#deps.controlLog.change(async tx => {
      const { value, news } = await write(tx)
      return { value, news: [...news, { kind, ref: String(keyId) }] }
    })
  }

  #tools(): WriteTools {
    return { ids: this.#deps.ids, nowMs: this.#deps.clock.nowMs(), tiers: this.tiers }
  }

  /**
   * Handles a secret that this process sees for the first time. Another process may have rotated the key after this process loaded the record, and
   * the news may not have arrived yet. So a record that does not contain the secret is loaded once more.
   */
  async #firstSeen(keyId: number, hash: string): Promise<KeyRecord | null> {
    const record = await this.byId(keyId)
    if (record === null || knowsSecret(record, hash)) return this.#presented(record, hash)
    this.#records.invalidate(keyId)
    return this.#presented(await this.byId(keyId), hash)
  }

  #presented(record: KeyRecord | null, hash: string): KeyRecord | null {
    return record === null ? null : asPresented(record, hash, this.#deps.clock.nowMs())
  }

  /** Compares the expiry time with the present time, because the record may have been loaded before the key expired. */
  #asOfNow(record: KeyRecord | null): KeyRecord | null {
    if (record === null || record.expiresAtMs === null || record.state !== 'active' || record.expiresAtMs > this.#deps.clock.nowMs()) return record
    return { ...record, state: 'expired' }
  }
}

/** Returns the keys service. */
export function createKeys(deps: KeysDeps): Keys {
  return new Keys(deps)
}
