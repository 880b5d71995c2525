/** Shared memory as one service: configuration, objects, and the sweep that resolves writes whose process died. */

import type { Clock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Db } from '../platform/db/db.ts'
import type { ControlLog } from '../platform/db/db-control-log.ts'
import { fail, toGatewayError } from '../platform/errors.ts'
import type { HeavyTurns } from '../platform/loop/heavy-turns.ts'
import type { Log } from '../platform/observe/log.ts'
import type { HeldReplies } from '../platform/outbound/held-replies.ts'
import type { UrlGuard } from '../platform/outbound/url-guard.ts'
import type { AddressTests } from '../platform/security/address-tests.ts'
import type { Sealer } from '../platform/security/secrets.ts'
import type { Ids } from '../platform/values/ids.ts'
import { MemoryCallers } from './access/callers.ts'
import type { ConfiguredStore } from './access/memory-call.ts'
import { MemoryChanges } from './changes/changes.ts'
import { OpenStores } from './config/open-stores.ts'
import { StoreConfig } from './config/store-config.ts'
import { StoreJobs } from './config/store-jobs.ts'
import { MemoryHistory } from './history/history.ts'
import { HistorySweep } from './history/history-sweep.ts'
import { Appends } from './objects/appends.ts'
import { MemoryIndex } from './objects/index/memory-index.ts'
import { sweepIntents } from './objects/intent-sweep.ts'
import type { MemoryObjectsDeps } from './objects/object-deps.ts'
import { MemoryObjects } from './objects/objects.ts'
import { externalIdOf, listStores, type StoreRow } from './objects/queries.ts'
import { MemorySearch } from './search/search.ts'
import { Promotions } from './sharing/promote.ts'
import { Shares } from './sharing/shares.ts'
import { GatewayBuckets } from './stores/gateway-buckets.ts'
import { ObjectStoreError } from './stores/object-store.ts'
import { AwsIdentity } from './stores/s3/aws-identity.ts'
import type { KeySource } from './stores/s3/s3-options.ts'
import type { StoreWatch } from './stores/watched-store.ts'
import { JournalPurge } from './upkeep/purge.ts'
import { Reconcile, type ReconcileBounds } from './upkeep/reconcile.ts'
import { RestingStores } from './upkeep/resting-stores.ts'

export interface MemoryDeps {
  readonly db: Db
  readonly controlLog: ControlLog
  readonly config: Pick<Config, 'MEMORY_OBJECT_MAX_BYTES' | 'MEMORY_INTENT_MS' | 'CACHE_TTL_MS' | 'STORE_TIMEOUT_MS' | 'FOLDER_STORE'> &
    Partial<Pick<Config, 'MEMORY_QUOTA_MAX_MB' | 'MEMORY_ROLE_BUCKETS' | 'MEMORY_ROLE_ENDPOINT' | 'MEMORY_STS_REGION'>>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly sealer: Sealer
  readonly guard: UrlGuard
  readonly addressTests: Pick<AddressTests, 'take' | 'passed'>
  readonly kind: Db['kind']
  readonly dataDir: string
  /** Room for the objects that are read from stores. When it is left out, there is no limit. */
  readonly heldReplies?: Pick<HeldReplies, 'run'> | undefined
  /** Limits how many large pages of lists are parsed concurrently. When it is left out, no page waits for others. */
  readonly heavyTurns?: Pick<HeavyTurns, 'runWithSequel'> | undefined
  /** Receives every call of a store. When it is left out, no calls are counted. */
  readonly storeWatch?: StoreWatch | undefined
  /** Finds the agent of a label, so that writes under the label of a revoked agent are refused. When it is left out, no label is looked up. */
  readonly agentByLabel?: MemoryObjectsDeps['agentByLabel']
  /** Returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  readonly founderOf?: (orgId: number) => string
  /** When they are left out, the default bounds apply. */
  readonly reconcileBounds?: ReconcileBounds | undefined
}

export interface Memory {
  readonly config: StoreConfig
  readonly objects: MemoryObjects
  readonly history: MemoryHistory
  readonly appends: Appends
  readonly search: MemorySearch
  readonly callers: MemoryCallers
  readonly shares: Shares
  readonly promotions: Promotions
  /** Changes of objects, from every process. */
  readonly changes: MemoryChanges
  readonly reconcile: Reconcile
  readonly purge: JournalPurge
  /** Returns the configured store. Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
  isConfigured(orgId: number): Promise<boolean>
  /** Gives an organisation the folder store, when it has no store yet. */
  useFolder(orgId: number): Promise<void>
  /** Probes every configured store. `problem` says what is wrong. */
  checkStores(): Promise<{ orgId: number; problem: string | null }[]>
  /** Resolves writes whose process died before `nowMs`, and removes old versions. Returns the number of resolved writes. */
  sweep(nowMs: number): Promise<number>
  /** The AWS keys of this process, which the calls of models on AWS share with the stores. */
  readonly awsKeys: KeySource
  /** Closes the connections to the stores. */
  stop(): void
}

/** How often `sweep` looks for abandoned writes. The composition root schedules `sweep`. */
export const memorySweepMs = 15_000
/** Maximum number of stores that one health check probes. */
const storesCheckedMax = 1000
const storesCheckedAtOnce = 8

