import type { Ids } from '../../platform/values/ids.ts'

/** What every API key begins with. */
const keyStart = 'br-'
/** Random bytes of a key: 192 bits, so that a plain hash of it cannot be guessed back. */
const keyBytes = 24
/** Characters of a key that lists show. Nine of them are random: enough to tell keys apart, far from enough to guess one. */
const prefixLength = 12
const keyShape = /^br-[A-Za-z0-9_-]{20,100}$/

/** A new API key: `br-` and 32 random base64url characters. */
export function newKey(ids: Ids): string {
  return ids.secret(keyStart, keyBytes)
}

/** Whether a text could be a key of this gateway. Says nothing about whether the key exists. */
export function looksLikeKey(text: string): boolean {
  return keyShape.test(text)
}

/** The start of a key that may be shown. */
export function keyPrefix(key: string): string {
  return key.slice(0, prefixLength)
}
