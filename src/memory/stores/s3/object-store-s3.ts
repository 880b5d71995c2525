/**
 * An object store over the S3 protocol: AWS, R2, MinIO, Ceph, Swift's s3api. Checksum headers and chunked bodies are sent only when the protocol requires
 * them, because older stores answer 501 to both. Calls for one object use `S3Wire`. Calls with XML replies use the client of the AWS SDK.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { RoomOfReply } from '../../../platform/outbound/held-replies.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { KeyQueue, QueueTimeoutError } from '../../access/key-queue.ts'
import { withinTime } from '../../store-time.ts'
import {
  type CallOptions,
  type CopyOptions,
  type DeleteOptions,
  type GetOptions,
  type ListOptions,
  type ListPage,
  type ObjectHead,
  type ObjectStore,
  ObjectStoreError,
  type PutOptions,
  type StoredObject,
} from '../object-store.ts'
import { etagOf, substituteEtag } from './s3-etags.ts'
import { isExpired, statusOf, translated } from './s3-failures.ts'
import type { S3Lists } from './s3-lists.ts'
import type { InRoom, S3ClientOptions, S3StoreOptions } from './s3-options.ts'
import { S3Wire } from './s3-wire.ts'

/** Maximum number of sockets to one store. */
const socketsMax = 64
const connectTimeoutMs = 5_000
/** Maximum number of tries of one call. Each try has its own time limit. */
const attemptsMax = 2
/** Maximum pause between two tries. */
const pauseMsMax = 1_500
/** Maximum number of tries of a conditional write that the store refuses because another conditional write is running (409 ConditionalRequestConflict). */
const conflictTriesMax = 4
/** The year 9999, the last year that databases and dates accept. */
const modifiedMsMax = 253_402_300_799_999
/** Statuses with which stores say that they cannot copy: Bad Request, Method Not Allowed, Not Implemented. */
const noCopyStatuses: readonly number[] = [400, 405, 501]

export class S3Store implements ObjectStore {
  readonly #options: S3ClientOptions
  /** Null until the first call that needs the client of the AWS SDK. */
  #lists: Promise<S3Lists> | null = null
  readonly #wire: S3Wire
  readonly #bucket: string
  readonly #timeoutMs: number
  readonly #objectBytesMax: number
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #inRoom: InRoom
  /** Headers of every write that say how the store encrypts the object. */
  readonly #encryption: Readonly<Record<string, string>>
  /** False once the store has said that it cannot copy. */
  #hasCopy = true
  /** The queue of copies through this process. One copy runs at a time, so the process holds the bytes of only one object for a store. */
  readonly #copies: KeyQueue

  constructor(options: S3StoreOptions) {
    this.#bucket = options.bucket
    this.#timeoutMs = options.timeoutMs
    this.#objectBytesMax = options.objectBytesMax
    this.#clock = options.clock
    this.#copies = new KeyQueue(options.clock)
    this.#ids = options.ids
    this.#inRoom = options.inRoom ?? (work => work())
    this.#encryption = encryptionOf(options)
    const bounds = { connectTimeoutMs: Math.min(connectTimeoutMs, options.timeoutMs), socketsMax, attemptsMax }
    this.#options = { ...options, ...bounds }
    this.#wire = new S3Wire(this.#options)
  }

  /** The region in which the bucket was found. */
  get region(): string {
    return this.#wire.region
  }

