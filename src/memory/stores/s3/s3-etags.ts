/** Etags as stores send them. Pure. */
import { isEntityTag } from '../../preconditions.ts'

/** One spelling: some stores leave the quotes out, in lists above all, and some call their etags weak although a whole object has one. Null when there is none. */
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
