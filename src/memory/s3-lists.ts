/** What an S3 store answers in XML, lists above all: through the AWS SDK, which no other file knows. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { pipeline, Transform } from 'node:stream'
import { type _Object, GetBucketVersioningCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { BodyTooLargeError } from '../platform/upstream-body.ts'
import { compareKeys, type ListedObject, type ListOptions, type ListPage, listPageMax, ObjectStoreError } from './object-store.ts'
import { etagOf, substituteEtag } from './s3-etags.ts'
import type { S3ClientOptions } from './s3-options.ts'

/** A thousand of the longest keys, escaped, with what else is said of them. */
const replyMaxBytes = 8 * 1024 * 1024

export class S3Lists {
  readonly #client: S3Client
  readonly #bucket: string

  constructor({ endpoint, bucket, region, accessKey, secretKey, timeoutMs, connectTimeoutMs, socketsMax, attemptsMax, lookup }: S3ClientOptions) {
    // The time of the agents is that of idle sockets.
    const agentOptions = { keepAlive: true, maxSockets: socketsMax, lookup, timeout: timeoutMs }
    this.#bucket = bucket
    this.#client = new S3Client({
      endpoint,
      region,
      forcePathStyle: true,
      credentials: { accessKeyId: accessKey.reveal(), secretAccessKey: secretKey.reveal() },
      maxAttempts: attemptsMax,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: new BoundedHandler({
        connectionTimeout: connectTimeoutMs,
        requestTimeout: timeoutMs,
        throwOnRequestTimeout: true,
        httpAgent: new HttpAgent(agentOptions),
        httpsAgent: new HttpsAgent(agentOptions),
      }),
    })
  }

  /** One page. Throws errors of the SDK, and ObjectStoreError for a list that does not go on: who follows its pages would never come to an end. */
  async page({ prefix, limit = listPageMax, startAfter }: ListOptions, abortSignal: AbortSignal): Promise<ListPage> {
    const command = new ListObjectsV2Command({
      Bucket: this.#bucket,
      Prefix: prefix,
      MaxKeys: Math.min(limit, listPageMax),
      ...(startAfter === undefined ? {} : { StartAfter: startAfter }),
    })
    const page = await this.#client.send(command, { abortSignal })
    const objects = (page.Contents ?? []).map(listedOf)
    const next = page.IsTruncated === true ? (objects.at(-1)?.key ?? null) : null
    if (next !== null && startAfter !== undefined && compareKeys(next, startAfter) <= 0)
      throw new ObjectStoreError('unavailable', 'the list of the store does not go on')
    return { objects, next }
  }

  /** Throws errors of the SDK. */
  async versioning(abortSignal: AbortSignal): Promise<'on' | 'suspended' | 'off'> {
    const { Status } = await this.#client.send(new GetBucketVersioningCommand({ Bucket: this.#bucket }), { abortSignal })
    return Status === 'Enabled' ? 'on' : Status === 'Suspended' ? 'suspended' : 'off'
  }

  close(): void {
    this.#client.destroy()
  }
}

/** Ends replies that are longer than any sensible one: the SDK takes them whole. */
class BoundedHandler extends NodeHttpHandler {
  override async handle(...call: Parameters<NodeHttpHandler['handle']>): ReturnType<NodeHttpHandler['handle']> {
    const { response } = await super.handle(...call)
    let bytes = 0
    const bound = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        done(bytes > replyMaxBytes ? new BodyTooLargeError(`the reply is larger than ${replyMaxBytes} bytes`) : null, chunk)
      },
    })
    // The SDK reads the other end, and hears of a failure there.
    response.body = pipeline(response.body, bound, () => {})
    return { response }
  }
}

/** One entry of a list; what no store means to say of an object counts as not said. */
function listedOf({ Key: key = '', ETag: etag, Size: size = 0, LastModified: modified }: _Object): ListedObject {
  const sizeBytes = Number.isSafeInteger(size) && size >= 0 ? size : 0
  const modifiedMs = modified?.getTime() ?? 0
  return { key, etag: etagOf(etag) ?? substituteEtag(undefined, modifiedMs, sizeBytes), sizeBytes, modifiedMs }
}
