/**
 * An object store behind the S3 protocol: AWS, R2, MinIO, Ceph, Swift's s3api. Checksum headers and chunked bodies are sent only
 * where the protocol requires them, because older stores answer 501 to both. The only file that knows the AWS SDK.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction } from 'node:net'
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/ids.ts'
import type { Secret } from '../platform/secret.ts'
import {
  type CallOptions,
  type CopyOptions,
  type DeleteOptions,
  type GetOptions,
  type ListOptions,
  type ListPage,
  listPageMax,
  type ObjectHead,
  type ObjectStore,
  ObjectStoreError,
  type ObjectStoreErrorKind,
  type PutOptions,
  type StoredObject,
} from './object-store.ts'

export interface S3StoreOptions {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKey: Secret
  readonly secretKey: Secret
  readonly timeoutMs: number
  /** Resolves the endpoint and refuses addresses that a user-given URL must not reach. */
  readonly lookup: LookupFunction
  readonly clock: Clock
  readonly ids: Ids
}

/** Sockets to one store. */
const socketsMax = 64
const connectTimeoutMs = 5_000
/** Tries of a conditional write that met another one in the store (409 ConditionalRequestConflict). */
const conflictTriesMax = 4
/** How stores say that they have no copy: Bad Request, Method Not Allowed, Not Implemented. */
const noCopyStatuses: readonly number[] = [400, 405, 501]

export class S3Store implements ObjectStore {
  readonly #client: S3Client
  readonly #bucket: string
  readonly #clock: Clock
  readonly #ids: Ids
  /** False once the store has said that it has no copy. */
  #hasCopy = true

  constructor(options: S3StoreOptions) {
    const agentOptions = { keepAlive: true, maxSockets: socketsMax, lookup: options.lookup }
    this.#bucket = options.bucket
    this.#clock = options.clock
    this.#ids = options.ids
    this.#client = new S3Client({
      endpoint: options.endpoint,
      region: options.region,
      forcePathStyle: true,
      credentials: { accessKeyId: options.accessKey.reveal(), secretAccessKey: options.secretKey.reveal() },
      maxAttempts: 2,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: new NodeHttpHandler({
        connectionTimeout: Math.min(connectTimeoutMs, options.timeoutMs),
        requestTimeout: options.timeoutMs,
        throwOnRequestTimeout: true,
        httpAgent: new HttpAgent(agentOptions),
        httpsAgent: new HttpsAgent(agentOptions),
      }),
    })
  }

  get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    return this.#call(options, async () => {
      const found = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key }), sendOptions(options))
      const sizeBytes = found.ContentLength ?? 0
      if (found.Body === undefined) throw new ObjectStoreError('unavailable', 'the store sent no body')
      if (options.sizeBytesMax !== undefined && sizeBytes > options.sizeBytesMax) {
        ;(found.Body as unknown as { destroy(): void }).destroy()
        throw new ObjectStoreError('too-large', `the object has ${sizeBytes} bytes`)
      }
      const bytes = Buffer.from(await found.Body.transformToByteArray())
      return { bytes, ...headFrom(found) }
    })
  }

  async head(key: string, options: CallOptions = {}): Promise<ObjectHead | null> {
    try {
      return await this.#call(options, async () =>
        headFrom(await this.#client.send(new HeadObjectCommand({ Bucket: this.#bucket, Key: key }), sendOptions(options))),
      )
    } catch (error) {
      if (error instanceof ObjectStoreError && error.kind === 'not-found') return null
      throw error
    }
  }

  put(key: string, bytes: Buffer, options: PutOptions = {}): Promise<{ etag: string }> {
    const isConditional = options.ifMatch !== undefined || options.ifNoneMatch !== undefined
    return this.#call({ ...options, isConditional }, async () => {
      const made = await this.#client.send(
        new PutObjectCommand({
          Bucket: this.#bucket,
          Key: key,
          Body: bytes,
          ContentLength: bytes.length,
          ContentType: options.contentType ?? 'application/octet-stream',
          Metadata: { ...options.metadata },
          ...(options.ifMatch === undefined ? {} : { IfMatch: options.ifMatch }),
          ...(options.ifNoneMatch === undefined ? {} : { IfNoneMatch: options.ifNoneMatch }),
        }),
        sendOptions(options),
      )
      return { etag: quoted(made.ETag ?? '') }
    })
  }

  async copy(from: string, to: string, options: CopyOptions = {}): Promise<{ etag: string }> {
    if (!this.#hasCopy) return this.#copyByHand(from, to, options)
    try {
      return await this.#call(options, async () => {
        const made = await this.#client.send(
          new CopyObjectCommand({
            Bucket: this.#bucket,
            Key: to,
            CopySource: [this.#bucket, ...from.split('/')].map(encodeURIComponent).join('/'),
            MetadataDirective: 'COPY',
            ...(options.ifMatch === undefined ? {} : { CopySourceIfMatch: options.ifMatch }),
          }),
          sendOptions(options),
        )
        return { etag: quoted(made.CopyObjectResult?.ETag ?? '') }
      })
    } catch (error) {
      const status = error instanceof ObjectStoreError ? statusOf(error.cause) : null
      if (status === null || !noCopyStatuses.includes(status)) throw error
      this.#hasCopy = false
      return this.#copyByHand(from, to, options)
    }
  }

  async #copyByHand(from: string, to: string, options: CopyOptions): Promise<{ etag: string }> {
    const found = await this.get(from, options)
    if (options.ifMatch !== undefined && found.etag !== options.ifMatch) throw new ObjectStoreError('precondition-failed', 'the object has another etag')
    return this.put(to, found.bytes, { ...sendSignal(options), metadata: found.metadata, contentType: 'text/plain; charset=utf-8' })
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<void> {
    try {
      await this.#call({ ...options, isConditional: options.ifMatch !== undefined }, () =>
        this.#client.send(
          new DeleteObjectCommand({ Bucket: this.#bucket, Key: key, ...(options.ifMatch === undefined ? {} : { IfMatch: options.ifMatch }) }),
          sendOptions(options),
        ),
      )
    } catch (error) {
      if (error instanceof ObjectStoreError && error.kind === 'not-found') return
      throw error
    }
  }

  list(options: ListOptions): Promise<ListPage> {
    return this.#call(options, async () => {
      const page = await this.#client.send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: options.prefix,
          MaxKeys: Math.min(options.limit ?? listPageMax, listPageMax),
          ...(options.startAfter === undefined ? {} : { StartAfter: options.startAfter }),
        }),
        sendOptions(options),
      )
      const objects = (page.Contents ?? []).map(found => ({
        key: found.Key ?? '',
        etag: quoted(found.ETag ?? ''),
        sizeBytes: found.Size ?? 0,
        modifiedMs: found.LastModified?.getTime() ?? 0,
      }))
      return { objects, next: page.IsTruncated === true ? (objects.at(-1)?.key ?? null) : null }
    })
  }

  close(): void {
    this.#client.destroy()
  }

  /** Runs one call; a conditional one again when the store says that another conditional write was under way. */
  async #call<T>(options: CallOptions & { readonly isConditional?: boolean }, send: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await send()
      } catch (error) {
        if (options.signal?.aborted) throw options.signal.reason
        if (statusOf(error) !== 409 || tries >= conflictTriesMax) throw translated(error, options.isConditional === true)
        await this.#clock.sleep(20 * tries * (1 + this.#ids.random()), options.signal)
      }
    }
  }
}

