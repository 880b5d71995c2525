import type { ServerResponse } from 'node:http'
import { type AnyRow, Reply, type ReplyBody } from '../../../platform/endpoint.ts'
import { type GatewayError, toGatewayError } from '../../../platform/errors.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { geminiErrorBody } from '../../wire/gemini/reply/error-body.ts'
import { messagesErrorBody } from '../../wire/messages/reply/error-body.ts'
import { responsesErrorBody } from '../../wire/responses/reply/error-body.ts'
import { endsConnection, endWith } from '../linger.ts'
import { notStored, oauthErrorBody } from '../oauth-wire.ts'
import type { UnreadReplies, UnreadReply } from '../unread-replies.ts'
import type { OpenStreams } from './open-streams.ts'
import type { RateHeaders } from './rate-headers.ts'
import { ResponseSink } from './response-sink.ts'

const jsonType = 'application/json; charset=utf-8'

/** Returns the JSON text of a value. A bigint becomes a number, which is safe because amounts in replies are safe integers or in ₹. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, v: unknown) => (typeof v === 'bigint' ? Number(v) : v))
}

/** The parts that watch replies while they are written, and the headers that they add. */
export interface ReplyKeepers {
  readonly streams: OpenStreams
  readonly unread: UnreadReplies
  /** The headers of rates. */
  readonly rates: RateHeaders
}

/** The request and organisation of a reply. `orgId` is null for callers without an organisation. */
interface ReplyOwner {
  readonly requestId: string
  readonly orgId: number | null
  /** True for a caller with a cookie. Unlike a request with `authorization`, one with a cookie does not keep a shared cache from storing the reply. */
  readonly isBySession?: boolean
  /** The caller whose limits the headers of the reply show. Null or absent for replies that show none. */
  readonly limited?: BearerPrincipal | null
  /** The clients of the row, which decide the names of these headers. */
  readonly clients?: AnyRow['clients']
}

/** The headers of a reply to a person, unless it has its own. */
const notCached = { 'cache-control': 'no-store' } as const
const headersOf = (headers: Readonly<Record<string, string>>, { isBySession }: ReplyOwner): Readonly<Record<string, string>> =>
  isBySession === true ? { ...notCached, ...headers } : headers

/**
 * Writes the result of a handler, with `x-request-id`. A Reply is written as it is, and any other value as JSON with the row's status. Resolves when the
 * last byte has been passed to the socket.
 */
export function writeReply(response: ServerResponse, value: unknown, status: number, owner: ReplyOwner, keepers: ReplyKeepers): void | Promise<void> {
  if (!(value instanceof Reply)) return writeJson(response, status, {}, value ?? null, owner, keepers)
  // A reply that a public cache may store must not set a cookie.
  if (value.headers['cache-control']?.startsWith('public')) response.removeHeader('set-cookie')
  // These cookies come after the device cookie, which may already be set.
  for (const cookie of value.cookies) response.appendHeader('set-cookie', cookie)
  switch (value.body.kind) {
    case 'json':
      return writeJson(response, value.status, value.headers, value.body.value, owner, keepers)
    case 'bytes':
      writeHead(response, value.status, owner, headersOf(value.headers, owner), value.body.bytes.byteLength, keepers)
      return writeWhole(response, value.body.bytes, value.body.bytes.byteLength, owner, keepers)
    case 'empty':
      // The length in a 304 would be the length of the body that the client keeps.
      writeHead(response, value.status, owner, headersOf(value.headers, owner), value.status === 304 ? null : 0, keepers)
      response.end()
      return
    case 'stream':
      writeHead(response, value.status, owner, value.headers, null, keepers)
      return writeStream(response, value.body, owner, keepers)
  }
}

/**
 * Writes the head as a flat list, which Node.js sends unchanged when no header was set before. An object, or merging with earlier headers, would cost
 * several microseconds.
 */
function writeHead(
  response: ServerResponse,
  status: number,
  { requestId, limited, clients }: ReplyOwner,
  headers: Readonly<Record<string, string>>,
  sizeBytes: number | null,
  { rates }: ReplyKeepers,
): void {
  const list = ['x-request-id', requestId]
  for (const name in headers) list.push(name, headers[name] ?? '')
  if (limited !== null && limited !== undefined) rates.addTo(list, limited, clients === 'anthropic', headers)
  if (sizeBytes !== null) list.push('content-length', String(sizeBytes))
  response.writeHead(status, list)
}

