import { join } from 'node:path'
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/ids.ts'
import { Secret } from '../platform/secret.ts'
import type { Sealer } from '../platform/secrets.ts'
import type { UrlGuard } from '../platform/url-guard.ts'
import type { ObjectStore } from './object-store.ts'
import { FolderStore } from './object-store-folder.ts'
import { S3Store } from './object-store-s3.ts'
import type { StoreRow } from './queries.ts'
import { type StoreWatch, watchedStore } from './watched-store.ts'

export interface Credentials {
  readonly accessKey: string
  readonly secretKey: string
}

/** Where a store is; credentials are opened. */
export type StorePlace =
  | { readonly store: 'folder' }
  | { readonly store: 's3'; readonly endpoint: string; readonly bucket: string; readonly region: string; readonly credentials: Credentials }

export interface OpenStoresDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly sealer: Sealer
  readonly guard: UrlGuard
  readonly dataDir: string
  readonly timeoutMs: number
  /** Left out: nobody counts. */
  readonly watch?: StoreWatch | undefined
}

/** Stores that one process keeps; the one used longest ago is let go beyond that. */
const openMax = 200

/**
 * Turns configuration rows into object stores and keeps them, with their sockets, while the row stays the same. What is let go is not
 * closed: calls and long walks under way go on with it, and its idle sockets end by themselves.
 */
export class OpenStores {
  readonly #deps: OpenStoresDeps
  readonly #open = new Map<number, { generation: number; store: ObjectStore }>()

  constructor(deps: OpenStoresDeps) {
    this.#deps = deps
  }

  of(row: StoreRow): ObjectStore {
    const found = this.#open.get(row.orgId)
    const store = found?.generation === row.generation ? found.store : this.#watched(this.make(row.orgId, this.placeOf(row)))
    this.#open.delete(row.orgId)
    this.#open.set(row.orgId, { generation: row.generation, store })
    const [oldest] = this.#open.keys()
    if (this.#open.size > openMax && oldest !== undefined) this.#open.delete(oldest)
    return store
  }

  #watched(store: ObjectStore): ObjectStore {
    const { watch, clock } = this.#deps
    return watch === undefined ? store : watchedStore(store, watch, clock)
  }

  /** A store that the caller closes. Throws `bad_request` for an endpoint that a user may not reach. */
  make(orgId: number, place: StorePlace): ObjectStore {
    const { clock, ids, guard, dataDir, timeoutMs } = this.#deps
    if (place.store === 'folder') return new FolderStore({ root: join(dataDir, 'memory', `org-${orgId}`), clock, ids })
    const endpoint = new URL(place.endpoint)
    guard.check(endpoint)
    return new S3Store({
      endpoint: place.endpoint,
      bucket: place.bucket,
      region: place.region,
      accessKey: new Secret(place.credentials.accessKey),
      secretKey: new Secret(place.credentials.secretKey),
      timeoutMs,
      lookup: guard.lookupFor(endpoint),
      clock,
      ids,
    })
  }

  placeOf(row: StoreRow): StorePlace {
    if (row.store === 'folder') return { store: 'folder' }
    const credentials = JSON.parse(this.#deps.sealer.open(row.sealedCredentials ?? '', storeOwner(row.orgId))) as Credentials
    return { store: 's3', endpoint: row.endpoint ?? '', bucket: row.bucket ?? '', region: row.region ?? '', credentials }
  }

  seal(orgId: number, credentials: Credentials): string {
    return this.#deps.sealer.seal(JSON.stringify(credentials), storeOwner(orgId))
  }

  close(): void {
    for (const { store } of this.#open.values()) store.close()
    this.#open.clear()
  }
}

/** Names the row that owns the sealed value, so that a copy in another organisation's row does not open. */
export function storeOwner(orgId: number): string {
  return `memory_stores:${orgId}`
}
