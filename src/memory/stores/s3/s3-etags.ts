/** Normalises the etags that stores send. The functions are pure. */
import { isEntityTag } from '../../preconditions.ts'

/** A longer etag is not used. It would be kept in the index, where only the bytes of objects count. */
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

/** Returns an etag for an object of a store without etags: the id of its write, or otherwise its time and length. */
export function substituteEtag(writeId: string | undefined, modifiedMs: number, sizeBytes: number): string {
  return writeId === undefined ? `"${modifiedMs}-${sizeBytes}"` : `"${writeId}"`
}
