/** The reply with the bytes of an object. Decision 0580 says why a browser gets other headers than a program. */
import { isUtf8 } from 'node:buffer'
import { type Reply, reply } from '../../platform/endpoint.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { ReadResult } from '../access/memory-call.ts'

/**
 * Returns the bytes of an object with its provenance and etag. With a session, other headers keep a browser from treating the bytes of others as a page of
 * this gateway, and a browser saves what is not plain text.
 */
export function objectReply(found: ReadResult, key: string, principal: Principal): Reply {
  return reply.bytes(found.bytes, {
    ...found.metaHeaders,
    'content-type': textType,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'last-modified': found.modified.toUTCString(),
    etag: found.etag,
    ...(principal.kind === 'session' ? browserHeaders(found.bytes, key) : {}),
  })
}

const textType = 'text/plain; charset=utf-8'

function browserHeaders(bytes: Buffer, key: string): Record<string, string> {
  return {
    'content-security-policy': 'sandbox',
    'cross-origin-resource-policy': 'same-origin',
    ...(isPlainText(bytes) ? {} : { 'content-type': 'application/octet-stream', 'content-disposition': `attachment; filename*=UTF-8''${fileNameOf(key)}` }),
  }
}

/** Returns whether a browser can show the bytes as text. Without this check, a browser could guess another encoding. */
const isPlainText = (bytes: Buffer): boolean => isUtf8(bytes) && !bytes.includes(0)

/** Returns the last segment of a key in the encoding of RFC 8187. */
function fileNameOf(key: string): string {
  return encodeURIComponent(key.slice(key.lastIndexOf('/') + 1)).replace(/['()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
