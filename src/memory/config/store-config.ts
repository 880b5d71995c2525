/** Configures, changes and shows where an organisation keeps its memory. Credentials are never returned. */

import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import type { AddressTests } from '../../platform/security/address-tests.ts'
import { maskSecret } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { clearVersions, historyBytesOf } from '../history/history-queries.ts'
import { basePrefixOf } from '../memory-key.ts'
import {
  clearIntents,
  clearObjects,
  dueReconcile,
  findStore,
  lockStore,
  recountUsage,
  roomOf,
  type StoreRow,
  saveCapabilities,
  saveQuota,
  saveStore,
  usageOf,
  usedBytesOf,
} from '../objects/queries.ts'
import { withinStoreTime } from '../store-time.ts'
import type { GatewayBuckets } from '../stores/gateway-buckets.ts'
import { type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'
import { S3Store } from '../stores/s3/object-store-s3.ts'
import { reconcileStoreEveryMs } from '../upkeep/reconcile.ts'
import { bookContent, checkContent } from '../upkeep/store-recount.ts'
import type { OpenStores, StorePlace } from './open-stores.ts'
import { isSameAccess, isSamePlace, placeFrom, quotaMbFrom, type StoreInput } from './store-input.ts'
import type { StoreJobs } from './store-jobs.ts'
import { type Capabilities, probe, unusable } from './store-probe.ts'

/** The default of journal_ttl_days, which the specification sets. */
export const journalTtlDaysDefault = 30
/** The default of history_versions, the number of versions of each key. The project chose it. */
export const historyVersionsDefault = 10
/** The default of history_days. The project chose it. */
export const historyDaysDefault = 30
const bytesPerMb = 1024 * 1024

/** The fields of a request, with the new quota. */
type SizedInput = StoreInput & { readonly quota_mb: number }

export interface StoreConfigDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly stores: OpenStores
  readonly jobs: StoreJobs
  /** Counts tests of addresses by organisation. */
  readonly addressTests: Pick<AddressTests, 'take' | 'passed'>
  readonly isFolderAllowed: boolean
  /** MEMORY_QUOTA_MAX_MB. 0 means no bound. */
  readonly operatorQuotaMbMax: number
  readonly gatewayBuckets: GatewayBuckets
  readonly controlLog: ControlLog
  /** How long a row is cached when no change is reported. */
  readonly cacheTtlMs: number
}

/** The kind of the control event. Its reference is the organisation. */
const storeNews = 'memory_store_changed'
/** Maximum number of organisations whose row one process caches. */
const rowsMax = 5_000

/** The fields of a store in the API: `configured`, and when `configured` is true, others that depend on the caller. */
export type StoreView = { readonly configured: boolean } & Readonly<Record<string, unknown>>

export class StoreConfig {
  readonly #deps: StoreConfigDeps

  readonly #rows: ExpiringCache<number, StoreRow>

  constructor(deps: StoreConfigDeps) {
    const { clock, controlLog } = deps
    this.#deps = deps
    this.#rows = new ExpiringCache({ max: rowsMax, ttlMs: deps.cacheTtlMs, clock, load: orgId => this.find(orgId) })
    controlLog.on(news => {
      if (news.kind === storeNews) this.#rows.invalidate(Number(news.ref))
    })
    controlLog.onGap(() => this.#rows.clear())
  }

  /**
   * Returns the row, without a round trip when this process has cached it. A change of the row arrives within a second. A write compares the generation of
   * the row with the database.
   */
  known(orgId: number): StoreRow | null | Promise<StoreRow | null> {
    return this.#rows.get(orgId)
  }

  /** Drops the cached row, so that the next `known` reads it. */
  forget(orgId: number): void {
    this.#rows.invalidate(orgId)
  }

  /** Reads the current row from the database. */
  find(orgId: number): Promise<StoreRow | null> {
    return this.#deps.db.maybe(findStore, orgId)
  }

  /** Returns the facts that every writer needs: the free room and the retention. The place of the store is not among them. */
  async roomView(orgId: number): Promise<StoreView> {
    const row = await this.find(orgId)
    return row === null ? { configured: false } : await this.#roomOf(row, orgId)
  }

  async #roomOf(row: StoreRow, orgId: number): Promise<StoreView> {
    const { usedBytes } = await this.#deps.db.one(usedBytesOf, orgId)
    const { quotaMb, journalTtlDays, historyVersions, historyDays } = row
    const room = { quota_mb: quotaMb, journal_ttl_days: journalTtlDays, bytes_used: Number(usedBytes) }
    return { configured: true, ...room, history_versions: historyVersions, history_days: historyDays }
  }

  /** Returns the room that the organisation uses and may use. */
  async usage(orgId: number): Promise<{ bytes_used: number; quota_bytes: number; objects: number; history_bytes: number }> {
    const { usedBytes, quotaBytes, objects, historyBytes } = await this.#deps.db.one(roomOf, orgId)
    return { bytes_used: Number(usedBytes), quota_bytes: Number(quotaBytes), objects: Number(objects), history_bytes: Number(historyBytes) }
  }

