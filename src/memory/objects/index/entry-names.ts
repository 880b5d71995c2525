/** Recognises keys of appended entries, `<folder>/<yyyy-mm-dd>/<26 characters>-<author>.md`. The function is pure. */
const entryName = /\/\d{4}-\d\d-\d\d\/[0-7][0-9A-HJKMNP-TV-Z]{25}-[^/]+\.md$/

/** Returns whether the key has a name that only an append makes. An object with such a name is never written again, so nobody can forge an entry. */
export function isEntryKey(key: string): boolean {
  return entryName.test(key)
}
