/** Where an organisation keeps its memory: configure, repoint, show. Credentials go in and never come out. */
import type { Clock } from '../platform/clock.ts'
import type { Db, Tx } from '../platform/db.ts'
import type { ControlLog } from '../platform/db-control-log.ts'
import { fail } from '../platform/errors.ts'
import { ExpiringCache } from '../platform/expiring-cache.ts'
import type { Ids } from '../platform/ids.ts'
import { maskSecret } from '../platform/secrets.ts'
import { clearVersions, historyBytesOf } from './history-queries.ts'
import { basePrefixOf, isServedKey, relativeKey } from './memory-key.ts'
import { type ListedObject, type ObjectStore, ObjectStoreError } from './object-store.ts'
import type { Credentials, OpenStores, StorePlace } from './open-stores.ts'
import {
  clearIntents,
  clearObjects,
  findStore,
  insertListed,
  lockStore,
  recountUsage,
  type StoreRow,
  saveCapabilities,
  saveQuota,
  saveStore,
  usageOf,
} from './queries.ts'
import { type Capabilities, probe } from './store-probe.ts'

/** What `PUT /v1/me/memory-store` takes. Blank or absent credentials keep the stored ones, absent numbers the stored or default ones. */
export interface StoreInput {
  readonly store?: 's3' | 'folder' | undefined
  readonly endpoint?: string | undefined
  readonly bucket?: string | undefined
  readonly access_key?: string | undefined
  readonly secret_key?: string | undefined
  readonly region?: string | undefined
  readonly quota_mb?: number | undefined
  readonly journal_ttl_days?: number | undefined
  readonly history_versions?: number | undefined
  readonly history_days?: number | undefined
  readonly confirm_path_change?: boolean | undefined
  /** Probes the store although neither place nor credentials changed. */
  readonly reprobe?: boolean | undefined
}

/** Spec: default of quota_mb. A MB is 1,048,576 bytes: ours. */
export const quotaMbDefault = 1024
/** Spec: default of journal_ttl_days. */
export const journalTtlDaysDefault = 30
/** Default of history_versions, for each key. Ours. */
export const historyVersionsDefault = 10
/** Default of history_days. Ours. */
export const historyDaysDefault = 30
const bytesPerMb = 1024 * 1024
const regionDefault = 'us-east-1'
/** Pages of one recount: a million objects. */
const recountPagesMax = 1000

export interface StoreConfigDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly stores: OpenStores
  readonly isFolderAllowed: boolean
  readonly controlLog: ControlLog
  /** How long a row is believed when no news of a change come. */
  readonly cacheTtlMs: number
}

