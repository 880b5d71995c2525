/** Shared memory as one service: configuration, objects, and the sweep that resolves writes whose process died. */
import type { Clock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Db } from '../platform/db.ts'
import type { ControlLog } from '../platform/db-control-log.ts'
import { fail, toGatewayError } from '../platform/errors.ts'
import type { Ids } from '../platform/ids.ts'
import type { Log } from '../platform/log.ts'
import type { Sealer } from '../platform/secrets.ts'
import type { UrlGuard } from '../platform/url-guard.ts'
import { Appends } from './appends.ts'
import { MemoryCallers } from './callers.ts'
import { MemoryChanges } from './changes.ts'
import { MemoryHistory } from './history.ts'
import { HistorySweep } from './history-sweep.ts'
import { sweepIntents } from './intent-sweep.ts'
import type { ConfiguredStore } from './memory-call.ts'
import { MemoryIndex } from './memory-index.ts'
import type { MemoryObjectsDeps } from './object-deps.ts'
import { ObjectStoreError } from './object-store.ts'
import { MemoryObjects } from './objects.ts'
import { OpenStores } from './open-stores.ts'
import { Promotions } from './promote.ts'
import { JournalPurge } from './purge.ts'
import { listStores, type StoreRow } from './queries.ts'
import { Reconcile } from './reconcile.ts'
import { MemorySearch } from './search.ts'
import { Shares } from './shares.ts'
import { StoreConfig } from './store-config.ts'
import type { StoreWatch } from './watched-store.ts'

export interface MemoryDeps {
  readonly db: Db
  readonly controlLog: ControlLog
  readonly config: Pick<Config, 'MEMORY_OBJECT_MAX_BYTES' | 'MEMORY_INTENT_MS' | 'CACHE_TTL_MS' | 'STORE_TIMEOUT_MS' | 'FOLDER_STORE'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly sealer: Sealer
  readonly guard: UrlGuard
  readonly kind: Db['kind']
  readonly dataDir: string
  /** Told of the calls of stores; left out: nobody counts. */
  readonly storeWatch?: StoreWatch | undefined
  /** Refuses writes under the label of a revoked agent. Without it no label is looked up. */
  readonly agentByLabel?: MemoryObjectsDeps['agentByLabel']
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
  /** News of what was written and deleted, from every process. */
  readonly changes: MemoryChanges
  readonly reconcile: Reconcile
  readonly purge: JournalPurge
  /** Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
  isConfigured(orgId: number): Promise<boolean>
  /** Gives an organisation the folder store, when it has no store yet. */
  useFolder(orgId: number): Promise<void>
  /** Probes every configured store; `problem` says what is wrong. */
  checkStores(): Promise<{ orgId: number; problem: string | null }[]>
  /** Resolves writes whose process died before `nowMs` and removes old versions; how many writes were resolved. */
  sweep(nowMs: number): Promise<number>
  /** Closes the connections to the stores. */
  stop(): void
}

/** How often abandoned writes are looked for; the composition root schedules `sweep`. */
export const memorySweepMs = 15_000
/** Stores that one health check looks at. */
const storesCheckedMax = 1000
const storesCheckedAtOnce = 8

export function createMemory(deps: MemoryDeps): Memory {
  const { db, clock, ids, log } = deps
  const stores = new OpenStores({ ...deps, watch: deps.storeWatch, timeoutMs: deps.config.STORE_TIMEOUT_MS })
  const config = new StoreConfig({
    db,
    clock,
    ids,
    stores,
    controlLog: deps.controlLog,
    cacheTtlMs: deps.config.CACHE_TTL_MS,
    isFolderAllowed: deps.config.FOLDER_STORE ?? deps.kind === 'embedded',
  })
  const storeOf = async (orgId: number): Promise<ConfiguredStore | null> => {
    const row = await config.find(orgId)
    return row === null ? null : { row, store: stores.of(row) }
  }
  const changes = new MemoryChanges({ db, clock, log })
  const announce = (): void => changes.announce()
  deps.controlLog.onOther(payload => changes.hear(payload))
  const intentMs = deps.config.MEMORY_INTENT_MS
  const index = new MemoryIndex({ db, clock, ids, intentMs, storeOf, announce })
  const configured = async (orgId: number): Promise<ConfiguredStore> => {
    const row = await config.known(orgId)
    if (row === null) throw fail('memory_not_configured')
    return { row, store: stores.of(row) }
  }
  const callers = new MemoryCallers(db)
  const objects = new MemoryObjects({
    clock,
    ids,
    index,
    callers,
    objectBytesMax: deps.config.MEMORY_OBJECT_MAX_BYTES,
    intentMs,
    configured,
    forget: orgId => config.forget(orgId),
    agentByLabel: deps.agentByLabel ?? (() => null),
  })

  const historySweep = new HistorySweep({ db, clock, log, storeOf })
  const sweep = async (nowMs: number): Promise<number> => {
    const count = await sweepIntents(index, clock, log, nowMs)
    await historySweep.run(nowMs)
    return count
  }
  return {
    config,
    objects,
    history: new MemoryHistory({ ...deps, callers, objects, sweep: historySweep, objectBytesMax: deps.config.MEMORY_OBJECT_MAX_BYTES, configured }),
    appends: new Appends({ clock, ids, objects, callers, configured }),
    search: new MemorySearch({ clock, objects, objectBytesMax: deps.config.MEMORY_OBJECT_MAX_BYTES, configured }),
    callers,
    shares: new Shares({ db, clock }),
    promotions: new Promotions({ db, objects, configured }),
    changes,
    reconcile: new Reconcile({ db, clock, ids, log, intentMs, storeOf, announce, reprobe: orgId => config.reprobe(orgId) }),
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
    stop() {
      changes.stop()
      stores.close()
    },
  }
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

/** Looks at a store anew; what it can do now is kept. Null: all is well. */
async function problemOf(config: StoreConfig, row: StoreRow): Promise<string | null> {
  try {
    const found = await config.reprobe(row.orgId)
    const isWorse = (row.casPut && !found.casPut) || (row.casDelete && !found.casDelete)
    return isWorse ? 'does not honour conditional writes any more; the gateway compares by itself from now on, and writes cost one call more' : null
  } catch (error) {
    return error instanceof ObjectStoreError ? error.message : toGatewayError(error).message
  }
}
