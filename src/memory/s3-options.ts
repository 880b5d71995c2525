import type { LookupFunction } from 'node:net'
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/ids.ts'
import type { Secret } from '../platform/secret.ts'

/** Where a bucket is, and how it is asked. */
export interface S3StoreOptions {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKey: Secret
  readonly secretKey: Secret
  /** Longest silence of the store before and inside a reply. */
  readonly timeoutMs: number
  /** Resolves the endpoint and refuses addresses that a user-given URL must not reach. */
  readonly lookup: LookupFunction
  readonly clock: Clock
  readonly ids: Ids
}

/** The same with the bounds of one client. */
export interface S3ClientOptions extends S3StoreOptions {
  readonly connectTimeoutMs: number
  readonly socketsMax: number
  readonly attemptsMax: number
}