  /** Returns the configuration without secrets, or `{configured: false}`. */
  async view(orgId: number): Promise<StoreView> {
    const { stores } = this.#deps
    const row = await this.find(orgId)
    if (row === null) return { configured: false }
    const history = await this.#deps.db.maybe(historyBytesOf, orgId)
    return {
      ...(await this.#roomOf(row, orgId)),
      store: row.store,
      ...(await this.#placeView(orgId, stores.placeOf(row), row.accessKeyMasked)),
      base_prefix: basePrefixOf(orgId),
      history_bytes: Number(history?.bytes ?? 0n),
      capabilities: {
        conditional_put: row.casPut,
        conditional_delete: row.casDelete,
        clock_skew_ms: Number(row.clockSkewMs),
        ...row.capabilities,
        ...(row.probedAt === null ? {} : { probed_at: row.probedAt.toISOString() }),
      },
      ...(row.reconciledAt === null ? {} : { reconciled_at: row.reconciledAt.toISOString() }),
    }
  }

  async #placeView(orgId: number, place: StorePlace, accessKeyMasked: string | null): Promise<object> {
    if (place.store === 'folder') return {}
    const { credentials, roleArn, addressing, sse, kmsKeyId } = place.access
    return {
      ...(credentials === 'gateway' && this.#deps.gatewayBuckets.hasEndpoint ? {} : { endpoint: place.endpoint ?? `https://s3.${place.region}.amazonaws.com` }),
      bucket: place.bucket,
      region: place.region,
      access_key_masked: accessKeyMasked,
      credentials,
      ...(credentials === 'role' ? { role_arn: roleArn, external_id: await this.#deps.stores.externalId(orgId) } : {}),
      addressing,
      sse,
      ...(kmsKeyId === null ? {} : { kms_key_id: kmsKeyId }),
    }
  }

  /**
   * Configures the store, or changes its configuration. Throws `bad_request`, `unavailable` (the store cannot be used), `store_path_change_in_use`,
   * `memory_busy`, `rate_limit_exceeded`.
   */
  async put(orgId: number, input: StoreInput): Promise<void> {
    const { stores, jobs, addressTests } = this.#deps
    const before = await this.find(orgId)
    const former = before === null ? null : stores.placeOf(before)
    const place = placeFrom(orgId, input, former, this.#deps)
    const quotaMb = quotaMbFrom(input, before?.quotaMb ?? null, place, this.#deps.operatorQuotaMbMax)
    const hasMoved = former === null || !isSamePlace(former, place)
    if (hasMoved && before !== null && input.confirm_path_change !== true) await this.#refuseWhileInUse(orgId)
    const hasNewAccess = hasMoved || !isSameAccess(former, place)
    if (!hasNewAccess && input.reprobe !== true) return void (await this.#save(orgId, { ...input, quota_mb: quotaMb }, place, before, null, false))
    if (place.store === 's3') addressTests.take(orgId)
    await jobs.run(orgId, () => this.#putProbed(orgId, { ...input, quota_mb: quotaMb }, place, before, hasMoved))
    // A test with a role makes a request to STS as this gateway, so it counts even when it passes.
    if (place.store === 's3' && place.access.credentials !== 'role') addressTests.passed(orgId)
  }

  async #putProbed(orgId: number, input: SizedInput, place: StorePlace, before: StoreRow | null, hasMoved: boolean): Promise<void> {
    const { clock, ids, stores } = this.#deps
    const store = stores.make(orgId, place)
    try {
      const capabilities = await probe(store, orgId, clock, ids)
      if (hasMoved) await withinStoreTime(clock, undefined, signal => checkContent(store, orgId, quotaBytesOf(input), signal))
      const found = store instanceof S3Store && place.store === 's3' ? { ...place, region: store.region } : place
      const generation = await this.#save(orgId, input, found, before, capabilities, hasMoved)
      if (hasMoved) await this.#book(store, orgId, generation)
    } catch (error) {
      throw error instanceof ObjectStoreError ? unusable(error) : error
    } finally {
      store.close()
    }
  }

  /** Adds the objects of the store to the index. `#save` has scheduled a comparison, which adds the objects that cannot be added now. */
  async #book(store: ObjectStore, orgId: number, generation: number): Promise<void> {
    const { db, clock } = this.#deps
    try {
      await withinStoreTime(clock, undefined, signal => bookContent(db, store, orgId, generation, signal))
    } catch (error) {
      if (error instanceof ObjectStoreError || (error instanceof GatewayError && error.errorName === 'unavailable')) return
      throw error
    }
    await db.exec(dueReconcile, orgId, generation, new Date(clock.nowMs() + reconcileStoreEveryMs))
  }

  async #save(orgId: number, input: SizedInput, place: StorePlace, before: StoreRow | null, found: Capabilities | null, hasMoved: boolean): Promise<number> {
    const { controlLog, clock, stores } = this.#deps
    const ttlDays = input.journal_ttl_days ?? before?.journalTtlDays ?? journalTtlDaysDefault
    const historyVersions = input.history_versions ?? before?.historyVersions ?? historyVersionsDefault
    const historyDays = input.history_days ?? before?.historyDays ?? historyDaysDefault
    const isS3 = place.store === 's3'
    const credentials = isS3 ? place.credentials : null
    const sealed = credentials === null ? null : stores.seal(orgId, credentials)
    const capabilities = found ?? capabilitiesOf(before)
    return controlLog.change(async tx => {
      const current = await tx.maybe(lockStore, orgId)
      if ((current?.generation ?? 0) !== (before?.generation ?? 0))
        throw fail('bad_request', { message: 'The memory store was configured by somebody else at the same time. Look at it and try again.' })
      if (hasMoved && current !== null && input.confirm_path_change !== true) refuseIfUsed(await tx.one(usageOf, orgId))
      const isUnchanged = before !== null && !hasMoved && isSameAccess(stores.placeOf(before), place)
      const generation = isUnchanged ? before.generation : (before?.generation ?? 0) + 1
      await tx.exec(
        saveStore,
        orgId,
        place.store,
        isS3 ? place.endpoint : null,
        isS3 ? place.bucket : null,
        isS3 ? place.region : null,
        sealed,
        credentials === null ? null : maskSecret(credentials.accessKey),
        input.quota_mb,
        ttlDays,
        capabilities.casPut,
        capabilities.casDelete,
        BigInt(Math.round(capabilities.clockSkewMs)),
        generation,
        historyVersions,
        historyDays,
        new Date(clock.nowMs()),
        JSON.stringify(isS3 ? place.access : {}),
      )
      if (found !== null) await saveFound(tx, orgId, generation, found, clock.nowMs())
      const news = [{ kind: storeNews, ref: String(orgId) }]
      await tx.exec(saveQuota, orgId, quotaBytesOf(input))
      if (!hasMoved) return { value: generation, news }
      // These statements lock in the same order as a settlement, so they wait for running settlements and then also clear the rows that those wrote.
      await tx.exec(clearIntents, orgId)
      await tx.exec(clearObjects, orgId)
      await tx.exec(clearVersions, orgId)
      await tx.exec(recountUsage, orgId)
      await tx.exec(dueReconcile, orgId, generation, new Date(clock.nowMs()))
      return { value: generation, news }
    })
  }

  /**
   * Probes the configured store again and saves the result, because a store may stop honouring conditions. Throws `memory_not_configured`, `unavailable`,
   * `memory_busy`.
   */
  async reprobe(orgId: number): Promise<Capabilities> {
    const { clock, ids, stores, controlLog, jobs } = this.#deps
    const row = await this.find(orgId)
    if (row === null) throw fail('memory_not_configured')
    const found = await jobs.run(orgId, () => probe(stores.of(row), orgId, clock, ids))
    await controlLog.change(async tx => {
      await saveFound(tx, orgId, row.generation, found, clock.nowMs())
      const isSame = row.casPut === found.casPut && row.casDelete === found.casDelete
      return { value: undefined, news: isSame ? [] : [{ kind: storeNews, ref: String(orgId) }] }
    })
    return found
  }

  async #refuseWhileInUse(orgId: number): Promise<void> {
    refuseIfUsed(await this.#deps.db.one(usageOf, orgId))
  }
}

/** Returns the columns for the result of a probe that every save writes. */
function capabilitiesOf(row: StoreRow | null): Pick<Capabilities, 'casPut' | 'casDelete' | 'clockSkewMs'> {
  if (row === null) return { casPut: false, casDelete: false, clockSkewMs: 0 }
  return { casPut: row.casPut, casDelete: row.casDelete, clockSkewMs: Number(row.clockSkewMs) }
}

async function saveFound(tx: Tx, orgId: number, generation: number, found: Capabilities, nowMs: number): Promise<void> {
  const { casPut, casDelete, clockSkewMs, details } = found
  await tx.exec(saveCapabilities, orgId, generation, casPut, casDelete, BigInt(Math.round(clockSkewMs)), JSON.stringify(details), new Date(nowMs))
}

function refuseIfUsed(usage: { readonly usedBytes: bigint; readonly reservedBytes: bigint; readonly objects: bigint }): void {
  if (usage.usedBytes === 0n && usage.reservedBytes === 0n && usage.objects === 0n) return
  throw fail('store_path_change_in_use', { extra: { usage: { bytes_used: Number(usage.usedBytes), objects: Number(usage.objects) } } })
}

const quotaBytesOf = ({ quota_mb }: SizedInput): bigint => BigInt(quota_mb) * BigInt(bytesPerMb)
