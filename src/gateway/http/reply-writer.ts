import type { ServerResponse } from 'node:http'
import { type AnyRow, Reply, type ReplyBody } from '../../platform/endpoint.ts'
import { type GatewayError, toGatewayError } from '../../platform/errors.ts'
import { messagesErrorBody } from '../wire/messages/error-body.ts'
import { notStored, oauthErrorBody } from './oauth-wire.ts'
import type { OpenStreams } from './open-streams.ts'

const jsonType = 'application/json; charset=utf-8'

/** JSON text of a value; a bigint becomes a number (amounts on the wire are safe integers or ₹). */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, v: unknown) => (typeof v === 'bigint' ? Number(v) : v))
}

/**
 * Writes what a handler returned: a Reply as it says, any other value as JSON with the row's status, with `x-request-id` on top.
 * Resolves when the last byte is handed over.
 */
export function writeReply(response: ServerResponse, value: unknown, status: number, requestId: string, streams: OpenStreams): void | Promise<void> {
  if (!(value instanceof Reply)) return writeJson(response, status, requestId, {}, value ?? null)
  // What caches on the way may keep carries nobody's cookie.
  if (value.headers['cache-control']?.startsWith('public')) response.removeHeader('set-cookie')
  // Behind the device cookie, which may have been set before.
  for (const cookie of value.cookies) response.appendHeader('set-cookie', cookie)
  switch (value.body.kind) {
    case 'json':
      return writeJson(response, value.status, requestId, value.headers, value.body.value)
    case 'bytes':
      writeHead(response, value.status, requestId, value.headers, value.body.bytes.byteLength)
      response.end(value.body.bytes)
      return
    case 'empty':
      // The length in a 304 would be that of the body which the client keeps.
      writeHead(response, value.status, requestId, value.headers, value.status === 304 ? null : 0)
      response.end()
      return
    case 'stream':
      writeHead(response, value.status, requestId, value.headers, null)
      response.flushHeaders()
      return writeStream(response, value.body, streams)
  }
}

/** A flat list without an earlier setHeader goes out as it is; an object, or merging with headers set before, costs Node several microseconds. */
function writeHead(response: ServerResponse, status: number, requestId: string, headers: Readonly<Record<string, string>>, sizeBytes: number | null): void {
  const list = ['x-request-id', requestId]
  for (const name in headers) list.push(name, headers[name] ?? '')
  if (sizeBytes !== null) list.push('content-length', String(sizeBytes))
  response.writeHead(status, list)
}

function writeJson(response: ServerResponse, status: number, requestId: string, headers: Readonly<Record<string, string>>, value: unknown): void {
  const text = jsonText(value)
  writeHead(response, status, requestId, { 'content-type': jsonType, ...headers }, Buffer.byteLength(text))
  response.end(text)
}

type StreamBody = Extract<ReplyBody, { kind: 'stream' }>

/** Chunks with backpressure. When the client goes away the iterator's `return()` runs, which is where a call is settled. */
async function writeStream(response: ServerResponse, { chunks, keepAlive }: StreamBody, streams: OpenStreams): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]()
  let gone = response.destroyed
  let wake = (): void => {}
  const onClose = (): void => {
    gone = true
    wake()
  }
  // One listener each for the whole stream: one a wait would pile up for as long as the stream lasts.
  const onDrain = (): void => wake()
  response.once('close', onClose)
  response.on('drain', onDrain)
  const stream = keepAlive === undefined ? null : streams.open(response, keepAlive)
  try {
    for (;;) {
      const next = await iterator.next()
      if (next.done) break
      if (gone) break
      if (stream !== null) stream.silentTicks = 0
      if (!response.write(next.value) && !gone) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      if (gone) break
    }
  } catch (error) {
    // Headers are out: the only honest end of a body that broke is a broken connection.
    response.destroy()
    throw error
  } finally {
    if (stream !== null) streams.close(stream)
    response.off('close', onClose)
    response.off('drain', onDrain)
    await iterator.return?.()
  }
  if (!gone) response.end()
}

/** Writes the error envelope, beside the headers that were set before. After the headers are out nothing can be said any more and the connection is closed. */
export function writeError(response: ServerResponse, thrown: unknown, row: Pick<AnyRow, 'clients'> = {}): GatewayError {
  const error = toGatewayError(thrown)
  if (response.headersSent) {
    response.destroy()
    return error
  }
  const text = jsonText(errorBody(error, row))
  const stored = row.clients === 'oauth' ? notStored : {}
  response.writeHead(error.status, { 'content-type': jsonType, ...stored, ...error.toHeaders(), 'content-length': String(Buffer.byteLength(text)) })
  response.end(text)
  return error
}

function errorBody(error: GatewayError, { clients }: Pick<AnyRow, 'clients'>): unknown {
  switch (clients) {
    case 'anthropic':
      return messagesErrorBody(error.toBody(), error.status)
    case 'oauth':
      return oauthErrorBody(error)
    case undefined:
      return error.toBody()
  }
}
