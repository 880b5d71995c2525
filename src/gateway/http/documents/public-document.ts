import { createHash } from 'node:crypto'
import { type Reply, reply } from '../../../platform/endpoint.ts'

interface Made {
  readonly baseUrl: string
  readonly bytes: Buffer
  readonly etag: string
}

/**
 * A public document that does not change until the next start. It is made once and then served from memory. A reader who already has it gets 304. The
 * document depends only on the configured base URL, so one copy is enough.
 */
export class PublicDocument {
  readonly #make: (baseUrl: string) => string
  #made: Made | null = null

  constructor(make: (baseUrl: string) => string) {
    this.#make = make
  }

  /** Returns the document, or 304 when `ifNoneMatch` names its ETag. Both replies carry `headers`. */
  reply(baseUrl: string, ifNoneMatch: string | undefined, contentType: string, headers: Readonly<Record<string, string>>): Reply {
    const { bytes, etag } = this.#of(baseUrl)
    const known = ifNoneMatch?.split(',').map(tag => tag.trim().replace(/^W\//, ''))
    if (known?.includes(etag) === true || ifNoneMatch?.trim() === '*') return reply.empty(304, { ...headers, etag })
    return reply.bytes(bytes, { ...headers, etag, 'content-type': contentType })
  }

  #of(baseUrl: string): Made {
    if (this.#made?.baseUrl === baseUrl) return this.#made
    const bytes = Buffer.from(this.#make(baseUrl))
    const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
    this.#made = { baseUrl, bytes, etag }
    return this.#made
  }
}