/** Kind of control news: the reference is the organisation. */
const storeNews = 'memory_store_changed'
/** Organisations whose row one process keeps. */
const rowsMax = 5_000

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

  /** The row without a round trip, where this process knows it. Changes are heard of within a second; a write checks by its generation. */
  known(orgId: number): StoreRow | null | Promise<StoreRow | null> {
    return this.#rows.get(orgId)
  }

  /** The next `known` looks it up. */
  forget(orgId: number): void {
    this.#rows.invalidate(orgId)
  }

  /** As the database has it now. */
  find(orgId: number): Promise<StoreRow | null> {
    return this.#deps.db.maybe(findStore, orgId)
  }

  /** The configuration without secrets, or `{configured: false}`. */
  async view(orgId: number): Promise<object> {
    const row = await this.find(orgId)
    if (row === null) return { configured: false }
    const { usedBytes } = await this.#deps.db.one(usageOf, orgId)
    const history = await this.#deps.db.maybe(historyBytesOf, orgId)
    return {
      configured: true,
      store: row.store,
      ...(row.store === 's3' ? { endpoint: row.endpoint, bucket: row.bucket, region: row.region, access_key_masked: row.accessKeyMasked } : {}),
      base_prefix: basePrefixOf(orgId),
      quota_mb: row.quotaMb,
      journal_ttl_days: row.journalTtlDays,
      bytes_used: Number(usedBytes),
      history_versions: row.historyVersions,
      history_days: row.historyDays,
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

  /** Configures, or changes what is there. Throws `bad_request`, `unavailable` (the store cannot be used), `store_path_change_in_use`. */
  async put(orgId: number, input: StoreInput): Promise<void> {
    const { clock, ids, stores } = this.#deps
    const before = await this.find(orgId)
    const place = this.#placeFrom(input, before)
    const hasMoved = before === null || !isSamePlace(before, place)
    if (hasMoved && before !== null && input.confirm_path_change !== true) await this.#refuseWhileInUse(orgId)
    const hasNewAccess = hasMoved || !isSameAccess(stores.placeOf(before), place)
    if (!hasNewAccess && input.reprobe !== true) return this.#save(orgId, input, place, before, null, null)
    const store = stores.make(orgId, place)
    try {
      const capabilities = await probe(store, orgId, clock, ids)
      const listed = hasMoved ? await listAll(store, orgId) : null
      await this.#save(orgId, input, place, before, capabilities, listed)
    } catch (error) {
      if (error instanceof ObjectStoreError) throw fail('unavailable', { message: `The memory store cannot be used: ${error.message}.`, cause: error })
      throw error
    } finally {
      store.close()
    }
  }

  async #save(
    orgId: number,
    input: StoreInput,
    place: StorePlace,
    before: StoreRow | null,
    found: Capabilities | null,
    listed: readonly ListedObject[] | null,
  ): Promise<void> {
    const { controlLog, clock, stores } = this.#deps
    const quotaMb = input.quota_mb ?? before?.quotaMb ?? quotaMbDefault
    const ttlDays = input.journal_ttl_days ?? before?.journalTtlDays ?? journalTtlDaysDefault
    const historyVersions = input.history_versions ?? before?.historyVersions ?? historyVersionsDefault
    const historyDays = input.history_days ?? before?.historyDays ?? historyDaysDefault
    const isS3 = place.store === 's3'
    const sealed = isS3 ? stores.seal(orgId, place.credentials) : null
    const capabilities = found ?? capabilitiesOf(before)
    await controlLog.change(async tx => {
      const current = await tx.maybe(lockStore, orgId)
      if ((current?.generation ?? 0) !== (before?.generation ?? 0))
        throw fail('bad_request', { message: 'The memory store was configured by somebody else at the same time. Look at it and try again.' })
      if (listed !== null && current !== null && input.confirm_path_change !== true) refuseIfUsed(await tx.one(usageOf, orgId))
      const isUnchanged = before !== null && listed === null && isSameAccess(stores.placeOf(before), place)
      const generation = isUnchanged ? before.generation : (before?.generation ?? 0) + 1
      await tx.exec(
        saveStore,
        orgId,
        place.store,
        isS3 ? place.endpoint : null,
        isS3 ? place.bucket : null,
        isS3 ? place.region : null,
        sealed,
        isS3 ? maskSecret(place.credentials.accessKey) : null,
        quotaMb,
        ttlDays,
        capabilities.casPut,
        capabilities.casDelete,
        BigInt(Math.round(capabilities.clockSkewMs)),
        generation,
        historyVersions,
        historyDays,
        new Date(clock.nowMs()),
      )
      if (found !== null) await saveFound(tx, orgId, generation, found, clock.nowMs())
      const news = [{ kind: storeNews, ref: String(orgId) }]
      const quotaBytes = BigInt(quotaMb) * BigInt(bytesPerMb)
      if (listed === null) {
        await tx.exec(saveQuota, orgId, quotaBytes)
        return { value: undefined, news }
      }
      // Writes that settle just now come first: they lock in this order too, and what they book is cleared away with the rest.
      await tx.exec(clearIntents, orgId)
      await tx.exec(clearObjects, orgId)
      await tx.exec(clearVersions, orgId)
      const keyed = listed.flatMap(object => {
        const key = relativeKey(orgId, object.key)
        return key === null || !isServedKey(key) ? [] : [{ ...object, key }]
      })
      await tx.exec(
        insertListed,
        orgId,
        keyed.map(object => object.key),
        keyed.map(object => object.etag),
        keyed.map(object => BigInt(object.sizeBytes)),
        keyed.map(object => new Date(object.modifiedMs)),
      )
      await tx.exec(saveQuota, orgId, quotaBytes)
      await tx.exec(recountUsage, orgId)
      return { value: undefined, news }
    })
  }

  /** Probes the store as it is configured and keeps what was found: a store may stop to honour conditions. Throws `memory_not_configured`, `unavailable`. */
  async reprobe(orgId: number): Promise<Capabilities> {
    const { clock, ids, stores, controlLog } = this.#deps
    const row = await this.find(orgId)
    if (row === null) throw fail('memory_not_configured')
    const found = await probe(stores.of(row), orgId, clock, ids)
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

  #placeFrom(input: StoreInput, before: StoreRow | null): StorePlace {
    const kind = input.store ?? (isBlank(input.endpoint) ? (before?.store ?? 's3') : 's3')
    if (kind === 'folder') {
      if (!this.#deps.isFolderAllowed)
        throw fail('bad_request', {
          message: 'A folder store is for the embedded database, or for operators who set FOLDER_STORE=on. Configure an S3-compatible bucket.',
        })
      if (!isBlank(input.endpoint) || !isBlank(input.bucket)) throw fail('bad_request', { message: 'A folder store takes no endpoint and no bucket.' })
      return { store: 'folder' }
    }
    const known = before?.store === 's3' ? this.#deps.stores.placeOf(before) : null
    const stored = known?.store === 's3' ? known : null
    const endpoint = isBlank(input.endpoint) ? stored?.endpoint : endpointFrom(input.endpoint)
    const bucket = isBlank(input.bucket) ? stored?.bucket : input.bucket
    if (endpoint === undefined || bucket === undefined) throw fail('bad_request', { message: 'A memory store needs an endpoint and a bucket.' })
    const region = isBlank(input.region) ? (stored?.region ?? regionDefault) : input.region
    return { store: 's3', endpoint, bucket, region, credentials: credentialsFrom(input, stored?.credentials ?? null) }
  }
}

function credentialsFrom(input: StoreInput, stored: Credentials | null): Credentials {
  const accessKey = isBlank(input.access_key) ? stored?.accessKey : input.access_key
  const secretKey = isBlank(input.secret_key) ? stored?.secretKey : input.secret_key
  if (accessKey === undefined || secretKey === undefined)
    throw fail('bad_request', { message: 'A memory store needs access_key and secret_key the first time.' })
  return { accessKey, secretKey }
}

function isBlank(text: string | undefined): text is undefined {
  return text === undefined || text.trim() === ''
}

/** One spelling of an endpoint, so that a trailing slash is no change of place. */
function endpointFrom(text: string): string {
  if (!URL.canParse(text)) throw fail('bad_request', { message: 'The endpoint must be a URL.' })
  const url = new URL(text)
  if (url.search !== '' || url.hash !== '') throw fail('bad_request', { message: 'The endpoint must be a URL without a query.' })
  return url.href.replace(/\/+$/, '')
}

function isSamePlace(row: StoreRow, place: StorePlace): boolean {
  return place.store === 'folder' ? row.store === 'folder' : row.store === 's3' && row.endpoint === place.endpoint && row.bucket === place.bucket
}

function isSameAccess(a: StorePlace, b: StorePlace): boolean {
  if (a.store === 'folder' || b.store === 'folder') return a.store === b.store
  return a.region === b.region && a.credentials.accessKey === b.credentials.accessKey && a.credentials.secretKey === b.credentials.secretKey
}

/** The columns that every save writes. */
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

async function listAll(store: ObjectStore, orgId: number): Promise<ListedObject[]> {
  const found: ListedObject[] = []
  let startAfter: string | undefined
  for (let pages = 0; pages < recountPagesMax; pages++) {
    const page = await store.list({ prefix: basePrefixOf(orgId), ...(startAfter === undefined ? {} : { startAfter }) })
    found.push(...page.objects)
    if (page.next === null) return found
    startAfter = page.next
  }
  throw fail('unavailable', { message: 'The store holds more objects under the prefix of this organisation than can be counted.' })
}
