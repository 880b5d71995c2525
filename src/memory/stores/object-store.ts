/**
 * The object store port: a flat map of keys to bytes with conditional writes. Two implementations share one contract test suite: a
 * folder and anything that speaks S3. Etags are opaque and keep their quotes, as HTTP writes them.
 */

export interface ObjectHead {
  readonly etag: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** Lower-case names without the protocol's own prefix; values are printable ASCII. */
  readonly metadata: Readonly<Record<string, string>>
}

export interface StoredObject extends ObjectHead {
  readonly bytes: Buffer
}

export interface ListedObject {
  readonly key: string
  readonly etag: string
  readonly sizeBytes: number
  readonly modifiedMs: number
}

export interface ListPage {
  /** In bytewise order of the keys. */
  readonly objects: readonly ListedObject[]
  /** Pass as `startAfter` for the next page; null when this was the last. */
  readonly next: string | null
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface GetOptions extends CallOptions {
  /** Larger objects throw `too-large` before their body is read. It is required, because the owner of the store decides what it sends. */
  readonly sizeBytesMax: number
}

export interface PutOptions extends CallOptions {
  /** Only over the object with this etag. */
  readonly ifMatch?: string
  /** Only when there is no object of that key. */
  readonly ifNoneMatch?: '*'
  readonly metadata?: Readonly<Record<string, string>>
  readonly contentType?: string
}

export interface CopyOptions extends CallOptions {
  /** Only when the source has this etag. */
  readonly ifMatch?: string
}

export interface DeleteOptions extends CallOptions {
  readonly ifMatch?: string
}

export interface ListOptions extends CallOptions {
  readonly prefix: string
  /** Keys after this one only. */
  readonly startAfter?: string
  /** At most this many, 1 to 1000 (the default). */
  readonly limit?: number
}

/** Every method throws only ObjectStoreError, or the reason of an aborted signal. */
export interface ObjectStore {
  /** Throws `not-found`. */
  get(key: string, options: GetOptions): Promise<StoredObject>
  /** Null when there is no such object. */
  head(key: string, options?: CallOptions): Promise<ObjectHead | null>
  /** Replaces the whole object or nothing; its new etag. Throws `precondition-failed`, `unsupported`. */
  put(key: string, bytes: Buffer, options?: PutOptions): Promise<{ readonly etag: string }>
  /**
   * Copies an object inside the store, metadata included; the etag of the copy. A store without a copy of its own gets GET and PUT, for one
   * object at a time. Throws `not-found`, `precondition-failed`; without a copy of the store's own also `too-large` and `overloaded`.
   */
  copy(from: string, to: string, options?: CopyOptions): Promise<{ readonly etag: string }>
  /** Also succeeds when there is no such object, unless `ifMatch` asks for one. */
  delete(key: string, options?: DeleteOptions): Promise<void>
  list(options: ListOptions): Promise<ListPage>
  /** Whether the store keeps old versions by itself; left out where there is no such thing. Never throws. */
  versioning?(options?: CallOptions): Promise<'on' | 'suspended' | 'off' | 'unknown'>
  /** Gives sockets back. */
  close(): void
}

/** Most keys of one list page, as in S3. */
export const listPageMax = 1000

export type ObjectStoreErrorKind =
  | 'not-found'
  | 'precondition-failed'
  /** The store has no conditional form of this call. */
  | 'unsupported'
  | 'too-large'
  /** No answer, or an answer that says the store cannot serve now. */
  | 'unavailable'
  /** The store answers that it has too much to do. */
  | 'overloaded'
  /** There is no room left in the store. */
  | 'full'
  | 'no-bucket'
  /** The credentials were refused, or may not do this. */
  | 'denied'

export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError'
  readonly kind: ObjectStoreErrorKind
  /** True when a write may have happened although this was thrown (a lost reply). */
  readonly mayHaveHappened: boolean

  constructor(kind: ObjectStoreErrorKind, message: string, options: { readonly mayHaveHappened?: boolean; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.kind = kind
    this.mayHaveHappened = options.mayHaveHappened ?? false
  }
}

/** True for an ObjectStoreError of that kind. */
export function isStoreError(thrown: unknown, kind: ObjectStoreErrorKind): thrown is ObjectStoreError {
  return thrown instanceof ObjectStoreError && thrown.kind === kind
}

/** The order in which stores list: by the bytes of the UTF-8 form. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
