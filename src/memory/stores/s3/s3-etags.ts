/** Etags as stores send them. Pure. */
import { isEntityTag } from '../../preconditions.ts'

/**
 * Brings an etag into one spelling: some stores leave out the quotes, above all in lists, and some mark an etag as weak although it covers the whole
 * object. Returns null when there is no etag.
 */
export function etagOf(sent: string | undefined): string | null {
  const etag = (sent ?? '').replace(/^W\//, '')
  const quoted = etag.startsWith('"') ? etag : `"${etag}"`
  // In XML there can be anything, and it is to come back in headers.
  return quoted !== '""' && isEntityTag(quoted) ? quoted : null
}

/** For stores that have no etags: which write it was, else when and how long. */
export function substituteEtag(writeId: string | undefined, modifiedMs: number, sizeBytes: number): string {
  return writeId === undefined ? `"${modifiedMs}-${sizeBytes}"` : `"${writeId}"`
}
