/**
 * An object store behind the S3 protocol: AWS, R2, MinIO, Ceph, Swift's s3api. Checksum headers and chunked bodies are sent only
 * where the protocol requires them, because older stores answer 501 to both. What one object takes goes over a wire of ours; what answers
 * in XML goes through the AWS SDK, which no other file knows.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction } from 'node:net'
import { GetBucketVersioningCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/ids.ts'
import type { Secret } from '../platform/secret.ts'
import { BodyTooLargeError, type OutboundReply } from '../platform/upstream-body.ts'
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
import { S3Wire } from './s3-wire.ts'

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
/** Tries of one call, each within the time of one call. */
const attemptsMax = 2
/** Nobody waits longer than this between them. */
const pauseMsMax = 1_500
/** Tries of a conditional write that met another one in the store (409 ConditionalRequestConflict). */
const conflictTriesMax = 4
/** How stores say that they have no copy: Bad Request, Method Not Allowed, Not Implemented. */
const noCopyStatuses: readonly number[] = [400, 405, 501]

export class S3Store implements ObjectStore {
  readonly #client: S3Client
  readonly #wire: S3Wire
  readonly #bucket: string
  readonly #timeoutMs: number
  readonly #clock: Clock
  readonly #ids: Ids
  /** False once the store has said that it has no copy. */
  #hasCopy = true

