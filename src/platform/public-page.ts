/** JSON that is the same for everybody and may be kept by caches on the way: its bytes are made once, and named by a strong ETag. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type Reply, reply } from './endpoint.ts'

export interface PublicPage {
  readonly bytes: Buffer
  /** Strong, with its quotes: a digest of the bytes, so the same in every process. */
  readonly etag: string
  /** How long caches may use it without asking. */
  readonly maxAgeSeconds: number
}

/** What a row with such a page declares as `input.headers`. */
export const pageHeaders = z.object({
  'if-none-match': z.string().optional().describe('ETag of the copy that the caller has; 304 without a body when it still holds.'),
})

/** Bytes and ETag of a value. */
export function publicPage(value: unknown, maxAgeSeconds: number): PublicPage {
  const bytes = Buffer.from(JSON.stringify(value))
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`, maxAgeSeconds }
}

/** 200 with the page, or 304 when If-None-Match names it. `isPublic` false: only the caller's own cache may keep it. */
export function replyWithPage({ bytes, etag, maxAgeSeconds }: PublicPage, ifNoneMatch: string | undefined, isPublic = true): Reply {
  // Anybody may have written its content, so no browser may treat it as a page.
  const headers = { etag, 'x-content-type-options': 'nosniff', 'cache-control': `${isPublic ? 'public' : 'private'}, max-age=${maxAgeSeconds}` }
  if (namesEtag(ifNoneMatch, etag)) return reply.empty(304, headers)
  return reply.bytes(bytes, { 'content-type': 'application/json; charset=utf-8', ...headers })
}

/** Whether If-None-Match names that etag: weak ones count as strong (RFC 9110, 13.1.2), `*` names all. */
export function namesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const strong = etag.replace(/^W\//, '')
  return ifNoneMatch.split(',').some(part => {
    const named = part.trim()
    return named === '*' || named.replace(/^W\//, '') === strong
  })
}
