/** JSON that is the same for every caller and that HTTP caches may keep. Its bytes are made once and have a strong ETag. */
import { createHash, type Hash } from 'node:crypto'
import { z } from 'zod'
import { type Reply, reply } from './endpoint.ts'

export interface PublicPage {
  readonly bytes: Buffer
  /** The strong ETag with its quotes. It is a digest of what the bytes are made of, so it is the same in every process. */
  readonly etag: string
  /** How long caches may use the page without a new request. */
  readonly maxAgeSeconds: number
}

/** The `input.headers` of a row that returns such a page. */
export const pageHeaders = z.object({
  'if-none-match': z.string().optional().describe('ETag of the copy that the caller has; 304 without a body when it still holds.'),
})

/** Makes the bytes and the ETag of a value. */
export function publicPage(value: unknown, maxAgeSeconds: number): PublicPage {
  const bytes = Buffer.from(JSON.stringify(value))
  return { bytes, etag: etagOf(createHash('sha256').update(bytes)), maxAgeSeconds }
}

/** Returns the ETag of a digest. */
export function etagOf(hash: Hash): string {
  return `"${hash.digest('base64url').slice(0, 27)}"`
}

/**
 * Returns 200 with the page, or 304 when If-None-Match contains its ETag. With `isPublic` false, only the caller's own cache may keep it.
 */
export function replyWithPage(page: PublicPage, ifNoneMatch: string | undefined, isPublic = true): Reply {
  const { etag, maxAgeSeconds } = page
  // Anybody may have written the content, so a browser must not interpret it as a page.
  const headers = { etag, 'x-content-type-options': 'nosniff', 'cache-control': `${isPublic ? 'public' : 'private'}, max-age=${maxAgeSeconds}` }
  if (namesEtag(ifNoneMatch, etag)) return reply.empty(304, headers)
  return reply.bytes(page.bytes, { 'content-type': 'application/json; charset=utf-8', ...headers })
}

/** Returns whether If-None-Match contains the ETag. Weak ones count as strong (RFC 9110, 13.1.2), and `*` matches all. */
export function namesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const strong = etag.replace(/^W\//, '')
  return ifNoneMatch.split(',').some(part => {
    const named = part.trim()
    return named === '*' || named.replace(/^W\//, '') === strong
  })
}
