/**
 * Memory keys: the names that a client may give to an object, and how a name becomes a key in the store. The rules are strict because a key becomes a path
 * in stores, file systems and URLs, and each of these normalises paths in its own way. The functions are pure.
 */
import { fail } from '../platform/errors.ts'

/** A validated key, relative to the organisation's prefix. */
export type MemoryKey = string & { readonly __brand: 'MemoryKey' }

/** Maximum length of a key in bytes. S3 accepts 1024 bytes, and the organisation's prefix needs its part of them. The project chose the number. */
export const keyBytesMax = 1000
/** Maximum number of segments of a key. The project chose the number. */
export const keySegmentsMax = 20

const servedRoots = ['org/', 'workspaces/', 'shared/', 'users/', 'agents/'] as const

// Control and format characters (they hide or reorder text), line separators, lone surrogates, and characters that XML lists cannot contain.
const forbidden = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\ufffe\uffff\\]/u

/** Returns the prefix of all objects of an organisation. The server makes it, never a client. */
export function basePrefixOf(orgId: number): string {
  return `org-${orgId}/`
}

/**
 * Checks the key of an object that may already exist. Keys that earlier releases accepted stay readable and deletable. Throws `bad_memory_key`, whose
 * message says what is wrong with the key.
 */
export function parseKey(text: string): MemoryKey {
  const wrong = text === '' ? 'it is empty' : (problemOf(text) ?? (text.endsWith('/') ? 'it ends with a slash' : null))
  if (wrong !== null) throw fail('bad_memory_key', { message: `Not a valid memory key: ${wrong}.` })
  return text as MemoryKey
}

/**
 * Checks the key of a new object. In addition to the rules of `parseKey`, it may not contain an invisible character, a character that looks like a
 * space, a byte that was not UTF-8, or a part that another program could decode or normalise into another path. Throws `bad_memory_key`.
 */
export function parseNewKey(text: string): MemoryKey {
  const key = parseKey(text)
  const wrong = disguiseOf(key)
  if (wrong !== null)
    throw fail('bad_memory_key', { message: `Not a valid memory key: ${wrong}. An object of such a key that is there already can be read and deleted.` })
  return key
}

/** Checks a list prefix: a key, the beginning of a key, or an empty text. Throws `bad_memory_key`. */
export function parsePrefix(text: string): string {
  const wrong = text === '' ? null : problemOf(text)
  if (wrong !== null) throw fail('bad_memory_key', { message: `Not a valid memory prefix: ${wrong}.` })
  return text
}

function problemOf(text: string): string | null {
  if (Buffer.byteLength(text) > keyBytesMax) return `it is longer than ${keyBytesMax} bytes`
  if (text.startsWith('/')) return 'it begins with a slash'
  if (text.includes('\\')) return 'it has a backslash'
  if (forbidden.test(text)) return 'it has a control or format character'
  if (text.normalize('NFC') !== text) return 'it is not in Unicode normal form C'
  const segments = (text.endsWith('/') ? text.slice(0, -1) : text).split('/')
  if (segments.length > keySegmentsMax) return `it has more than ${keySegmentsMax} segments`
  if (segments.includes('')) return 'it has an empty segment'
  if (segments.some(segment => segment === '.' || segment === '..')) return 'it has a "." or ".." segment'
  return null
}

// Four groups: characters that Unicode lists as invisible, other blank letters and signs, every space except U+0020, and U+FFFD, which replaces bytes that
// are not text.
const unseen = /[\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\ufffc\ufffd\u{13441}\u{13442}\u{16fe4}\u{1d159}]|(?! )\p{Zs}/u
const escapes = /%([0-7][0-9a-f])/gi

function disguiseOf(key: string): string | null {
  const found = unseen.exec(key)?.[0]
  if (found === '\ufffd') return 'it has U+FFFD, which replaces bytes that are not UTF-8'
  if (found !== undefined) return `it has U+${codeText(found)}, which nobody sees or which looks like a space`
  const segments = key.normalize('NFKC').split('/')
  if (segments.length !== key.split('/').length || segments.some(segment => segment.includes('\\')))
    return 'it has a character that looks like a slash or backslash'
  return segments.some(isDots) ? 'it has a "." or ".." segment as escapes or look-alikes' : null
}

/** Returns whether a segment is "." or ".." to a program that decodes escapes any number of times. */
function isDots(segment: string): boolean {
  // The loop ends, because each round makes the text shorter, and a key has at most 1000 bytes.
  for (let text = segment; ; ) {
    if (text === '.' || text === '..') return true
    const decoded = text.replace(escapes, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (decoded === text) return false
    text = decoded
  }
}

function codeText(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
}

/** Returns the key in the store. It always begins with the organisation's prefix and stays below it. */
export function joinKey(orgId: number, key: string): string {
  return basePrefixOf(orgId) + key
}

/** Converts a key of the store to the key that the client uses. Returns null when the store key is not below the organisation's prefix. */
export function relativeKey(orgId: number, storeKey: string): string | null {
  const base = basePrefixOf(orgId)
  return storeKey.startsWith(base) && storeKey.length > base.length ? storeKey.slice(base.length) : null
}

/**
 * Returns whether the gateway serves this key: a client may use this name, and the key is below one of the roots. The gateway ignores all other objects of
 * a bucket.
 */
export function isServedKey(key: string): boolean {
  return isServed(key) && !key.endsWith('/')
}

/** Returns whether the gateway can serve keys in this folder. The folder ends with a slash. */
export function isServedFolder(folder: string): boolean {
  return isServed(folder) && folder.endsWith('/')
}

function isServed(text: string): boolean {
  return servedRoots.some(root => text.startsWith(root)) && problemOf(text) === null
}
