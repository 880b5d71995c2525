/** Makes the calls whose replies are XML, mostly lists. Only this file sends requests to a store with the client of the AWS SDK. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Readable } from 'node:stream'
import { type _Object, type CommonPrefix, GetBucketVersioningCommand, ListObjectsV2Command, type ListObjectsV2CommandInput, S3Client } from '@aws-sdk/client-s3'
import { NodeHttpHandler, type NodeHttpHandlerOptions } from '@smithy/node-http-handler'
import { outsideStoreTime } from '../../store-time.ts'
import { afterAllBelow, compareKeys, type ListedObject, type ListOptions, type ListPage, listPageMax, ObjectStoreError } from '../object-store.ts'
import { bucketUrl, isAwsEndpoint, isPathForced } from './s3-endpoint.ts'
import { etagOf, substituteEtag } from './s3-etags.ts'
import { frameMaxBytes, refused, refuseHeavyList } from './s3-list-scan.ts'
import type { InTurn, S3ClientOptions } from './s3-options.ts'

/** Number of bytes that the bound of a page allows for each entry: a key of usual length, escaped, and the other fields. */
const entryMaxBytes = 1_200
/** Maximum number of replies of one page. A store that sends 50 keys a reply fills a page of 1,000. Decision 0523 says why. */
const repliesMax = 20
/** Maximum length of a key in S3. */
const listedKeyMaxBytes = 1_024
/** A longer reply must wait for a turn before it is scanned and parsed. About a hundred entries have this length. Decision 0501 says why. */
const heavyBytes = 32 * 1024
/** The year 9999, the last year that databases and dates accept. */
const modifiedMsMax = 253_402_300_799_999

export class S3Lists {
  readonly #client: S3Client
  readonly #bucket: string

