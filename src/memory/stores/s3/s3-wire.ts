/**
 * Makes requests for single objects of an S3 bucket. The signer of the AWS SDK signs them, and undici sends them. The client of the SDK is not used,
 * because it needs more processor time than all other parts of a read or write of memory together. Decision 0225 says why.
 */
import { createHash, createHmac } from 'node:crypto'
import type { SignatureV4 } from '@smithy/signature-v4'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { type OriginClient, type OriginRequest, openOrigin } from '../../../platform/outbound/outbound.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { ObjectStoreError } from '../object-store.ts'
import { signatureV4 } from './aws-sdk.ts'
import { bucketUrl, isAwsEndpoint } from './s3-endpoint.ts'
import type { S3ClientOptions } from './s3-options.ts'

export interface S3Request {
  readonly method: OriginRequest['method']
  readonly key: string
  /** The names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal: CancelSignal
}

/** A failed call, in the form of the SDK's own errors: name, `$metadata`, and `code` of a connection that failed. */
export class S3WireError extends Error {
  override readonly name: string
  readonly code: unknown
  readonly $metadata: { readonly httpStatusCode?: number; readonly attempts: number }
  /** The region of the bucket, when the store has said that it differs from the region of the request. */
  readonly region: string | null
  constructor(name: string, attempts: number, how: { readonly status?: number; readonly cause?: unknown; readonly region?: string | null }) {
    super(name, { cause: how.cause })
    this.name = name
    this.region = how.region ?? null
    this.code = (how.cause as { code?: unknown } | undefined)?.code
    this.$metadata = { attempts, ...(how.status === undefined ? {} : { httpStatusCode: how.status }) }
  }
}

/** Maximum size of the text of an error, which is short XML. */
const errorTextMaxBytes = 64 * 1024
const retriedStatuses: readonly number[] = [429, 500, 502, 503, 504]
const skewNames: readonly string[] = ['RequestTimeTooSkewed', 'RequestExpired', 'RequestInTheFuture']
const retryPauseMs = 100
/** Minimum time between two moves to another region that the store names for its bucket. */
const regionMoveEveryMs = 60_000

/** SHA-256, or HMAC-SHA-256 when the signer passes a key, with the interface that the signer requires. */
class Sha256 {
  readonly #hash: { update(data: Uint8Array | string): unknown; digest(): Buffer }

  constructor(key?: unknown) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', key as Buffer | string)
  }

  update(data: Uint8Array | string): void {
    this.#hash.update(data)
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }

  reset(): void {
    throw new Error('the signer makes a new hash for each text')
  }
}

/** Makes requests to one bucket. A call with a temporary failure is tried again, at most `attemptsMax` times in all. */
export class S3Wire {
  readonly #options: S3ClientOptions
  #place: Place
  /** The clock of the store minus the clock of this machine. It is set when the store refuses a signature because of its time. */
  #skewMs = 0
  #movedAtMs = Number.NEGATIVE_INFINITY
  /** Places that are no longer used for new calls, but still have running calls. */
  readonly #left = new Set<Place>()
  #isClosed = false

  constructor(options: S3ClientOptions) {
    this.#options = options
    this.#place = placeIn(options, options.region, null)
  }

  /** The region of the bucket: the configured one, until the store names another. */
  get region(): string {
    return this.#place.region
  }