  get(key: string, options: GetOptions): Promise<StoredObject> {
    return this.#call(options, async signal => {
      const reply = await this.#wire.send({ method: 'GET', key, signal })
      const head = headOf(reply)
      const { sizeBytesMax } = options
      if (head.sizeBytes > sizeBytesMax) {
        reply.body.destroy()
        throw new ObjectStoreError('too-large', `the object has ${head.sizeBytes} bytes`)
      }
      const bytes = await this.#inRoom(room => wholeOf(reply, sizeBytesMax, room))
      if (reply.headers['content-length'] !== undefined && bytes.length !== head.sizeBytes)
        throw new ObjectStoreError('unavailable', 'the store sent another number of bytes than it said')
      return { ...head, bytes, sizeBytes: bytes.length }
    })
  }

  async head(key: string, options: CallOptions = {}): Promise<ObjectHead | null> {
    try {
      return await this.#call(options, async signal => {
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
    const headers: Record<string, string> = {
      ...this.#encryption,
      ...conditionHeaders(options),
      'content-type': options.contentType ?? 'application/octet-stream',
    }
    for (const [name, value] of Object.entries(options.metadata ?? {})) headers[`${metadataPrefix}${name.toLowerCase()}`] = value
    return this.#call({ ...options, isConditional: isConditional(options) }, async signal => {
      const reply = await this.#wire.send({ method: 'PUT', key, headers, body: bytes, signal })
      await reply.body.buffer(replyMaxBytes)
      return { etag: etagOf(headerOf(reply, 'etag')) ?? substituteEtag(options.metadata?.['br-write-id'], 0, bytes.length) }
    })
  }

  async copy(from: string, to: string, options: CopyOptions = {}): Promise<{ etag: string }> {
    if (!this.#hasCopy) return this.#copyByHand(from, to, options)
    try {
      const headers = {
        ...this.#encryption,
        'x-amz-copy-source': [this.#bucket, ...from.split('/')].map(encodeURIComponent).join('/'),
        'x-amz-metadata-directive': 'COPY',
        ...(options.ifMatch === undefined ? {} : { 'x-amz-copy-source-if-match': options.ifMatch }),
      }
      return await this.#call(options, async signal => {
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

  /** Copies an object through this process. The wait for a turn is limited to the time that one answer of the store may take. */
  async #copyByHand(from: string, to: string, options: CopyOptions): Promise<{ etag: string }> {
    try {
      return await this.#copies.run('', () => this.#copyInTurn(from, to, options), this.#timeoutMs)
    } catch (error) {
      throw error instanceof QueueTimeoutError ? tooManyCopies(error) : error
    }
  }

  async #copyInTurn(from: string, to: string, options: CopyOptions): Promise<{ etag: string }> {
    options.signal?.throwIfAborted()
    const found = await this.get(from, { ...options, sizeBytesMax: this.#objectBytesMax })
    if (options.ifMatch !== undefined && found.etag !== options.ifMatch) throw new ObjectStoreError('precondition-failed', 'the object has another etag')
    return this.put(to, found.bytes, {
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      metadata: found.metadata,
      contentType: 'text/plain; charset=utf-8',
    })
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<void> {
    try {
      await this.#call({ ...options, isConditional: isConditional(options) }, async signal => {
        const reply = await this.#wire.send({ method: 'DELETE', key, headers: conditionHeaders(options), signal })
        await reply.body.buffer(replyMaxBytes)
      })
    } catch (error) {
      if (error instanceof ObjectStoreError && error.kind === 'not-found') return
      throw error
    }
  }

  list(options: ListOptions): Promise<ListPage> {
    return this.#call(options, async signal => (await this.#listed()).page(options, signal))
  }

  versioning(options: CallOptions = {}): Promise<'on' | 'suspended' | 'off' | 'unknown'> {
    // Many stores do not support the question, and credentials may lack the right to ask it.
    return this.#call(options, async signal => (await this.#listed()).versioning(signal)).catch(() => 'unknown')
  }

  close(): void {
    this.#lists?.then(lists => lists.close()).catch(() => undefined)
    this.#wire.close()
  }

  /** Returns the calls whose replies are XML. Their file is loaded at the first of them, because it loads the client of the AWS SDK. */
  #listed(): Promise<S3Lists> {
    this.#lists ??= import('./s3-lists.ts').then(({ S3Lists }) => new S3Lists(this.#options))
    return this.#lists
  }

  /**
   * Runs one call, including its body, within its time limit. A conditional call is repeated when the store says that another conditional write was
   * running.
   */
  #call<T>(options: CallOptions & { readonly isConditional?: boolean }, send: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withinTime(this.#clock, options.signal, this.#timeoutMs * attemptsMax + pauseMsMax, late, async signal => {
      let hasNewKeys = false
      for (let tries = 1; ; tries++) {
        try {
          return await send(signal)
        } catch (error) {
          // The client of lists throws its own error when its signal aborts.
          if (signal.aborted) throw signal.reason
          if (isExpired(error) && !hasNewKeys) {
            hasNewKeys = true
            await (await this.#listed()).renewKeys()
            continue
          }
          if (statusOf(error) !== 409 || tries >= conflictTriesMax) throw translated(error, options.isConditional === true)
          await this.#clock.sleep(20 * tries * (1 + this.#ids.random()), signal)
        }
      }
    })
  }
}

/** Returns the encryption headers of writes. There are none when the bucket decides. */
function encryptionOf({ access }: S3StoreOptions): Record<string, string> {
  if (access?.sse !== 'aws:kms') return {}
  return {
    'x-amz-server-side-encryption': 'aws:kms',
    'x-amz-server-side-encryption-bucket-key-enabled': 'true',
    ...(access.kmsKeyId === null ? {} : { 'x-amz-server-side-encryption-aws-kms-key-id': access.kmsKeyId }),
  }
}

const late = (): ObjectStoreError => new ObjectStoreError('unavailable', 'the store did not answer in time', { mayHaveHappened: true })

const tooManyCopies = (cause: Error): ObjectStoreError =>
  new ObjectStoreError('overloaded', 'the store has no copy of its own, and too many copies wait for their turn', { cause })

const metadataPrefix = 'x-amz-meta-'
/** Maximum size of the reply to a write. The gateway needs nothing from its body. */
const replyMaxBytes = 64 * 1024

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

async function wholeOf({ body }: OutboundReply, bytesMax: number, room: RoomOfReply | undefined): Promise<Buffer> {
  try {
    return await body.buffer(bytesMax, room)
  } catch (error) {
    throw bodyFailure(error)
  }
}

function bodyFailure(cause: unknown): ObjectStoreError {
  if (cause instanceof BodyTooLargeError) return new ObjectStoreError('too-large', cause.message, { cause })
  return new ObjectStoreError('unavailable', 'the store stopped in the middle of an object', { cause })
}

/** S3 accepts no longer value, so the gateway did not write a longer one. It is ignored, because the index would store it without counting its bytes. */
const metadataMaxChars = 2048

function headOf(reply: OutboundReply): ObjectHead {
  const metadata: Record<string, string> = {}
  for (const name of Object.keys(reply.headers)) {
    const value = headerOf(reply, name) ?? ''
    if (name.startsWith(metadataPrefix) && value.length <= metadataMaxChars) metadata[name.slice(metadataPrefix.length)] = value
  }
  const sizeBytes = Number(headerOf(reply, 'content-length') ?? 0)
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) {
    reply.body.destroy()
    throw new ObjectStoreError('unavailable', 'the store sent a length that no object has')
  }
  const said = Date.parse(headerOf(reply, 'last-modified') ?? '')
  const modifiedMs = said >= 0 && said <= modifiedMsMax ? said : 0
  return { etag: etagOf(headerOf(reply, 'etag')) ?? substituteEtag(metadata['br-write-id'], modifiedMs, sizeBytes), sizeBytes, modifiedMs, metadata }
}
