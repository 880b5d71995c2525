/** Normalises the etags that stores send. The functions are pure. */
import { isEntityTag } from '../../preconditions.ts'

/** A longer etag is not used, because the index would store it without counting its bytes. */
const etagMaxChars = 256

/**
 * Returns an etag in one spelling. Some stores leave out the quotes, mostly in lists, and some mark an etag as weak although it covers the whole
 * object. Returns null when there is no etag.
 */
export function etagOf(sent: string | undefined): string | null {
  const etag = (sent ?? '').replace(/^W\//, '')
  const quoted = etag.startsWith('"') ? etag : `"${etag}"`
  // XML can contain any text here, and the etag is later sent in headers.
  return quoted !== '""' && quoted.length <= etagMaxChars && isEntityTag(quoted) ? quoted : null
}

/** Returns an etag for an object of a store without etags. It is the id of the write, or the time and length when there is no id. */
export function substituteEtag(writeId: string | undefined, modifiedMs: number, sizeBytes: number): string {
  return writeId === undefined ? `"${modifiedMs}-${sizeBytes}"` : `"${writeId}"`
}