  constructor(options: S3StoreOptions) {
    const agentOptions = { keepAlive: true, maxSockets: socketsMax, lookup: options.lookup }
    this.#bucket = options.bucket
    this.#timeoutMs = options.timeoutMs
    this.#clock = options.clock
    this.#ids = options.ids
    this.#wire = new S3Wire({ ...options, connectTimeoutMs: Math.min(connectTimeoutMs, options.timeoutMs), socketsMax, attemptsMax })
    this.#client = new S3Client({
      endpoint: options.endpoint,
      region: options.region,
      forcePathStyle: true,
      credentials: { accessKeyId: options.accessKey.reveal(), secretAccessKey: options.secretKey.reveal() },
      maxAttempts: attemptsMax,
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
    return this.#call(options, async ({ abortSignal: signal }) => {
      const reply = await this.#wire.send({ method: 'GET', key, signal })
      const head = headOf(reply)
      const { sizeBytesMax } = options
      if (sizeBytesMax !== undefined && head.sizeBytes > sizeBytesMax) {
        reply.body.destroy()
        throw new ObjectStoreError('too-large', `the object has ${head.sizeBytes} bytes`)
      }
      const bytes = await wholeOf(reply, sizeBytesMax ?? Number.POSITIVE_INFINITY)
      if (reply.headers['content-length'] !== undefined && bytes.length !== head.sizeBytes)
        throw new ObjectStoreError('unavailable', 'the store sent another number of bytes than it said')
      return { ...head, bytes, sizeBytes: bytes.length }
    })
  }

  async head(key: string, options: CallOptions = {}): Promise<ObjectHead | null> {
    try {
      return await this.#call(options, async ({ abortSignal: signal }) => {
        const reply = await this.#wire.send({ method: 'HEAD', key, signal })
        await reply.body.buffer(replyMaxBytes)
        return headOf(reply)
      })
    } catch (error) {
      if (error instanceof ObjectStoreError && error.kind === 'not-found') return null
      throw error
    }
  }

  put(key: string, bytes: Buffer, options: PutOptions = {}): Promise<{ etag: string }> {
    const headers: Record<string, string> = { ...conditionHeaders(options), 'content-type': options.contentType ?? 'application/octet-stream' }
    for (const [name, value] of Object.entries(options.metadata ?? {})) headers[`${metadataPrefix}${name.toLowerCase()}`] = value
    return this.#call({ ...options, isConditional: isConditional(options) }, async ({ abortSignal: signal }) => {
      const reply = await this.#wire.send({ method: 'PUT', key, headers, body: bytes, signal })
      await reply.body.buffer(replyMaxBytes)
      return { etag: etagOf(headerOf(reply, 'etag')) ?? substituteEtag(options.metadata?.['br-write-id'], 0, bytes.length) }
    })
  }

  async copy(from: string, to: string, options: CopyOptions = {}): Promise<{ etag: string }> {
    if (!this.#hasCopy) return this.#copyByHand(from, to, options)
    try {
      const headers = {
        'x-amz-copy-source': [this.#bucket, ...from.split('/')].map(encodeURIComponent).join('/'),
        'x-amz-metadata-directive': 'COPY',
        ...(options.ifMatch === undefined ? {} : { 'x-amz-copy-source-if-match': options.ifMatch }),
      }
      return await this.#call(options, async ({ abortSignal: signal }) => {
        const text = await this.#wire.text({ method: 'PUT', key: to, headers, signal })
        return { etag: etagOf(/<ETag>([^<]*)<\/ETag>/.exec(text)?.[1]?.replaceAll('&quot;', '"').replaceAll('&#34;', '"')) ?? '""' }
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
    return this.put(to, found.bytes, {
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      metadata: found.metadata,
      contentType: 'text/plain; charset=utf-8',
    })
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<void> {
    try {
      await this.#call({ ...options, isConditional: isConditional(options) }, async ({ abortSignal: signal }) => {
        const reply = await this.#wire.send({ method: 'DELETE', key, headers: conditionHeaders(options), signal })
        await reply.body.buffer(replyMaxBytes)
      })
    } catch (error) {
      if (error instanceof ObjectStoreError && error.kind === 'not-found') return
      throw error
    }
  }

  list(options: ListOptions): Promise<ListPage> {
    return this.#call(options, async http => {
      const page = await this.#client.send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: options.prefix,
          MaxKeys: Math.min(options.limit ?? listPageMax, listPageMax),
          ...(options.startAfter === undefined ? {} : { StartAfter: options.startAfter }),
        }),
        http,
      )
      const objects = (page.Contents ?? []).map(found => ({
        key: found.Key ?? '',
        etag: etagOf(found.ETag) ?? substituteEtag(undefined, found.LastModified?.getTime() ?? 0, found.Size ?? 0),
        sizeBytes: found.Size ?? 0,
        modifiedMs: found.LastModified?.getTime() ?? 0,
      }))
      return { objects, next: page.IsTruncated === true ? (objects.at(-1)?.key ?? null) : null }
    })
  }

  async versioning(): Promise<'on' | 'suspended' | 'off' | 'unknown'> {
    try {
      const { Status } = await this.#call({}, http => this.#client.send(new GetBucketVersioningCommand({ Bucket: this.#bucket }), http))
      return Status === 'Enabled' ? 'on' : Status === 'Suspended' ? 'suspended' : 'off'
    } catch {
      // Many stores do not know the question, and credentials may lack the right to ask it.
      return 'unknown'
    }
  }

  close(): void {
    this.#client.destroy()
    this.#wire.close()
  }

  /** Runs one call, body included, within its time; a conditional one again when the store says that another conditional write was under way. */
  async #call<T>(options: CallOptions & { readonly isConditional?: boolean }, send: (http: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> {
    const limit = new AbortController()
    const cancel = this.#clock.after(this.#timeoutMs * attemptsMax + pauseMsMax, () => limit.abort())
    const abortSignal = options.signal === undefined ? limit.signal : AbortSignal.any([limit.signal, options.signal])
    try {
      for (let tries = 1; ; tries++) {
        try {
          return await send({ abortSignal })
        } catch (error) {
          if (options.signal?.aborted) throw options.signal.reason
          if (statusOf(error) !== 409 || tries >= conflictTriesMax) throw translated(error, options.isConditional === true)
          await this.#clock.sleep(20 * tries * (1 + this.#ids.random()), abortSignal)
        }
      }
    } finally {
      cancel()
    }
  }
}

const metadataPrefix = 'x-amz-meta-'
/** Nothing that is asked of a reply to a write stands in its body. */
const replyMaxBytes = 1024 * 1024

interface Conditions {
  readonly ifMatch?: string
  readonly ifNoneMatch?: string
}

const isConditional = ({ ifMatch, ifNoneMatch }: Conditions): boolean => ifMatch !== undefined || ifNoneMatch !== undefined

function conditionHeaders({ ifMatch, ifNoneMatch }: Conditions): Record<string, string> {
  return { ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }), ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }) }
}

