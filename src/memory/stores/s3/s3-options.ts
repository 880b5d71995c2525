import type { LookupFunction } from 'node:net'
import type { Clock } from '../../../platform/clock.ts'
import type { RoomOfReply } from '../../../platform/outbound/held-replies.ts'
import type { Ids } from '../../../platform/values/ids.ts'

/** How a store of S3 is reached beside its place; never a secret. */
export interface StoreAccess {
  /** `keys`: of the organisation. `role`: assumed for it. `gateway`: the identity of this process, for buckets that the operator named. */
  readonly credentials: 'keys' | 'role' | 'gateway'
  readonly roleArn: string | null
  /** `auto`: the bucket is in the host at AWS, and in the path elsewhere. */
  readonly addressing: 'auto' | 'path' | 'virtual'
  /** How new objects are encrypted; `bucket`: as the bucket says. */
  readonly sse: 'bucket' | 'aws:kms'
  /** With `aws:kms`; null: the key that AWS keeps for the account. */
  readonly kmsKeyId: string | null
}

/** What signs a request. */
export interface SigningKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/** Keys as they are now; ahead of their end new ones are fetched beside the calls. `forceRefresh`: the store has refused the last ones. */
export type KeySource = (options?: { readonly forceRefresh?: boolean }) => Promise<SigningKeys>

/** Does the work that reads one reply, with room for it. */
export type InRoom = <T>(work: (room?: RoomOfReply) => Promise<T>) => Promise<T>

/** Where a bucket is, and how it is asked. */
export interface S3StoreOptions {
  /** Null: the endpoint of AWS in the region. */
  readonly endpoint: string | null
  readonly bucket: string
  readonly region: string
  readonly keys: KeySource
  readonly access?: Pick<StoreAccess, 'addressing' | 'sse' | 'kmsKeyId'>
  /** Longest silence of the store before and inside a reply. */
  readonly timeoutMs: number
  /** Largest object that is copied through this process, where the store has no copy of its own: MEMORY_OBJECT_MAX_BYTES. */
  readonly objectBytesMax: number
  /** Refuses addresses that a user-given URL must not reach, and resolves the others. */
  lookupFor(url: URL): LookupFunction
  readonly clock: Clock
  readonly ids: Ids
  /** Reads an object while there is room for its bytes. Left out: there always is. */
  readonly inRoom?: InRoom | undefined
}

/** The same with the bounds of one client. */
export interface S3ClientOptions extends S3StoreOptions {
  readonly connectTimeoutMs: number
  readonly socketsMax: number
  readonly attemptsMax: number
}

/** Keys that stay the same. */
export function fixedKeys(accessKeyId: string, secretAccessKey: string): KeySource {
  const keys = Promise.resolve({ accessKeyId, secretAccessKey })
  return () => keys
}
