import { lookup as dnsLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../../platform/errors.ts'
import type { HeldReplies } from '../../platform/outbound/held-replies.ts'
import type { UrlGuard } from '../../platform/outbound/url-guard.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { StoreRow } from '../objects/queries.ts'
import type { GatewayBuckets } from '../stores/gateway-buckets.ts'
import type { ObjectStore } from '../stores/object-store.ts'
import { FolderStore } from '../stores/object-store-folder.ts'
import type { AwsIdentity } from '../stores/s3/aws-identity.ts'
import { S3Store } from '../stores/s3/object-store-s3.ts'
import { bucketUrl } from '../stores/s3/s3-endpoint.ts'
import { fixedKeys, type InRoom, type KeySource, type StoreAccess } from '../stores/s3/s3-options.ts'
import { type StoreWatch, watchedStore } from '../stores/watched-store.ts'

export interface Credentials {
  readonly accessKey: string
  readonly secretKey: string
}

/** Where a store is; credentials are opened. */
export interface S3Place {
  readonly store: 's3'
  /** Null: AWS in the region. */
  readonly endpoint: string | null
  readonly bucket: string
  readonly region: string
  /** Null where a role or the gateway signs. */
  readonly credentials: Credentials | null
  readonly access: StoreAccess
}

export type StorePlace = { readonly store: 'folder' } | S3Place

const accessDefault: StoreAccess = { credentials: 'keys', roleArn: null, addressing: 'auto', sse: 'bucket', kmsKeyId: null }

export interface OpenStoresDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly sealer: Sealer
  readonly guard: UrlGuard
  readonly dataDir: string
  readonly timeoutMs: number
  /** MEMORY_OBJECT_MAX_BYTES. */
  readonly objectBytesMax: number
  readonly identity: AwsIdentity
  readonly gatewayBuckets: GatewayBuckets
  /** The id by which the roles of an organisation know it. */
  externalId(orgId: number): Promise<string>
  /** Room for the objects that are read. Left out: as many as there are. */
  readonly heldReplies?: Pick<HeldReplies, 'run'> | undefined
  /** Left out: nobody counts. */
  readonly watch?: StoreWatch | undefined
}

/** The most stores that one process keeps. Beyond it the store that was used longest ago is dropped. */
const openMax = 200

/**
 * Turns configuration rows into object stores and keeps them, with their sockets, while the row stays the same. A store that is dropped is not closed:
 * running calls and long walks continue with it, and its idle sockets end by themselves.
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

  /** Returns a store that the caller closes. Throws `bad_request` for an endpoint that a user may not reach. */
  make(orgId: number, place: StorePlace): ObjectStore {
    const { clock, ids, dataDir, timeoutMs, objectBytesMax, heldReplies } = this.#deps
    if (place.store === 'folder') return new FolderStore({ root: join(dataDir, 'memory', `org-${orgId}`), clock, ids })
    const { endpoint, bucket, region, access } = place
    const bounds = { timeoutMs, objectBytesMax }
    const inRoom: InRoom | undefined = heldReplies === undefined ? undefined : work => heldReplies.run(orgId, work)
    const reached = { keys: this.#keysOf(orgId, place), lookupFor: this.#lookupsOf(place) }
    return new S3Store({ endpoint, bucket, region, access, ...bounds, clock, ids, inRoom, ...reached })
  }

  /** The id by which the roles of an organisation know it; made the first time. */
  externalId(orgId: number): Promise<string> {
    return this.#deps.externalId(orgId)
  }

  #keysOf(orgId: number, { access, bucket, endpoint, credentials }: S3Place): KeySource {
    const { identity, gatewayBuckets, externalId } = this.#deps
    switch (access.credentials) {
      case 'keys':
        return fixedKeys(credentials?.accessKey ?? '', credentials?.secretKey ?? '')
      case 'role':
        return identity.role(orgId, access.roleArn ?? '', () => externalId(orgId))
      case 'gateway': {
        const named = gatewayBuckets.find(orgId, bucket)
        // The list is checked again at each start, because the operator may have removed the bucket.
        if (named === null || named.endpoint !== endpoint)
          throw fail('memory_store_failed', {
            message: 'The operator does not name the bucket of this memory store in MEMORY_ROLE_BUCKETS any more.',
            shouldRetry: false,
          })
        return identity.own
      }
    }
  }

  /** The operator's bucket may be anywhere. An address that an organisation names is guarded, also with the bucket in the host. */
  #lookupsOf(place: S3Place): (url: URL) => LookupFunction {
    const { guard } = this.#deps
    if (place.access.credentials === 'gateway') return () => dnsLookup
    // The rules leave a user name and a password of the endpoint out, so it is checked as it was given too.
    if (place.endpoint !== null) guard.check(new URL(place.endpoint))
    guard.check(checkedUrl(place))
    return guard.lookupFor.bind(guard)
  }

  placeOf(row: StoreRow): StorePlace {
    if (row.store === 'folder') return { store: 'folder' }
    const { sealedCredentials: sealed } = row
    const credentials = sealed === null ? null : (JSON.parse(this.#deps.sealer.open(sealed, storeOwner(row.orgId))) as Credentials)
    return { store: 's3', endpoint: row.endpoint, bucket: row.bucket ?? '', region: row.region ?? '', credentials, access: { ...accessDefault, ...row.access } }
  }

  seal(orgId: number, credentials: Credentials): string {
    return this.#deps.sealer.seal(JSON.stringify(credentials), storeOwner(orgId))
  }

  close(): void {
    for (const { store } of this.#open.values()) store.close()
    this.#open.clear()
  }
}

/** Returns the URL that calls go to. Throws `bad_request` for an invalid region. */
function checkedUrl(place: S3Place): URL {
  try {
    return bucketUrl(place, place.region)
  } catch (cause) {
    throw fail('bad_request', { message: 'Endpoint, region and bucket make no address of S3.', cause })
  }
}

/** Names the row that owns the sealed value, so that a copy in another organisation's row cannot be opened. */
export function storeOwner(orgId: number): string {
  return `memory_stores:${orgId}`
}
