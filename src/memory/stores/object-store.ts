/**
 * The object store port: a flat map of keys to bytes with conditional writes. It has two implementations, a folder and any store of the S3 protocol.
 * Both pass one contract test suite. Etags are opaque and keep their quotes, as HTTP writes them.
 */

export interface ObjectHead {
  readonly etag: string
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** Names are in lower case, without a prefix such as `x-amz-meta-`. Values are printable ASCII. */
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
  /** With `byFolder`, the folders of this page, each with its slash at the end. In bytewise order. */
  readonly folders?: readonly string[]
  /** The `startAfter` of the next page. Null on the last page. */
  readonly next: string | null
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface GetOptions extends CallOptions {
  /** A larger object throws `too-large` before its body is read. The field is required, because the owner of the store decides what it sends. */
  readonly sizeBytesMax: number
}

export interface PutOptions extends CallOptions {
  /** The write replaces only an object with this etag. */
  readonly ifMatch?: string
  /** The write succeeds only when there is no object of that key. */
  readonly ifNoneMatch?: '*'
  readonly metadata?: Readonly<Record<string, string>>
  readonly contentType?: string
}

export interface CopyOptions extends CallOptions {
  /** The copy succeeds only when the source has this etag. */
  readonly ifMatch?: string
}

export interface DeleteOptions extends CallOptions {
  readonly ifMatch?: string
}

export interface ListOptions extends CallOptions {
  readonly prefix: string
  /** The list contains only keys after this one. */
  readonly startAfter?: string
  /** Keys with a slash after the prefix count as one folder. A store that does not know folders may list the keys. Decision 0583 says why. */
  readonly byFolder?: boolean
  /** Maximum number of keys and folders, 1 to 1000. The default is 1000. */
  readonly limit?: number
}

/** Every method throws only ObjectStoreError, or the reason of an aborted signal. */
export interface ObjectStore {
  /** Returns the object. Throws `not-found`. */
  get(key: string, options: GetOptions): Promise<StoredObject>
  /** Returns null when there is no such object. */
  head(key: string, options?: CallOptions): Promise<ObjectHead | null>
  /** Replaces the whole object or nothing. Returns its new etag. Throws `precondition-failed`, `unsupported`. */
  put(key: string, bytes: Buffer, options?: PutOptions): Promise<{ readonly etag: string }>
  /**
   * Copies an object inside the store, including its metadata. Returns the etag of the copy. When the store cannot copy, this process reads and writes the
   * object, one object at a time. Throws `not-found`, `precondition-failed`. A copy through this process also throws `too-large` and `overloaded`.
   */
  copy(from: string, to: string, options?: CopyOptions): Promise<{ readonly etag: string }>
  /** Deletes an object. It also succeeds when there is no such object, unless `ifMatch` requires one. */
  delete(key: string, options?: DeleteOptions): Promise<void>
  list(options: ListOptions): Promise<ListPage>
  /** Returns whether the store itself keeps old versions. A store that cannot keep them leaves this method out. It never throws. */
  versioning?(options?: CallOptions): Promise<'on' | 'suspended' | 'off' | 'unknown'>
  /** Closes the sockets. */
  close(): void
}

/** A suffix that sorts after every key that begins with the text before it. */
export const afterAllBelow = '\u{10ffff}'

/** Maximum number of keys of one list page, as in S3. */
export const listPageMax = 1000

export type ObjectStoreErrorKind =
  | 'not-found'
  | 'precondition-failed'
  /** The store has no conditional form of this call. */
  | 'unsupported'
  | 'too-large'
  /** The store did not answer, or answered that it cannot serve now. */
  | 'unavailable'
  /** The store answered that it is overloaded. */
  | 'overloaded'
  /** The store sends a list in far smaller parts than it is asked for. */
  | 'small-pages'
  /** There is no room left in the store. */
  | 'full'
  | 'no-bucket'
  /** The credentials were refused, or do not permit this call. */
  | 'denied'

export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError'
  readonly kind: ObjectStoreErrorKind
  /** True when a write may have happened although this error was thrown, for example because the reply was lost. */
  readonly mayHaveHappened: boolean

  constructor(kind: ObjectStoreErrorKind, message: string, options: { readonly mayHaveHappened?: boolean; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.kind = kind
    this.mayHaveHappened = options.mayHaveHappened ?? false
  }
}

/** Returns whether this is an ObjectStoreError of that kind. */
export function isStoreError(thrown: unknown, kind: ObjectStoreErrorKind): thrown is ObjectStoreError {
  return thrown instanceof ObjectStoreError && thrown.kind === kind
}

/** Compares keys in the order in which stores list them: by the bytes of the UTF-8 form. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