  constructor(options: S3ClientOptions) {
    const { endpoint, bucket, region, keys, timeoutMs, connectTimeoutMs, socketsMax, attemptsMax, inTurn = work => Promise.resolve(work()) } = options
    const lookup = options.lookupFor(bucketUrl(options, region))
    // The timeout of the agents applies to idle sockets.
    const agentOptions = { keepAlive: true, maxSockets: socketsMax, lookup, timeout: timeoutMs }
    this.#bucket = bucket
    this.#client = new S3Client({
      ...(isAwsEndpoint(endpoint) || endpoint === null ? {} : { endpoint }),
      region,
      forcePathStyle: isPathForced(options),
      // Endpoints that the environment of the process names are not meant for the stores of organisations.
      ignoreConfiguredEndpointUrls: true,
      followRegionRedirects: true,
      credentials: options => keys(options?.['forceRefresh'] === true ? { forceRefresh: true } : undefined),
      maxAttempts: attemptsMax,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: new BoundedHandler(
        {
          connectionTimeout: connectTimeoutMs,
          requestTimeout: timeoutMs,
          throwOnRequestTimeout: true,
          httpAgent: new HttpAgent(agentOptions),
          httpsAgent: new HttpsAgent(agentOptions),
        },
        inTurn,
      ),
    })
  }

  /**
   * Returns one page. A store may send fewer keys than it is asked for, also none, although it has more. The page then consists of several replies. Throws
   * errors of the SDK. Throws ObjectStoreError for a list that does not advance, because its pages would never end, and `small-pages` when the page needs
   * too many replies.
   */
  async page({ prefix, limit = listPageMax, startAfter, byFolder = false }: ListOptions, abortSignal: AbortSignal): Promise<ListPage> {
    const entriesMax = Math.min(limit, listPageMax)
    const objects: ListedObject[] = []
    const folders: string[] = []
    const pageTo = (next: string | null): ListPage => (byFolder ? { objects, folders, next } : { objects, next })
    let last = startAfter
    let from: From = startAfter === undefined ? {} : { StartAfter: startAfter }
    for (let replies = 0; replies < repliesMax; replies++) {
      const left = entriesMax - objects.length - folders.length
      const folding = byFolder ? { Delimiter: '/' } : {}
      const command = new ListObjectsV2Command({ Bucket: this.#bucket, Prefix: prefix, MaxKeys: left, ...folding, ...from })
      const reply = await this.#client.send(command, { abortSignal })
      const listed = (reply.Contents ?? []).map(listedOf)
      const folded = byFolder ? foldersOf(reply.CommonPrefixes, prefix) : []
      if (listed.length + folded.length > left) throw tooManyEntries(entriesMax)
      if ([...listed.map(({ key }) => key), ...folded].some(key => Buffer.byteLength(key) > listedKeyMaxBytes))
        throw refused(`a key of more than ${listedKeyMaxBytes} bytes`)
      for (const object of listed) objects.push(object)
      for (const folder of folded) folders.push(folder)
      if (reply.IsTruncated !== true) return pageTo(null)
      const next = lastOf(listed.at(-1)?.key, folded.at(-1))
      if (next === undefined && reply.NextContinuationToken === undefined) throw doesNotGoOn()
      if (next !== undefined && last !== undefined && compareKeys(next, last) <= 0) throw doesNotGoOn()
      if (next !== undefined && objects.length + folders.length === entriesMax) return pageTo(next)
      last = next ?? last
      // Only a reply without keys needs the token of the store. A key is a position that does not depend on the store.
      from = next === undefined ? { ContinuationToken: reply.NextContinuationToken } : { StartAfter: next }
    }
    throw new ObjectStoreError(
      'small-pages',
      `the store sent ${objects.length + folders.length} of ${entriesMax} keys in ${repliesMax} replies, and says that there are more`,
    )
  }

  /** Returns the versioning state of the bucket. Throws errors of the SDK. */
  async versioning(abortSignal: AbortSignal): Promise<'on' | 'suspended' | 'off'> {
    const { Status } = await this.#client.send(new GetBucketVersioningCommand({ Bucket: this.#bucket }), { abortSignal })
    return Status === 'Enabled' ? 'on' : Status === 'Suspended' ? 'suspended' : 'off'
  }

  /** Fetches new keys, after the store has refused the present ones. */
  async renewKeys(): Promise<void> {
    await this.#client.config.credentials({ forceRefresh: true })
  }

  close(): void {
    this.#client.destroy()
  }
}

/**
 * Reads each reply completely before the SDK parses it. A store that sends too much, or byte by byte, therefore costs only a bounded buffer and its own
 * call. A reply that is too large for the requested number of entries is refused before it is parsed. The scan and the SDK's parsing happen in one turn,
 * because nothing between them waits.
 */
class BoundedHandler extends NodeHttpHandler {
  readonly #inTurn: InTurn

  constructor(options: NodeHttpHandlerOptions, inTurn: InTurn) {
    super(options)
    this.#inTurn = inTurn
  }

  override async handle(...[request, options]: Parameters<NodeHttpHandler['handle']>): ReturnType<NodeHttpHandler['handle']> {
    const { response } = await super.handle(request, options)
    const entriesMax = Number(request.query['max-keys'] ?? 0)
    const signal = options?.abortSignal as AbortSignal | undefined
    const text = await wholeOf(response.body as Readable, frameMaxBytes + entriesMax * entryMaxBytes, signal)
    const scan = (): void => {
      signal?.throwIfAborted()
      // The SDK's parser does not expand entities. A store that declares entities is not trusted.
      if (text.includes('<!DOCTYPE') || text.includes('<!ENTITY')) throw refused('a document type in its XML')
      refuseHeavyList(text, entriesMax)
    }
    if (text.length > heavyBytes) await outsideStoreTime(signal, () => this.#inTurn(scan, signal))
    else scan()
    response.body = Readable.from([text])
    return { response }
  }
}

/** Returns the whole body. Throws ObjectStoreError above the bound, and the reason of the signal. */
async function wholeOf(body: Readable, bytesMax: number, signal: AbortSignal | undefined): Promise<Buffer> {
  const stop = (): void => void body.destroy(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of body) {
      bytes += (part as Buffer).length
      if (bytes > bytesMax) throw refused(`a reply of more than the ${bytesMax} bytes that it may have`)
      parts.push(part as Buffer)
    }
    return Buffer.concat(parts)
  } finally {
    signal?.removeEventListener('abort', stop)
    body.destroy()
  }
}

/** Where a reply begins. */
type From = Pick<ListObjectsV2CommandInput, 'StartAfter' | 'ContinuationToken'>

const doesNotGoOn = (): ObjectStoreError => new ObjectStoreError('unavailable', 'the list of the store does not go on')

const tooManyEntries = (entriesMax: number): ObjectStoreError => refused(`a page with more than the ${entriesMax} entries that were asked for`)

/** Returns the folders of a reply. Throws for a folder outside of the prefix. */
function foldersOf(found: readonly CommonPrefix[] | undefined, prefix: string): string[] {
  const folders = (found ?? []).map(({ Prefix: folder = '' }) => folder)
  if (folders.some(folder => !folder.startsWith(prefix) || !folder.endsWith('/'))) throw refused('a folder that was not asked for')
  return folders
}

/** Returns the position after the last key and the last folder of a reply. Returns undefined when it has neither. */
function lastOf(key: string | undefined, folder: string | undefined): string | undefined {
  if (folder === undefined) return key
  const position = folder + afterAllBelow
  return key !== undefined && compareKeys(key, position) > 0 ? key : position
}

/** Returns one entry of a list. An invalid size or time counts as missing. */
function listedOf({ Key: key = '', ETag: etag, Size: size = 0, LastModified: modified }: _Object): ListedObject {
  const sizeBytes = Number.isSafeInteger(size) && size >= 0 ? size : 0
  const saidMs = modified?.getTime() ?? 0
  const modifiedMs = saidMs >= 0 && saidMs <= modifiedMsMax ? saidMs : 0
  return { key, etag: etagOf(etag) ?? substituteEtag(undefined, modifiedMs, sizeBytes), sizeBytes, modifiedMs }
}