  /** Returns a reply of 2xx. The caller reads or destroys its body. Throws S3WireError, or the reason of the signal. */
  async send(request: S3Request): Promise<OutboundReply> {
    const { attemptsMax, clock, ids } = this.#options
    for (let attempts = 1; ; attempts++) {
      const asked = this.#place
      asked.calls++
      const failure = await this.#attempt(request, attempts, asked).finally(() => this.#ended(asked))
      if (!(failure instanceof S3WireError)) return failure
      // The request had no effect in the first region.
      if (failure.region !== null && attempts < attemptsMax && this.#moveTo(failure.region, asked)) continue
      if (attempts >= attemptsMax || !this.#isRetried(failure)) throw failure
      await clock.sleep(retryPauseMs * ids.random())
      request.signal.throwIfAborted()
    }
  }

  /**
   * Sends a request as `send` does, and returns the XML of the reply. A store may answer 200 to a long call before the call fails. The text then contains
   * the error, which is thrown.
   */
  async text(request: S3Request): Promise<string> {
    const { body } = await this.send(request)
    const text = (await body.buffer(errorTextMaxBytes)).toString('utf8')
    if (text.includes('<Error>')) throw new S3WireError(nameIn(text), 1, { status: 500 })
    return text
  }

  close(): void {
    this.#isClosed = true
    for (const { origin } of [this.#place, ...this.#left]) origin.close()
    this.#left.clear()
  }

  /**
   * Signs for another region from now on. For AWS, the host of that region is used. Other stores have one endpoint for all regions, so their connections
   * are kept. Returns false when the last move was less than a minute ago. The caller then gets the store's error, so a store that names a new region each
   * time does no harm.
   */
  #moveTo(region: string, from: Place): boolean {
    // Another call may have moved the place meanwhile.
    if (this.#place !== from) return true
    const { endpoint, clock } = this.#options
    const nowMs = clock.monotonicMs()
    if (this.#isClosed || nowMs - this.#movedAtMs < regionMoveEveryMs) return false
    this.#movedAtMs = nowMs
    this.#place = placeIn({ ...this.#options, endpoint: isAwsEndpoint(endpoint) ? null : endpoint }, region, from)
    if (this.#place.origin !== from.origin) this.#leave(from)
    return true
  }

  /** Closes the connections of a place when all calls that began there have their replies. */
  #leave(place: Place): void {
    if (place.calls > 0) this.#left.add(place)
    else place.origin.retire()
  }

  #ended(place: Place): void {
    place.calls--
    if (place.calls > 0 || !this.#left.delete(place)) return
    place.origin.retire()
  }

  async #attempt(request: S3Request, attempts: number, place: Place): Promise<OutboundReply | S3WireError> {
    const { method, key, body, signal } = request
    const path = place.root + key.split('/').map(escaped).join('/')
    try {
      signal.throwIfAborted()
      const headers = await this.#signed(place, method, path, request.headers ?? {}, body)
      const reply = await place.origin.send({ method, path, headers, signal, ...(body === undefined ? {} : { body }) })
      if (reply.status >= 200 && reply.status < 300) return reply
      const text = method === 'HEAD' ? '' : (await reply.body.buffer(errorTextMaxBytes)).toString('utf8')
      const name = nameIn(text)
      if (skewNames.includes(name)) this.#learnSkew(reply)
      return new S3WireError(name, attempts, { status: reply.status, region: regionIn(reply, text, place.region) })
    } catch (cause) {
      if (signal.aborted) throw signal.reason
      if (cause instanceof ObjectStoreError) throw cause
      return new S3WireError('NetworkError', attempts, { cause })
    }
  }

  #isRetried({ name, code, $metadata: { httpStatusCode } }: S3WireError): boolean {
    if (httpStatusCode === undefined) return code !== 'BLOCKED_ADDRESS'
    return retriedStatuses.includes(httpStatusCode) || skewNames.includes(name) || name === 'RequestTimeout'
  }

  #learnSkew({ headers }: OutboundReply): void {
    const said = Date.parse(String(headers['date']))
    if (Number.isFinite(said)) this.#skewMs = said - this.#options.clock.nowMs()
  }

  /** Returns the headers with the signature over them, the method, the path and the content. */
  async #signed(
    { url, signer }: Place,
    method: string,
    path: string,
    given: Readonly<Record<string, string>>,
    body: Buffer | undefined,
  ): Promise<Record<string, string>> {
    const { protocol, hostname, host } = url
    const signingDate = new Date(this.#options.clock.nowMs() + this.#skewMs)
    const request = { method, protocol, hostname, path, query: {}, headers: { ...given, host }, body }
    return (await signer.sign(request, { signingDate })).headers
  }
}

/** One bucket in one region. */
interface Place {
  /** Number of requests without a reply yet. */
  calls: number
  readonly region: string
  readonly url: URL
  readonly root: string
  readonly origin: OriginClient
  readonly signer: SignatureV4
}

/** Returns the place of a region. It uses the connections of the previous place when both have the same origin. */
function placeIn(options: S3ClientOptions, region: string, before: Place | null): Place {
  const url = bucketUrl(options, region)
  const { SignatureV4 } = signatureV4()
  const signer = new SignatureV4({
    service: 's3',
    region,
    // This returns current keys immediately. New keys are fetched in the background.
    credentials: () => options.keys(),
    sha256: Sha256,
    // The path is sent as it is signed. S3 escapes it once.
    uriEscapePath: false,
  })
  const root = `${url.pathname.replace(/\/+$/, '')}/`
  if (before?.url.origin === url.origin) return { calls: 0, region, url, root, origin: before.origin, signer }
  const { socketsMax: connectionsMax, connectTimeoutMs, timeoutMs: silenceMs } = options
  const origin = openOrigin(url.origin, { lookup: options.lookupFor(url), connectionsMax, connectTimeoutMs, silenceMs })
  return { calls: 0, region, url, root, origin, signer }
}

/** Statuses with which S3 says that the bucket is in another region. */
const otherRegionStatuses: readonly number[] = [301, 307, 400]

/** Returns the region that the store names in an answer with such a status. Returns null when the store names no region, or the region of the request. */
function regionIn({ status, headers }: OutboundReply, text: string, asked: string): string | null {
  if (!otherRegionStatuses.includes(status)) return null
  const said = headers['x-amz-bucket-region'] ?? /<Region>([^<]*)<\/Region>/.exec(text)?.[1]
  return typeof said === 'string' && /^[a-z0-9-]{1,40}$/.test(said) && said !== asked ? said : null
}

/** Returns the error code in the reply of a store. Any other text is ignored. */
const nameIn = (text: string): string => /<Code>([\w.-]{1,80})<\/Code>/.exec(text)?.[1] ?? 'Unknown'

/** Returns a segment of a path as S3 canonicalizes it: everything but unreserved characters is escaped. */
function escaped(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
