/**
 * An S3 server for tests, in memory. It verifies SigV4 signatures in headers, performs conditional writes under a mutex for each key, and supports
 * ListObjectsV2. Switches let it act as an old, slow or broken store.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { crc32 } from 'node:zlib'

export interface S3Faults {
  /** Conditional PUT and DELETE get 501, as older stores answer. */
  noConditions: boolean
  /** Conditions are ignored silently, as careless stores do. */
  ignoreConditions: boolean
  /** CopyObject gets 501. */
  noCopy: boolean
  /** Connections are closed before the request is processed. */
  down: boolean
  /** The next writes are performed, but then their connections are closed. This is their number, which counts down to 0. */
  lostReplies: number
  /** Number of conditional writes that get 409 ConditionalRequestConflict. */
  conflicts: number
  /** Number of calls that get 503 SlowDown. */
  slowDowns: number
  /** The region of the bucket. A request that is signed for another region gets 301 (GET, HEAD) or 400. Null accepts any region. */
  region: string | null
  /** If set, it is called first for every request. It returns true when it has sent the answer itself. */
  answer: ((request: IncomingMessage, response: ServerResponse, url: URL) => boolean) | null
  /** Awaited before each write is performed, so that a test can delay a write. */
  beforeWrite: (key: string) => Promise<void>
}

export interface S3Object {
  readonly bytes: Buffer
  readonly etag: string
  readonly modified: Date
  readonly contentType: string
  readonly metadata: Readonly<Record<string, string>>
  /** The KMS key of the write. Null means the default of the bucket. */
  readonly kmsKeyId?: string | null
}

/** Temporary keys, as STS issues them. */
export interface S3Session {
  readonly secretKey: string
  readonly token: string
  readonly endMs: number
}

export interface S3TestServer {
  readonly endpoint: string
  readonly hostPort: string
  readonly bucket: string
  readonly accessKey: string
  readonly secretKey: string
  readonly faults: S3Faults
  /** Temporary keys that are valid in addition to `accessKey`, by their id. */
  readonly sessions: Map<string, S3Session>
  /** The objects of the bucket. A test may change them directly. */
  readonly objects: Map<string, S3Object>
  readonly requests: { readonly method: string; readonly key: string; readonly headers: IncomingMessage['headers'] }[]
  put(key: string, text: string | Uint8Array): void
  close(): Promise<void>
}

class S3Fault extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

const accessKey = 'TESTACCESSKEY0001'
const secretKey = 'test/secret+key'

