/** Signs requests to AWS with the signer of the AWS SDK. */
import { createHash, createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import type { SignatureV4 } from '@smithy/signature-v4'
import { pieceBytes, pieceTurn } from '../wire/json/json-body.ts'
import type { Authorised, Authoriser, CredentialState, UnauthorisedRequest } from './authorise.ts'
import { isReplaced, type Perishable, type Renewed } from './renewed.ts'

/** The keys that sign a request. */
export interface AwsKeys extends Perishable {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export interface SigV4Options {
  /** The name of the service in signatures: `bedrock`, `bedrock-mantle`. */
  readonly service: string
  readonly region: string
  readonly keys: Pick<Renewed<AwsKeys>, 'get' | 'renew' | 'current'>
  /** Where the keys come from, for people. */
  readonly source: string
}

/** Error names by which AWS says that keys have ended. */
const expiredNames = /^(?:ExpiredToken(?:Exception)?|TokenRefreshRequired|UnrecognizedClientException|InvalidClientTokenId|InvalidToken)$/
/** Error names by which AWS says that the time of a signature is wrong. */
const skewNames = /^(?:InvalidSignatureException|RequestTimeTooSkewed|RequestExpired|RequestInTheFuture)$/
/** Clocks that differ by less than this are not the reason of a refusal. AWS accepts five minutes. */
const skewLeastMs = 4 * 60_000

/** The signer is loaded at its first use: a gateway without AWS does not need it. */
let signerClass: typeof SignatureV4 | null = null
const load = createRequire(import.meta.url)
function signerOf(keys: AwsKeys, { service, region }: SigV4Options): SignatureV4 {
  signerClass ??= (load('@smithy/signature-v4') as typeof import('@smithy/signature-v4')).SignatureV4
  // AWS encodes the path of a request once more than it is sent, except for S3. That is the default of the signer.
  return new signerClass({ service, region, credentials: keys, sha256: Sha256 })
}

/** Signs the requests of one identity for one service in one region. */
export class SigV4Authoriser implements Authoriser {
  readonly #options: SigV4Options
  #signer: { readonly keys: AwsKeys; readonly signer: SignatureV4 } | null = null
  /** The clock of AWS minus the clock of this machine. It is set when AWS refuses a signature because of its time. */
  #skewMs = 0
  /** The hashes of long bodies, by request: a request that is sent once more has the same body. */
  readonly #hashes = new WeakMap<UnauthorisedRequest, string>()

  constructor(options: SigV4Options) {
    this.#options = options
  }

  async authorise(asked: UnauthorisedRequest, nowMs: number): Promise<Authorised> {
    const { method, url, headers, body } = asked
    const found = this.#options.keys.get()
    const keys = found instanceof Promise ? await found : found
    if (this.#signer?.keys !== keys) this.#signer = { keys, signer: signerOf(keys, this.#options) }
    const { protocol, hostname, host, path, query } = partsOf(url)
    const type = headers['content-type']
    // The signer would hash a long body in one step, in which no other call goes on. It takes a hash that is already there.
    const hash = body !== undefined && body.length > pieceBytes ? (this.#hashes.get(asked) ?? (await this.#hashInPieces(asked, body))) : null
    // Headers that a proxy may change are not signed.
    const signed = { host, ...(type === undefined ? {} : { 'content-type': type }), ...(hash === null ? {} : { 'x-amz-content-sha256': hash }) }
    const request = { method, protocol, hostname, path, query, headers: signed, body }
    const { headers: made } = await this.#signer.signer.sign(request, { signingDate: new Date(nowMs + this.#skewMs) })
    return { headers: { ...headers, ...made }, used: keys }
  }

  async #hashInPieces(asked: UnauthorisedRequest, body: Buffer | string): Promise<string> {
    const { inTurn = inPieceTurn } = asked
    const hash = createHash('sha256')
    for (let from = 0; from < body.length; ) {
      const start = from
      const end = pieceEnd(body, from + pieceBytes)
      await inTurn(() => hash.update(typeof body === 'string' ? body.slice(start, end) : body.subarray(start, end)))
      from = end
    }
    const made = hash.digest('hex')
    this.#hashes.set(asked, made)
    return made
  }

  mayRetry({ status, headers }: Parameters<Authoriser['mayRetry']>[0], used: object, nowMs: number): boolean | Promise<boolean> {
    if (status !== 401 && status !== 403 && status !== 400) return false
    const name = errorNameIn(headers['x-amzn-errortype'])
    if (skewNames.test(name) && this.#learnSkew(headers['date'], nowMs)) return true
    return expiredNames.test(name) && isReplaced(this.#options.keys, used as AwsKeys)
  }

  describe(): CredentialState {
    const endMs = this.#options.keys.current?.endMs ?? Number.POSITIVE_INFINITY
    return { source: this.#options.source, endMs: Number.isFinite(endMs) ? endMs : null }
  }

  #learnSkew(date: string | string[] | undefined, nowMs: number): boolean {
    const skewMs = Date.parse(String(date)) - nowMs
    if (!Number.isFinite(skewMs) || Math.abs(skewMs - this.#skewMs) < skewLeastMs) return false
    this.#skewMs = skewMs
    return true
  }
}

const inPieceTurn = <T>(work: () => T): Promise<T> => pieceTurn().then(work)

/** Returns where a piece ends. A text is not cut inside a surrogate pair, which would change its bytes. */
function pieceEnd(body: Buffer | string, end: number): number {
  return typeof body === 'string' && end < body.length && /[\udc00-\udfff]/.test(body.charAt(end)) ? end + 1 : end
}

/** Returns the name of an error, as AWS writes it in a header: `ExpiredTokenException:http://…`. */
const errorNameIn = (header: string | string[] | undefined): string => String(header ?? '').split(':')[0] ?? ''

interface UrlParts {
  readonly protocol: string
  readonly hostname: string
  readonly host: string
  readonly path: string
  readonly query: Readonly<Record<string, string | string[]>>
}

/** The parts of recent URLs. The same few are signed again and again. */
const knownParts = new Map<string, UrlParts>()
const knownPartsMax = 1_000

function partsOf(text: string): UrlParts {
  const known = knownParts.get(text)
  if (known !== undefined) return known
  const url = new URL(text)
  const query: Record<string, string[]> = {}
  for (const name of new Set(url.searchParams.keys())) query[name] = url.searchParams.getAll(name)
  const made = { protocol: url.protocol, hostname: url.hostname, host: url.host, path: url.pathname, query }
  if (knownParts.size >= knownPartsMax) knownParts.clear()
  knownParts.set(text, made)
  return made
}

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
