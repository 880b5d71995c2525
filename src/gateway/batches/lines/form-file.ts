/** Reads the one file of a multipart form as it arrives. */
import { once } from 'node:events'
import busboy from 'busboy'
import type { BodyStream } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'

const fieldMaxBytes = 4096
const fieldsMax = 16
/** The most bytes of a form beside its file, with what waits to be read. Parts without a name would cost time and are counted by nobody else. */
const otherMaxBytes = 1024 * 1024

/** A form whose file is read while it arrives. Its fields are known after the file. */
export interface FormFileStream {
  readonly file: AsyncIterable<Uint8Array>
  /** Resolves with the fields when the whole form has arrived. Read the file before. Rejects with the refusals of the form. */
  fields(): Promise<ReadonlyMap<string, string>>
  /** Forgets the rest of the form. */
  drop(): void
}

/** Begins to read a form. Throws `unsupported_media_type`. The form may have one file, named "file". */
export async function formFileOf({ contentType, pieces }: BodyStream): Promise<FormFileStream> {
  if (!/^multipart\/form-data\s*;/i.test(contentType)) throw fail('unsupported_media_type', { message: 'This endpoint takes multipart/form-data.' })
  const parser = parserOf(contentType)
  const fields = new Map<string, string>()
  const ended = deferred<ReadonlyMap<string, string>>()
  const file = deferred<AsyncIterable<Uint8Array>>()
  const read: ReadSoFar = { fileBytes: 0, refusal: null }
  const refuse = (error: unknown): void => {
    // The first refusal is the cause of everything that follows from it.
    read.refusal ??= error
    file.reject(error)
    ended.reject(error)
    parser.destroy(error instanceof Error ? error : undefined)
  }
  // Both are awaited later, or never when the first of them has failed.
  ended.promise.catch(() => {})
  file.promise.catch(() => {})
  parser.on('field', (name, value, { valueTruncated }) => {
    if (valueTruncated) refuse(fail('payload_too_large', { message: `A text field is larger than ${fieldMaxBytes} bytes.` }))
    else if (name !== undefined) fields.set(name, value ?? '')
  })
  parser.on('file', (name, stream) => {
    // Whoever reads the file gets its error. A file that is not read yet has no other listener, and an error without one ends the process.
    stream.on('error', () => {})
    if (name === 'file') return file.resolve(counted(stream, read))
    stream.resume()
    refuse(fail('bad_request', { message: 'The form has one file, named "file".' }))
  })
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
    parser.on(limit, () => refuse(fail('bad_request', { message: `The form has one file and at most ${fieldsMax} fields.` })))
  parser.on('error', cause => refuse(read.refusal ?? malformed(cause)))
  parser.on('close', () => {
    file.reject(fail('bad_request', { message: 'The form has no file named "file".' }))
    ended.resolve(fields)
  })
  void feed(parser, pieces, read).catch(refuse)
  return { file: await file.promise, fields: () => ended.promise, drop: () => void parser.destroy() }
}

function parserOf(contentType: string): busboy.Busboy {
  try {
    return busboy({ headers: { 'content-type': contentType }, limits: { files: 1, fields: fieldsMax, parts: fieldsMax + 1, fieldSize: fieldMaxBytes } })
  } catch (cause) {
    throw fail('bad_request', { message: 'The multipart form has no boundary.', cause })
  }
}

interface ReadSoFar {
  fileBytes: number
  /** Why the form was refused. Null until then. */
  refusal: unknown
}

const malformed = (cause: unknown): Error => fail('bad_request', { message: 'The multipart form is not well formed.', cause })

async function* counted(stream: AsyncIterable<Uint8Array>, read: ReadSoFar): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of stream) {
      read.fileBytes += piece.length
      yield piece
    }
  } catch (cause) {
    // The parser ends the file with an error of its own. The refusal says what is wrong.
    throw read.refusal ?? malformed(cause)
  }
}

/** Passes the pieces on, and waits while the reader of the file has enough. */
async function feed(parser: busboy.Busboy, pieces: AsyncIterable<Buffer>, read: ReadSoFar): Promise<void> {
  let bytes = 0
  for await (const piece of pieces) {
    if (parser.destroyed) return
    bytes += piece.length
    if (bytes - read.fileBytes > otherMaxBytes + piece.length)
      throw fail('bad_request', { message: `The form has more than ${otherMaxBytes} bytes beside its file.` })
    if (!parser.write(piece)) await roomIn(parser)
  }
  parser.end()
}

/** Waits until the parser has room again, or is closed. */
async function roomIn(parser: busboy.Busboy): Promise<void> {
  const stop = new AbortController()
  try {
    await Promise.race(['drain', 'close'].map(event => once(parser, event, { signal: stop.signal }).catch(() => undefined)))
  } finally {
    stop.abort()
  }
}

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

function deferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => {}
  let reject: Deferred<T>['reject'] = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