function writeJson(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  value: unknown,
  owner: ReplyOwner,
  keepers: ReplyKeepers,
): void | Promise<void> {
  const text = jsonText(value)
  const sizeBytes = Buffer.byteLength(text)
  writeHead(response, status, owner, { 'content-type': jsonType, ...headersOf(headers, owner) }, sizeBytes, keepers)
  return writeWhole(response, text, sizeBytes, owner, keepers)
}

/** A large reply is written in pieces of this size, so that the gateway can measure how fast the client reads. */
const pieceBytes = 256 * 1024

/** Sends the body after the head. `unread` counts the bytes that the network does not take immediately. */
function writeWhole(
  response: ServerResponse,
  body: string | Uint8Array,
  sizeBytes: number,
  { orgId }: ReplyOwner,
  { unread }: ReplyKeepers,
): void | Promise<void> {
  if (sizeBytes > pieceBytes) return writePieces(response, typeof body === 'string' ? Buffer.from(body) : body, orgId, unread)
  response.end(body)
  if (response.writableLength > 0) unread.closeWhenSent(response, orgId)
}

async function writePieces(response: ServerResponse, bytes: Uint8Array, orgId: number | null, unread: UnreadReplies): Promise<void> {
  let waiting: UnreadReply | null = null
  try {
    for (let at = 0; at < bytes.byteLength && !response.destroyed; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes)
      const isTaken = response.write(piece)
      if (waiting !== null) waiting.handedBytes += piece.byteLength
      else if (!isTaken) waiting = unread.open(response, orgId, bytes.byteLength, piece.byteLength)
      if (!isTaken) await drained(response)
    }
  } finally {
    if (waiting !== null) unread.close(waiting)
  }
  if (response.destroyed) return
  response.end()
  if (response.writableLength > 0) unread.closeWhenSent(response, orgId)
}

/** Resolves when the socket has room again, or when the client has left. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const go = (): void => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    if (response.destroyed) resolve()
    else response.on('drain', go).on('close', go)
  })
}

type StreamBody = Extract<ReplyBody, { kind: 'stream' }>

/** Sends a stream with backpressure. When the client leaves, the stream's writer sees it at its next chunk, and settles the call. */
async function writeStream(response: ServerResponse, { pump, keepAlive }: StreamBody, { orgId }: ReplyOwner, { streams, unread }: ReplyKeepers): Promise<void> {
  const sink = new ResponseSink(response, orgId, unread)
  const stream = keepAlive === undefined ? null : streams.open(sink, keepAlive)
  try {
    const pumped = pump(sink)
    sink.start()
    await pumped
    await sink.end()
  } catch (error) {
    // The headers are sent, so breaking the connection is the only way to show that the body is incomplete.
    response.destroy()
    throw error
  } finally {
    if (stream !== null) streams.close(stream)
    sink.close()
  }
}

/**
 * Writes the error envelope and keeps headers that were set before. The client can read the error even while it still sends its request body. When the
 * headers of a reply are already sent, the connection is closed instead. Returns the error.
 */
export function writeError(response: ServerResponse, thrown: unknown, row: Pick<AnyRow, 'clients'> = {}): GatewayError {
  const error = toGatewayError(thrown)
  if (response.headersSent) {
    response.destroy()
    return error
  }
  const text = jsonText(errorBody(error, row))
  const stored = row.clients === 'oauth' ? notStored : {}
  const isLast = endsConnection(response.req)
  const closing = isLast ? { connection: 'close' } : {}
  response.writeHead(error.status, { 'content-type': jsonType, ...stored, ...error.toHeaders(), ...closing, 'content-length': String(Buffer.byteLength(text)) })
  endWith(response, text, isLast)
  return error
}

function errorBody(error: GatewayError, { clients }: Pick<AnyRow, 'clients'>): unknown {
  switch (clients) {
    case 'anthropic':
      return messagesErrorBody(error.toBody(), error.status)
    case 'gemini':
      return geminiErrorBody(error.toBody(), error.status, {
        mayRetry: error.toHeaders()['x-should-retry'] !== 'false',
        afterSeconds: error.options.retryAfterSeconds ?? null,
      })
    case 'responses':
      return responsesErrorBody(error.toBody(), error.toHeaders()['x-should-retry'] !== 'false')
    case 'oauth':
      return oauthErrorBody(error)
    case undefined:
      return error.toBody()
  }
}