export function createMemory(deps: MemoryDeps): Memory {
  const { db, clock, ids, log, founderOf = String } = deps
  const gatewayBuckets = new GatewayBuckets(deps.config.MEMORY_ROLE_BUCKETS ?? [], deps.config.MEMORY_ROLE_ENDPOINT ?? null)
  const identity = new AwsIdentity({ clock, stsRegion: deps.config.MEMORY_STS_REGION ?? 'us-east-1' })
  const stores = openStores(deps, gatewayBuckets, identity)
  const jobs = new StoreJobs()
  const config = new StoreConfig({
    jobs,
    addressTests: deps.addressTests,
    db,
    clock,
    ids,
    stores,
    gatewayBuckets,
    controlLog: deps.controlLog,
    cacheTtlMs: deps.config.CACHE_TTL_MS,
    operatorQuotaMbMax: deps.config.MEMORY_QUOTA_MAX_MB ?? 0,
    isFolderAllowed: deps.config.FOLDER_STORE ?? deps.kind === 'embedded',
  })
  const storeOf = async (orgId: number): Promise<ConfiguredStore | null> => {
    const row = await config.find(orgId)
    return row === null ? null : { row, store: stores.of(row) }
  }
  const changes = new MemoryChanges({ db, clock, log })
  const announce = (): void => changes.announce()
  deps.controlLog.onOther(payload => changes.onNotification(payload))
  const intentMs = deps.config.MEMORY_INTENT_MS
  const index = new MemoryIndex({ db, clock, ids, intentMs, storeOf, announce })
  const configured = async (orgId: number): Promise<ConfiguredStore> => {
    const row = await config.known(orgId)
    if (row === null) throw fail('memory_not_configured')
    return { row, store: stores.of(row) }
  }
  const callers = new MemoryCallers(db)
  const objects = new MemoryObjects({
    ...deps,
    index,
    callers,
    objectBytesMax: deps.config.MEMORY_OBJECT_MAX_BYTES,
    intentMs,
    configured,
    forget: orgId => config.forget(orgId),
    agentByLabel: deps.agentByLabel ?? (() => null),
    founderOf,
  })

  const resting = new RestingStores()
  const historySweep = new HistorySweep({ db, clock, log, resting, storeOf })
  const sweep = async (nowMs: number): Promise<number> => {
    const count = await sweepIntents({ index, clock, log, resting }, nowMs)
    await historySweep.run(nowMs)
    return count
  }
  const comparing = { db, clock, ids, log, jobs, intentMs, storeOf, announce, founderOf, bounds: deps.reconcileBounds }
  return {
    config,
    objects,
    history: new MemoryHistory({ ...deps, callers, objects, sweep: historySweep, objectBytesMax: deps.config.MEMORY_OBJECT_MAX_BYTES, configured }),
    appends: new Appends({ clock, ids, objects, callers, configured }),
    search: new MemorySearch({ clock, objects, objectBytesMax: deps.config.MEMORY_OBJECT_MAX_BYTES, configured, founderOf }),
    callers,
    shares: new Shares({ db, clock }),
    promotions: new Promotions({ db, objects, configured }),
    changes,
    reconcile: new Reconcile({ ...comparing, reprobe: orgId => config.reprobe(orgId) }),
    purge: new JournalPurge({ db, clock, log, index, storeOf }),
    configured,
    sweep,
    isConfigured: async orgId => (await config.known(orgId)) !== null,
    async useFolder(orgId) {
      if ((await config.find(orgId)) === null) await config.put(orgId, { store: 'folder' })
    },
    async checkStores() {
      return checkAll(config, await db.many(listStores, storesCheckedMax))
    },
    awsKeys: options => identity.own(options),
    stop() {
      changes.stop()
      stores.close()
    },
  }
}

function openStores(deps: MemoryDeps, gatewayBuckets: GatewayBuckets, identity: AwsIdentity): OpenStores {
  const { db, clock, ids, config, storeWatch: watch } = deps
  return new OpenStores({
    ...deps,
    watch,
    timeoutMs: config.STORE_TIMEOUT_MS,
    objectBytesMax: config.MEMORY_OBJECT_MAX_BYTES,
    identity,
    gatewayBuckets,
    externalId: async orgId => (await db.one(externalIdOf, orgId, `brigade-${orgId}-${ids.uuidv7(clock.nowMs())}`)).externalId,
  })
}

async function checkAll(config: StoreConfig, rows: readonly StoreRow[]): Promise<{ orgId: number; problem: string | null }[]> {
  const checked: { orgId: number; problem: string | null }[] = []
  const left = rows.values()
  const worker = async (): Promise<void> => {
    for (const row of left) checked.push({ orgId: row.orgId, problem: await problemOf(config, row) })
  }
  await Promise.all(Array.from({ length: storesCheckedAtOnce }, worker))
  return checked.sort((a, b) => a.orgId - b.orgId)
}

/** Probes a store again and saves the result. Returns null when it can be used, otherwise what is wrong. */
async function problemOf(config: StoreConfig, row: StoreRow): Promise<string | null> {
  try {
    const found = await config.reprobe(row.orgId)
    const isWorse = (row.casPut && !found.casPut) || (row.casDelete && !found.casDelete)
    return isWorse ? 'does not honour conditional writes any more; the gateway compares by itself from now on, and writes cost one call more' : null
  } catch (error) {
    return error instanceof ObjectStoreError ? error.message : toGatewayError(error).message
  }
}