export async function startS3Server(bucket = 'memory'): Promise<S3TestServer> {
  const objects = new Map<string, S3Object>()
  const requests: S3TestServer['requests'] = []
  const sessions = new Map<string, S3Session>()
  const faults: S3Faults = {
    noConditions: false,
    ignoreConditions: false,
    noCopy: false,
    down: false,
    lostReplies: 0,
    conflicts: 0,
    slowDowns: 0,
    region: null,
    answer: null,
    beforeWrite: async () => {},
  }
  const tails = new Map<string, Promise<unknown>>()
  const inTurn = <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const mine = (tails.get(key) ?? Promise.resolve()).then(work)
    tails.set(
      key,
      mine.catch(() => {}),
    )
    return mine
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const url = new URL(request.url ?? '/', 'http://s3')
    const isVirtual = (request.headers.host ?? '').startsWith(`${bucket}.`)
    const [, first = '', ...rest] = isVirtual ? ['', bucket, ...url.pathname.split('/').slice(1)] : url.pathname.split('/')
    const key = decodeURIComponent(rest.join('/'))
    requests.push({ method: request.method ?? '', key, headers: request.headers })
    if (faults.answer?.(request, response, url) === true) return
    if (faults.down) return void request.socket.destroy()
    if (faults.slowDowns > 0) {
      faults.slowDowns--
      throw new S3Fault(503, 'SlowDown')
    }
    const region = verifySignature(request, url, body, sessions)
    if (faults.region !== null && region !== faults.region) return elsewhere(request, response, faults.region)
    if (decodeURIComponent(first) !== bucket) throw new S3Fault(404, 'NoSuchBucket')
    if (key === '') return bucketCall(request, url, body, objects, response)
    const isWrite = request.method === 'PUT' || request.method === 'DELETE'
    if (!isWrite) return readCall(request, objects.get(key), response)
    verifyChecksum(request, body)
    await inTurn(key, async () => {
      await faults.beforeWrite(key)
      checkConditions(request, objects.get(key), faults)
      const source = request.headers['x-amz-copy-source']
      if (request.method === 'DELETE') objects.delete(key)
      else if (source !== undefined) objects.set(key, copyOf(request, String(source), bucket, objects, faults))
      else objects.set(key, objectFrom(request, body))
    })
    if (faults.lostReplies > 0) {
      faults.lostReplies--
      return void request.socket.destroy()
    }
    if (request.method === 'DELETE') return void response.writeHead(204).end()
    const etag = objects.get(key)?.etag ?? ''
    if (request.headers['x-amz-copy-source'] !== undefined)
      return void response
        .writeHead(200, { 'content-type': 'application/xml' })
        .end(`<?xml version="1.0" encoding="UTF-8"?><CopyObjectResult><ETag>${escapeXml(etag)}</ETag></CopyObjectResult>`)
    response.writeHead(200, { etag }).end()
  }
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      const fault = error instanceof S3Fault ? error : new S3Fault(500, 'InternalError')
      const text = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${fault.code}</Code><Message>${fault.code}</Message></Error>`
      if (!response.headersSent) response.writeHead(fault.status, { 'content-type': 'application/xml' }).end(request.method === 'HEAD' ? undefined : text)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const hostPort = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    endpoint: `http://${hostPort}`,
    hostPort,
    bucket,
    accessKey,
    secretKey,
    faults,
    objects,
    sessions,
    requests,
    put: (key, text) =>
      void objects.set(key, { bytes: Buffer.from(text), etag: etagOf(Buffer.from(text)), modified: new Date(), contentType: 'text/plain', metadata: {} }),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function etagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`
}

function objectFrom(request: IncomingMessage, bytes: Buffer): S3Object {
  const metadata: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) if (name.startsWith('x-amz-meta-')) metadata[name.slice('x-amz-meta-'.length)] = String(value)
  const isKms = request.headers['x-amz-server-side-encryption'] === 'aws:kms'
  const kmsKeyId = isKms ? String(request.headers['x-amz-server-side-encryption-aws-kms-key-id'] ?? 'aws/s3') : null
  // With KMS encryption, the etag is not a hash of the sent bytes.
  const etag = isKms ? `"${randomBytes(16).toString('hex')}"` : etagOf(bytes)
  return { bytes, etag, modified: new Date(), contentType: request.headers['content-type'] ?? 'binary/octet-stream', metadata, kmsKeyId }
}

/** Performs CopyObject with the metadata of the source, if the condition on the source holds. */
function copyOf(request: IncomingMessage, source: string, bucket: string, objects: ReadonlyMap<string, S3Object>, faults: S3Faults): S3Object {
  if (faults.noCopy) throw new S3Fault(501, 'NotImplemented')
  const path = decodeURIComponent(source).replace(/^\//, '')
  const found = path.startsWith(`${bucket}/`) ? objects.get(path.slice(bucket.length + 1)) : undefined
  if (found === undefined) throw new S3Fault(404, 'NoSuchKey')
  const ifMatch = request.headers['x-amz-copy-source-if-match']
  if (ifMatch !== undefined && !faults.ignoreConditions && found.etag !== ifMatch) throw new S3Fault(412, 'PreconditionFailed')
  return { ...found, modified: new Date(), kmsKeyId: objectFrom(request, found.bytes).kmsKeyId ?? null }
}

function checkConditions(request: IncomingMessage, current: S3Object | undefined, faults: S3Faults): void {
  const ifMatch = request.headers['if-match']
  const ifNoneMatch = request.headers['if-none-match']
  if (ifMatch === undefined && ifNoneMatch === undefined) return
  if (faults.noConditions) throw new S3Fault(501, 'NotImplemented')
  if (faults.ignoreConditions) return
  if (faults.conflicts > 0) {
    faults.conflicts--
    throw new S3Fault(409, 'ConditionalRequestConflict')
  }
  if (ifNoneMatch === '*' && current !== undefined) throw new S3Fault(412, 'PreconditionFailed')
  if (ifNoneMatch !== undefined && ifNoneMatch !== '*') throw new S3Fault(501, 'NotImplemented')
  if (ifMatch !== undefined && current === undefined) throw new S3Fault(404, 'NoSuchKey')
  if (ifMatch !== undefined && current?.etag !== ifMatch) throw new S3Fault(412, 'PreconditionFailed')
}

function readCall(request: IncomingMessage, found: S3Object | undefined, response: ServerResponse): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new S3Fault(405, 'MethodNotAllowed')
  if (found === undefined) throw new S3Fault(404, 'NoSuchKey')
  if (request.headers['if-none-match'] === found.etag) return void response.writeHead(304, { etag: found.etag }).end()
  const meta = Object.fromEntries(Object.entries(found.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]))
  const headers = { ...meta, etag: found.etag, 'last-modified': found.modified.toUTCString(), 'content-type': found.contentType, 'accept-ranges': 'bytes' }
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
  if (range) {
    const from = Number(range[1])
    const to = Math.min(range[2] === '' ? Number.POSITIVE_INFINITY : Number(range[2]), found.bytes.length - 1)
    if (from > to) throw new S3Fault(416, 'InvalidRange')
    const part = found.bytes.subarray(from, to + 1)
    return void response.writeHead(206, { ...headers, 'content-length': part.length, 'content-range': `bytes ${from}-${to}/${found.bytes.length}` }).end(part)
  }
  response.writeHead(200, { ...headers, 'content-length': found.bytes.length }).end(request.method === 'HEAD' ? undefined : found.bytes)
}

function bucketCall(request: IncomingMessage, url: URL, body: Buffer, objects: Map<string, S3Object>, response: ServerResponse): void {
  const send = (xml: string): ServerResponse =>
    response.writeHead(200, { 'content-type': 'application/xml' }).end(`<?xml version="1.0" encoding="UTF-8"?>${xml}`)
  if (request.method === 'POST' && url.searchParams.has('delete')) {
    const keys = [...body.toString('utf8').matchAll(/<Key>([^<]*)<\/Key>/g)].map(match => unescapeXml(match[1] ?? ''))
    for (const key of keys) objects.delete(key)
    send(`<DeleteResult>${keys.map(key => `<Deleted><Key>${escapeXml(key)}</Key></Deleted>`).join('')}</DeleteResult>`)
    return
  }
  if (request.method !== 'GET' || url.searchParams.get('list-type') !== '2') throw new S3Fault(501, 'NotImplemented')
  send(listXml(url.searchParams, objects))
}

function listXml(query: URLSearchParams, objects: Map<string, S3Object>): string {
  const prefix = query.get('prefix') ?? ''
  const delimiter = query.get('delimiter') ?? ''
  const token = query.get('continuation-token')
  const after = token === null ? (query.get('start-after') ?? '') : Buffer.from(token, 'base64url').toString('utf8')
  const maxKeys = Math.min(Number(query.get('max-keys') ?? 1000), 1000)
  const keys = [...objects.keys()]
    .filter(key => key.startsWith(prefix) && Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0)
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const parts: { text: string; last: string }[] = []
  const groups = new Set<string>()
  for (const key of keys) {
    const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    if (cut < 0) {
      const found = objects.get(key)
      if (found)
        parts.push({
          last: key,
          text: `<Contents><Key>${escapeXml(key)}</Key><LastModified>${found.modified.toISOString()}</LastModified><ETag>${escapeXml(found.etag)}</ETag><Size>${found.bytes.length}</Size></Contents>`,
        })
      continue
    }
    const group = key.slice(0, cut + delimiter.length)
    if (groups.has(group) || after.startsWith(group)) continue
    groups.add(group)
    parts.push({ last: `${group}\u{10ffff}`, text: `<CommonPrefixes><Prefix>${escapeXml(group)}</Prefix></CommonPrefixes>` })
  }
  const page = parts.slice(0, maxKeys)
  const isTruncated = parts.length > page.length
  const next = isTruncated ? `<NextContinuationToken>${Buffer.from(page.at(-1)?.last ?? '').toString('base64url')}</NextContinuationToken>` : ''
  return `<ListBucketResult><Prefix>${escapeXml(prefix)}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${maxKeys}</MaxKeys><IsTruncated>${isTruncated}</IsTruncated>${next}${page.map(part => part.text).join('')}</ListBucketResult>`
}

/** Verifies AWS Signature Version 4 in the headers of a request. */
function verifySignature(request: IncomingMessage, url: URL, body: Buffer, sessions: ReadonlyMap<string, S3Session>): string {
  const match = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
    request.headers.authorization ?? '',
  )
  if (!match) throw new S3Fault(403, 'AccessDenied')
  const [, id = '', date = '', region = '', signedHeaders = '', signature = ''] = match
  const session = sessions.get(id)
  if (id !== accessKey && session === undefined) throw new S3Fault(403, 'InvalidAccessKeyId')
  const sentToken = request.headers['x-amz-security-token']
  if (sentToken !== session?.token || (session !== undefined && !signedHeaders.split(';').includes('x-amz-security-token')))
    throw new S3Fault(400, 'InvalidToken')
  if (session !== undefined && session.endMs <= Date.now()) throw new S3Fault(400, 'ExpiredToken')
  const payloadHash = String(request.headers['x-amz-content-sha256'] ?? '')
  if (/^STREAMING-/.test(payloadHash)) throw new S3Fault(501, 'NotImplemented')
  if (payloadHash !== 'UNSIGNED-PAYLOAD' && payloadHash !== sha256(body)) throw new S3Fault(400, 'XAmzContentSHA256Mismatch')
  const query = [...url.searchParams]
    .map(([name, value]) => [uriEncode(name), uriEncode(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : 1))
    .map(pair => pair.join('='))
    .join('&')
  const headers = signedHeaders
    .split(';')
    .map(
      name =>
        `${name}:${String(request.headers[name] ?? '')
          .trim()
          .replace(/ +/g, ' ')}\n`,
    )
    .join('')
  const path = (request.url ?? '').split('?')[0] ?? ''
  const canonical = [request.method, path, query, headers, signedHeaders, payloadHash].join('\n')
  const stamp = String(request.headers['x-amz-date'] ?? '')
  const toSign = ['AWS4-HMAC-SHA256', stamp, `${date}/${region}/s3/aws4_request`, sha256(Buffer.from(canonical))].join('\n')
  const key = [date, region, 's3', 'aws4_request'].reduce<Buffer>((secret, part) => hmac(secret, part), Buffer.from(`AWS4${session?.secretKey ?? secretKey}`))
  if (!timingSafeEqual(hmac(key, toSign), Buffer.from(signature, 'hex'))) throw new S3Fault(403, 'SignatureDoesNotMatch')
  return region
}

/** Answers as S3 does when the bucket is in another region. */
function elsewhere(request: IncomingMessage, response: ServerResponse, region: string): void {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const code = isRead ? 'PermanentRedirect' : 'AuthorizationHeaderMalformed'
  const text = `<Error><Code>${code}</Code><Region>${region}</Region></Error>`
  response.writeHead(isRead ? 301 : 400, { 'content-type': 'application/xml', ...(isRead ? { 'x-amz-bucket-region': region } : {}) })
  response.end(request.method === 'HEAD' ? undefined : text)
}

function verifyChecksum(request: IncomingMessage, body: Buffer): void {
  const sent = request.headers['x-amz-checksum-crc32']
  if (sent === undefined) return
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(body))
  if (sum.toString('base64') !== sent) throw new S3Fault(400, 'BadDigest')
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, char => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[char] ?? char)
}

function unescapeXml(text: string): string {
  return text.replace(/&(amp|lt|gt|quot);/g, (_all, name: string) => ({ amp: '&', lt: '<', gt: '>', quot: '"' })[name] ?? '')
}
