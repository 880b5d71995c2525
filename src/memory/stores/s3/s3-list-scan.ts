/** Bounds the content of an XML reply in one pass over its bytes, before a parser reads it, because the time of a parser depends on the content. */
import { ObjectStoreError } from '../object-store.ts'

/** Maximum number of bytes of a page without its entries. It is also the maximum number of bytes of a reply without entries. */
export const frameMaxBytes = 16 * 1024
/** A key of 1,024 bytes in which each byte is escaped as `&quot;`. */
const textMaxBytes = 6 * 1_024
/** Maximum number of bytes of one entry: its longest key and its other fields. */
const entryMaxBytes = 8 * 1024
const tagMaxBytes = 512
/** Maximum number of opening and closing tags for each entry. An entry has twelve elements. */
const tagsPerEntry = 24
const tagsOfFrame = 50
/** Maximum number of escapes and attributes for each entry, as an average over a page. A single key may consist of escapes. */
const marksPerEntry = 64
const marksOfFrame = 2_048

const [opening, closing, ampersand, equals] = Buffer.from('<>&=') as unknown as [number, number, number, number]
/** The elements of objects and of folders. */
const entryElements = [
  ['<Contents>', '</Contents>'],
  ['<CommonPrefixes>', '</CommonPrefixes>'],
] as const

/** Throws ObjectStoreError `unavailable` for a reply that takes more work to parse than a page of `entriesMax` entries. */
export function refuseHeavyList(text: Buffer, entriesMax: number): void {
  refuseHeavyEntries(text, entriesMax)
  let tags = 0
  let marks = 0
  let sinceAt = 0
  let isTag = false
  for (let at = 0; at <= text.length; at++) {
    const byte = text[at]
    if (byte === ampersand || byte === equals) marks++
    const isEnd = byte === undefined || byte === opening || (isTag && byte === closing)
    if (!isEnd) continue
    if (at - sinceAt > (isTag ? tagMaxBytes : textMaxBytes))
      throw refused(`a ${isTag ? 'tag' : 'text'} of more than ${isTag ? tagMaxBytes : textMaxBytes} bytes`)
    sinceAt = at + 1
    isTag = byte === opening
    if (isTag) tags++
  }
  const tagsMax = tagsOfFrame + entriesMax * tagsPerEntry
  if (tags > tagsMax) throw refused(`more than the ${tagsMax} tags that a page of ${entriesMax} entries may have`)
  const marksMax = marksOfFrame + entriesMax * marksPerEntry
  if (marks > marksMax) throw refused(`more than the ${marksMax} escapes and attributes that a page of ${entriesMax} entries may have`)
}

function refuseHeavyEntries(text: Buffer, entriesMax: number): void {
  let entries = 0
  let entriesBytes = 0
  for (const [entryStart, entryEnd] of entryElements) {
    for (let start = text.indexOf(entryStart); start >= 0; ) {
      if (++entries > entriesMax) throw refused(`a page with more than the ${entriesMax} entries that were asked for`)
      const end = text.indexOf(entryEnd, start)
      const bytes = (end < 0 ? text.length : end + entryEnd.length) - start
      if (bytes > entryMaxBytes) throw refused(`an entry of more than ${entryMaxBytes} bytes`)
      entriesBytes += bytes
      start = text.indexOf(entryStart, start + bytes)
    }
  }
  if (text.length - entriesBytes > frameMaxBytes) throw refused(`more than ${frameMaxBytes} bytes beside the entries of a page`)
}

/** Returns the error for a store that sent an invalid reply. */
export const refused = (what: string): ObjectStoreError => new ObjectStoreError('unavailable', `the store sent ${what}`)
