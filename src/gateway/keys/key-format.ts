import type { Ids } from '../../platform/values/ids.ts'

/** Every API key begins with this text. */
export const keyStart = 'br-'
/** Number of random bytes of a key. With 192 bits, nobody can find the key from a plain hash of it. */
const keyBytes = 24
/** Number of characters of a key that lists show. Nine of them are random: enough to tell keys apart, too few to guess the key. */
const prefixLength = 12
const keyShape = /^br-[A-Za-z0-9_-]{20,100}$/

/** Returns a new API key: `br-` and 32 random base64url characters. */
export function newKey(ids: Ids): string {
  return ids.secret(keyStart, keyBytes)
}

/** Returns whether a text has the shape of a key. It does not check whether the key exists. */
export function looksLikeKey(text: string): boolean {
  return keyShape.test(text)
}

/** Returns the start of a key, which may be shown. */
export function keyPrefix(key: string): string {
  return key.slice(0, prefixLength)
}