function sendSignal({ signal }: CallOptions): CallOptions {
  return signal === undefined ? {} : { signal }
}

function sendOptions(options: CallOptions): { abortSignal?: AbortSignal } {
  return options.signal === undefined ? {} : { abortSignal: options.signal }
}

interface HeadFields {
  readonly ETag?: string | undefined
  readonly ContentLength?: number | undefined
  readonly LastModified?: Date | undefined
  readonly Metadata?: Record<string, string> | undefined
}

function headFrom(found: HeadFields): ObjectHead {
  return { etag: quoted(found.ETag ?? ''), sizeBytes: found.ContentLength ?? 0, modifiedMs: found.LastModified?.getTime() ?? 0, metadata: found.Metadata ?? {} }
}

/** Some stores leave the quotes out, in lists above all. */
function quoted(etag: string): string {
  return etag.startsWith('"') ? etag : `"${etag}"`
}

function statusOf(error: unknown): number | null {
  const status = (error as { $metadata?: { httpStatusCode?: unknown } } | null)?.$metadata?.httpStatusCode
  return typeof status === 'number' ? status : null
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

/** An SDK error as the port names it. Messages never repeat what the store said: it may quote keys and credentials. */
function translated(error: unknown, isConditional: boolean): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error
  const status = statusOf(error)
  const made = (kind: ObjectStoreErrorKind, message: string, mayHaveHappened = false): ObjectStoreError =>
    new ObjectStoreError(kind, message, { cause: error, mayHaveHappened })
  if (nameOf(error) === 'NoSuchBucket') return made('unavailable', 'the bucket does not exist')
  // If-Match on a missing object is a 404 in S3: for the caller it is a condition that does not hold.
  if (status === 404) return isConditional ? made('precondition-failed', 'there is no such object') : made('not-found', 'no such object')
  if (status === 412 || status === 409) return made('precondition-failed', 'the condition does not hold')
  if (status === 501 || (isConditional && status === 400)) return made('unsupported', 'the store does not know this form of the call')
  if (status === 401 || status === 403 || (status === 400 && /Signature|AccessKey|Token|Authorization/.test(nameOf(error))))
    return made('denied', 'the store refused the credentials')
  if (status !== null) return made('unavailable', `the store answered ${status}`, status >= 500)
  const code = (error as { code?: unknown } | null)?.code
  // Nothing was sent when the connection could not be made.
  const neverSent = code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'BLOCKED_ADDRESS'
  return made('unavailable', code === 'BLOCKED_ADDRESS' ? 'the endpoint leads to an address that is not public' : 'the store did not answer', !neverSent)
}
