import busboy from 'busboy'
import type { Form, FormFile } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import { BoundaryCount } from './boundaries.ts'
import { GatheredPieces } from './gathered-pieces.ts'
import { tooLarge } from './request-body.ts'

/** Maximum number of files, of text fields, and of bytes in a text field. */
const partsMax = 64
const fieldMaxBytes = 1024 * 1024
/** Maximum number of boundaries: one before each part, and the last. */
const boundariesMax = 2 * partsMax + 1

/** What happens while the parts of a form are read. Nothing is called after `drop`. */
export interface FormEvents {
  /** The form is malformed or beyond a bound. */
  refuse(error: Error): void
  /** The parser has room again. */
  room(): void
  done(form: Form): void
}

/** The parts of one form, which arrives in pieces. They are the only place that keeps its bytes. */
export class FormParts {
  readonly #events: FormEvents
  readonly #boundaries: BoundaryCount
  readonly #gathered: GatheredPieces
  readonly #fileMaxBytes: number
  /** Null after `drop`. */
  #parser: busboy.Busboy | null
  #fields: { name: string; value: string }[] = []
  #files: FormFile[] = []

  constructor(boundary: string, fileMaxBytes: number, events: FormEvents) {
    this.#events = events
    this.#fileMaxBytes = fileMaxBytes
    // The limits of the parser do not count parts without a name, although each of them costs microseconds.
    this.#boundaries = new BoundaryCount(boundary)
    this.#gathered = new GatheredPieces(bytes => this.#parse(bytes))
    const limits = { files: partsMax, fields: partsMax, fileSize: fileMaxBytes, fieldSize: fieldMaxBytes }
    this.#parser = this.#listening(busboy({ headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` }, limits, defParamCharset: 'utf8' }))
  }

  /** Adds a piece. Returns false when the sender must wait for `room`. */
  add(piece: Buffer): boolean {
    this.#gathered.add(piece)
    return this.#parser?.writableNeedDrain !== true
  }

  /** The form has arrived completely. */
  end(): void {
    this.#gathered.flush()
    this.#parser?.end()
  }

  /** Forgets all bytes of the form. A refused form may stay open for minutes, and its room is given back before. Decision 0660 says why. */
  drop(): void {
    const parser = this.#parser
    this.#parser = null
    this.#fields = []
    this.#files = []
    this.#gathered.drop()
    // Nothing else refers to the parser. It is not destroyed, because it may be in the middle of a piece: its file would then report an error to nobody.
    parser?.removeAllListeners()
    parser?.on('error', () => {})
  }

  #parse(bytes: Buffer): void {
    if (this.#parser === null) return
    if (this.#boundaries.add(bytes) > boundariesMax) this.#events.refuse(tooManyParts())
    else this.#parser.write(bytes)
  }

  #listening(parser: busboy.Busboy): busboy.Busboy {
    const { room, done, refuse } = this.#events
    parser.on('drain', room)
    parser.on('field', (name: string | undefined, value: string | undefined, { valueTruncated }) => {
      if (valueTruncated) return refuse(fail('payload_too_large', { message: `A text field is larger than ${fieldMaxBytes} bytes.` }))
      // The parser gives no value when it does not know the charset. The name is missing when the part has only `name*=`.
      if (name === undefined) return refuse(nameless())
      if (value === undefined) return refuse(fail('bad_request', { message: 'A text field is written in a charset that is not known here; send UTF-8.' }))
      this.#fields.push({ name, value })
    })
    parser.on('file', (field: string | undefined, stream, { filename, mimeType }) => {
      if (field === undefined) {
        stream.resume()
        return refuse(nameless())
      }
      const pieces = new BodyPieces()
      stream.on('data', (chunk: Buffer) => pieces.add(chunk))
      stream.on('limit', () => refuse(tooLarge(this.#fileMaxBytes, 'upload')))
      stream.on('error', cause => refuse(malformed(cause)))
      stream.on('close', () => {
        if (this.#parser !== null) this.#files.push({ field, filename: filename ?? '', contentType: mimeType, bytes: pieces.joined() })
      })
    })
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) parser.on(limit, () => refuse(tooManyParts()))
    parser.on('error', cause => refuse(malformed(cause)))
    parser.on('close', () => done({ fields: this.#fields, files: this.#files }))
    return parser
  }
}

const malformed = (cause: unknown): Error => fail('bad_request', { message: 'The multipart form is not well formed.', cause })
const tooManyParts = (): Error => fail('bad_request', { message: `A form may have at most ${partsMax} parts of a sort.` })
const nameless = (): Error => fail('bad_request', { message: 'A part of the form has no name.' })
