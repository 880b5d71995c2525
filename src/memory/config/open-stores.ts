import { lookup as dnsLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../../platform/errors.ts'
import type { HeavyTurns } from '../../platform/loop/heavy-turns.ts'
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
import { fixedKeys, type InRoom, type InTurn, type KeySource, type StoreAccess } from '../stores/s3/s3-options.ts'
import { type StoreWatch, watchedStore } from '../stores/watched-store.ts'

export interface Credentials {
  readonly accessKey: string
  readonly secretKey: string
}

/** The place of a bucket, with decrypted credentials. */
export interface S3Place {
  readonly store: 's3'
  /** Null means AWS in the region. */
  readonly endpoint: string | null
  readonly bucket: string
  readonly region: string
  /** Null when requests are signed with a role or with the gateway's own identity. */
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
  /** The setting MEMORY_OBJECT_MAX_BYTES. */
  readonly objectBytesMax: number
  readonly identity: AwsIdentity
  readonly gatewayBuckets: GatewayBuckets
  /** Returns the id by which the roles of an organisation know it. */
  externalId(orgId: number): Promise<string>
  /** Room for the objects that are read. When it is left out, there is no limit. */
  readonly heldReplies?: Pick<HeldReplies, 'run'> | undefined
  /** Limits how many large pages of lists are parsed concurrently. When it is left out, no page waits for others. */
  readonly heavyTurns?: Pick<HeavyTurns, 'runWithSequel'> | undefined
  /** Receives every call of a store. When it is left out, no calls are counted. */
  readonly watch?: StoreWatch | undefined
}

/** Maximum number of stores that one process keeps open. Above it, the store that was used longest ago is dropped. */
const openMax = 200

/**
 * Turns configuration rows into object stores. A store stays open, with its sockets, while its row does not change. A store that is dropped is not closed:
 * running calls and long walks continue to use it, and its idle sockets end by themselves.
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

  /** Returns a store that the caller must close. Throws `bad_request` for an endpoint that a user may not reach. */
  make(orgId: number, place: StorePlace): ObjectStore {
    const { clock, ids, dataDir, timeoutMs, objectBytesMax, heldReplies, heavyTurns } = this.#deps
    if (place.store === 'folder') return new FolderStore({ root: join(dataDir, 'memory', `org-${orgId}`), clock, ids })
    const { endpoint, bucket, region, access } = place
    const bounds = { timeoutMs, objectBytesMax }
    const inRoom: InRoom | undefined = heldReplies === undefined ? undefined : work => heldReplies.run(orgId, work)
    const inTurn: InTurn | undefined = heavyTurns === undefined ? undefined : (work, signal) => heavyTurns.runWithSequel(orgId, work, signal)
    const reached = { keys: this.#keysOf(orgId, place), lookupFor: this.#lookupsOf(place) }
    return new S3Store({ endpoint, bucket, region, access, ...bounds, clock, ids, inRoom, inTurn, ...reached })
  }

  /** Returns the id by which the roles of an organisation know it. The first call creates it. */
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

  /**
   * Returns the function that looks up host names for a place. The operator's bucket may have any address. An address that an organisation configures is
   * checked, also when the host name contains the bucket.
   */
  #lookupsOf(place: S3Place): (url: URL) => LookupFunction {
    const { guard } = this.#deps
    if (place.access.credentials === 'gateway') return () => dnsLookup
    // The configured text is checked too, because the endpoint rules remove a user name and a password from it.
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

/** Returns the URL of the bucket. Throws `bad_request` for an invalid region. */
function checkedUrl(place: S3Place): URL {
  try {
    return bucketUrl(place, place.region)
  } catch (cause) {
    throw fail('bad_request', { message: 'Endpoint, region and bucket make no address of S3.', cause })
  }
}

/** Returns the name of the row that owns a sealed credential. A copy of the credential in another organisation's row cannot be opened. */
export function storeOwner(orgId: number): string {
  return `memory_stores:${orgId}`
}
