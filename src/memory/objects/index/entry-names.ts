/** Keys of appended entries, `<folder>/<yyyy-mm-dd>/<26 characters>-<author>.md`. Pure. */
const entryName = /\/\d{4}-\d\d-\d\d\/[0-7][0-9A-HJKMNP-TV-Z]{25}-[^/]+\.md$/

/** True for names that only an append gives: such an object is never written again, and nobody forges one. */
export function isEntryKey(key: string): boolean {
  return entryName.test(key)
}
