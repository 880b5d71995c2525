/**
 * Requests for single objects of an S3 bucket, signed by the signer of the AWS SDK and sent over undici. What the SDK's client does
 * around such a call costs more processor time than all else that a read or a write of memory takes.
 */
import { createHash, createHmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import type { CancelSignal } from '../platform/cancellation.ts'
import { type OriginClient, type OriginRequest, openOrigin } from '../platform/outbound.ts'
import type { OutboundReply } from '../platform/upstream-body.ts'
import type { S3ClientOptions } from './s3-options.ts'

export interface S3Request {
  readonly method: OriginRequest['method']
  readonly key: string
  /** Lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal: CancelSignal
}

/** A failed call in the form that the SDK gives its own: name, `$metadata`, and `code` of a connection that failed. */
export class S3WireError extends Error {
  override readonly name: string
  readonly code: unknown
  readonly $metadata: { readonly httpStatusCode?: number; readonly attempts: number }
  constructor(name: string, attempts: number, how: { readonly status?: number; readonly cause?: unknown }) {
    super(name, { cause: how.cause })
    this.name = name
    this.code = (how.cause as { code?: unknown } | undefined)?.code
    this.$metadata = { attempts, ...(how.status === undefined ? {} : { httpStatusCode: how.status }) }
  }
}

/** An error's text is short XML. */
const errorTextMaxBytes = 64 * 1024
const retriedStatuses: readonly number[] = [429, 500, 502, 503, 504]
const skewNames: readonly string[] = ['RequestTimeTooSkewed', 'RequestExpired', 'RequestInTheFuture']
const retryPauseMs = 100

/** SHA-256, keyed where the signer gives a key, in the form that it asks for. */
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

/** Requests to one bucket. A call that fails for a moment is tried again, up to `attemptsMax` times in all. */
export class S3Wire {
  readonly #options: S3ClientOptions
  readonly #origin: OriginClient
  readonly #signer: SignatureV4
  readonly #url: URL
  readonly #root: string
  /** Clock of the store minus ours, when it has refused a signature for that. */
  #skewMs = 0

  constructor(options: S3ClientOptions) {
    const url = new URL(options.endpoint)
    this.#options = options
    this.#url = url
    this.#signer = new SignatureV4({
      service: 's3',
      region: options.region,
      credentials: { accessKeyId: options.accessKey.reveal(), secretAccessKey: options.secretKey.reveal() },
      sha256: Sha256,
      // The path goes out as it is signed; S3 escapes it once.
      uriEscapePath: false,
    })
    this.#root = `${url.pathname.replace(/\/+$/, '')}/${escaped(options.bucket)}/`
    const { lookup, socketsMax: connectionsMax, connectTimeoutMs, timeoutMs: silenceMs } = options
    this.#origin = openOrigin(url.origin, { lookup, connectionsMax, connectTimeoutMs, silenceMs })
  }

  /** A reply of 2xx, whose body the caller reads or destroys. Throws S3WireError, or the reason of the signal. */
  async send(request: S3Request): Promise<OutboundReply> {
    const { attemptsMax, clock, ids } = this.#options
    for (let attempts = 1; ; attempts++) {
      const failure = await this.#attempt(request, attempts)
      if (!(failure instanceof S3WireError)) return failure
      if (attempts >= attemptsMax || !this.#isRetried(failure)) throw failure
      await clock.sleep(retryPauseMs * ids.random())
      request.signal.throwIfAborted()
    }
  }

  /** As `send`, with the XML of the reply. A call that takes its store long may be answered 200 before it fails: then the text says so. */
  async text(request: S3Request): Promise<string> {
    const { body } = await this.send(request)
    const text = (await body.buffer(errorTextMaxBytes)).toString('utf8')
    if (text.includes('<Error>')) throw new S3WireError(nameIn(text), 1, { status: 500 })
    return text
  }

  close(): void {
    this.#origin.close()
  }

  async #attempt(request: S3Request, attempts: number): Promise<OutboundReply | S3WireError> {
    const { method, key, body, signal } = request
    const path = this.#root + key.split('/').map(escaped).join('/')
    try {
      signal.throwIfAborted()
      const headers = await this.#signed(method, path, request.headers ?? {}, body)
      const reply = await this.#origin.send({ method, path, headers, signal, ...(body === undefined ? {} : { body }) })
      if (reply.status >= 200 && reply.status < 300) return reply
      const text = method === 'HEAD' ? '' : (await reply.body.buffer(errorTextMaxBytes)).toString('utf8')
      const name = nameIn(text)
      if (skewNames.includes(name)) this.#learnSkew(reply)
      return new S3WireError(name, attempts, { status: reply.status })
    } catch (cause) {
      if (signal.aborted) throw signal.reason
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

  /** The headers with the signature over them, the method, the path and the content. */
  async #signed(method: string, path: string, given: Readonly<Record<string, string>>, body: Buffer | undefined): Promise<Record<string, string>> {
    const { protocol, hostname, host } = this.#url
    const signingDate = new Date(this.#options.clock.nowMs() + this.#skewMs)
    const request = { method, protocol, hostname, path, query: {}, headers: { ...given, host }, body }
    return (await this.#signer.sign(request, { signingDate })).headers
  }
}

/** How the store calls an error; a name, not whatever it says there. */
const nameIn = (text: string): string => /<Code>([\w.-]{1,80})<\/Code>/.exec(text)?.[1] ?? 'Unknown'

/** A segment of a path as S3 canonicalizes it: everything but unreserved characters. */
function escaped(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
