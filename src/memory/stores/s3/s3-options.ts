import type { LookupFunction } from 'node:net'
import type { Clock } from '../../../platform/clock.ts'
import type { RoomOfReply } from '../../../platform/outbound/held-replies.ts'
import type { Ids } from '../../../platform/values/ids.ts'

/** How an S3 store is reached, in addition to its place. It never contains a secret. */
export interface StoreAccess {
  /**
   * `keys`: access keys of the organisation. `role`: a role that the gateway assumes for the organisation. `gateway`: the identity of this process, for
   * buckets that the operator named.
   */
  readonly credentials: 'keys' | 'role' | 'gateway'
  readonly roleArn: string | null
  /** With `auto`, the bucket is in the host for AWS, and in the path for other stores. */
  readonly addressing: 'auto' | 'path' | 'virtual'
  /** How new objects are encrypted. With `bucket`, the bucket decides. */
  readonly sse: 'bucket' | 'aws:kms'
  /** The key for `aws:kms`. Null means the key that AWS keeps for the account. */
  readonly kmsKeyId: string | null
}

/** The keys that sign a request. */
export interface SigningKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/** Returns the current keys. Before they expire, new keys are fetched in the background. Pass `forceRefresh` when the store has refused the last keys. */
export type KeySource = (options?: { readonly forceRefresh?: boolean }) => Promise<SigningKeys>

/** Does the work that reads one reply, with room for the reply. */
export type InRoom = <T>(work: (room?: RoomOfReply) => Promise<T>) => Promise<T>

/**
 * Does work that blocks the event loop when it is the turn of this store. What follows the work without waiting belongs to the turn. The work gives up its
 * place when the signal aborts.
 */
export type InTurn = <T>(work: () => T, signal?: AbortSignal) => Promise<T>

/** The place of a bucket, and how requests to it are made. */
export interface S3StoreOptions {
  /** Null means the endpoint of AWS in the region. */
  readonly endpoint: string | null
  readonly bucket: string
  readonly region: string
  readonly keys: KeySource
  readonly access?: Pick<StoreAccess, 'addressing' | 'sse' | 'kmsKeyId'>
  /** Maximum silence of the store before and inside a reply. */
  readonly timeoutMs: number
  /** Maximum size of an object that is copied through this process, for a store that cannot copy: MEMORY_OBJECT_MAX_BYTES. */
  readonly objectBytesMax: number
  /** Refuses addresses that a user-given URL must not reach, and resolves the others. */
  lookupFor(url: URL): LookupFunction
  readonly clock: Clock
  readonly ids: Ids
  /** Waits for room for the bytes of an object before it is read. When it is left out, there is always room. */
  readonly inRoom?: InRoom | undefined
  /** Waits for a turn before a large page of a list is parsed. When it is left out, no page waits for others. */
  readonly inTurn?: InTurn | undefined
}

/** The options of a store, with the bounds of one client. */
export interface S3ClientOptions extends S3StoreOptions {
  readonly connectTimeoutMs: number
  readonly socketsMax: number
  readonly attemptsMax: number
}

/** Returns a source of keys that never change. */
export function fixedKeys(accessKeyId: string, secretAccessKey: string): KeySource {
  const keys = Promise.resolve({ accessKeyId, secretAccessKey })
  return () => keys
}