function headerOf({ headers }: OutboundReply, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

async function wholeOf({ body }: OutboundReply, bytesMax: number): Promise<Buffer> {
  try {
    return await body.buffer(bytesMax)
  } catch (error) {
    throw bodyFailure(error)
  }
}

function bodyFailure(cause: unknown): ObjectStoreError {
  if (cause instanceof BodyTooLargeError) return new ObjectStoreError('too-large', cause.message, { cause })
  return new ObjectStoreError('unavailable', 'the store stopped in the middle of an object', { cause })
}

function headOf(reply: OutboundReply): ObjectHead {
  const metadata: Record<string, string> = {}
  for (const name of Object.keys(reply.headers)) if (name.startsWith(metadataPrefix)) metadata[name.slice(metadataPrefix.length)] = headerOf(reply, name) ?? ''
  const sizeBytes = Number(headerOf(reply, 'content-length') ?? 0)
  const said = Date.parse(headerOf(reply, 'last-modified') ?? '')
  const modifiedMs = Number.isFinite(said) ? said : 0
  return { etag: etagOf(headerOf(reply, 'etag')) ?? substituteEtag(metadata['br-write-id'], modifiedMs, sizeBytes), sizeBytes, modifiedMs, metadata }
}

/** One spelling: some stores leave the quotes out, in lists above all, and some call their etags weak although a whole object has one. Null when there is none. */
function etagOf(sent: string | undefined): string | null {
  const etag = (sent ?? '').replace(/^W\//, '')
  if (etag === '' || etag === '""') return null
  return etag.startsWith('"') ? etag : `"${etag}"`
}

/** For stores that have no etags: which write it was, else when and how long. */
function substituteEtag(writeId: string | undefined, modifiedMs: number, sizeBytes: number): string {
  return writeId === undefined ? `"${modifiedMs}-${sizeBytes}"` : `"${writeId}"`
}

function statusOf(error: unknown): number | null {
  const status = (error as { $metadata?: { httpStatusCode?: unknown } } | null)?.$metadata?.httpStatusCode
  return typeof status === 'number' ? status : null
}

function attemptsOf(error: unknown): number {
  const attempts = (error as { $metadata?: { attempts?: unknown } } | null)?.$metadata?.attempts
  return typeof attempts === 'number' ? attempts : 1
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

/** An SDK error as the port names it. Messages never repeat what the store said: it may quote keys and credentials. */
function translated(error: unknown, isConditional: boolean): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error
  const status = statusOf(error)
  // The SDK tries twice: what the second try says is not what became of the first.
  const wasTriedBefore = attemptsOf(error) > 1
  const made = (kind: ObjectStoreErrorKind, message: string, mayHaveHappened = false): ObjectStoreError =>
    new ObjectStoreError(kind, message, { cause: error, mayHaveHappened: mayHaveHappened || wasTriedBefore })
  const name = nameOf(error)
  if (name === 'NoSuchBucket') return made('no-bucket', 'the bucket does not exist')
  if (status === 507 || /Quota|StorageFull|InsufficientStorage|DiskFull/.test(name)) return made('full', 'the store is full')
  if (status === 429 || status === 503 || name === 'SlowDown') return made('overloaded', `the store answered ${status}: it has too much to do`)
  // If-Match on a missing object is a 404 in S3: for the caller it is a condition that does not hold.
  if (status === 404) return isConditional ? made('precondition-failed', 'there is no such object') : made('not-found', 'no such object')
  if (status === 412 || status === 409) return made('precondition-failed', 'the condition does not hold')
  if (status === 501 || (isConditional && status === 400)) return made('unsupported', 'the store does not know this form of the call')
  if (status === 401 || status === 403 || (status === 400 && /Signature|AccessKey|Token|Authorization/.test(name)))
    return made('denied', 'the store refused the credentials')
  if (status !== null) return made('unavailable', `the store answered ${status}`, status >= 500)
  const code = (error as { code?: unknown } | null)?.code
  // Nothing was sent when the connection could not be made.
  const neverSent = code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'BLOCKED_ADDRESS'
  return made('unavailable', code === 'BLOCKED_ADDRESS' ? 'the endpoint leads to an address that is not public' : 'the store did not answer', !neverSent)
}
