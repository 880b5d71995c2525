/**
 * Memory keys: what a client may call an object, and how that is joined under the organisation's prefix. Pure.
 * The rules are strict because a key becomes a path in stores, file systems and URLs that normalise in their own ways.
 */
import { fail } from '../platform/errors.ts'

/** A validated key, relative to the organisation's prefix. */
export type MemoryKey = string & { readonly __brand: 'MemoryKey' }

/** Longest key in bytes: S3 takes 1024, the organisation's prefix needs its part of that. Ours. */
export const keyBytesMax = 1000
/** Most segments of a key. Ours. */
export const keySegmentsMax = 20

const servedRoots = ['org/', 'workspaces/', 'shared/', 'users/', 'agents/'] as const

// Control and format characters (they hide or reorder text), line separators, lone surrogates, and what XML lists cannot carry.
const forbidden = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\ufffe\uffff\\]/u

/** The prefix of everything that an organisation has; made by the server, never by a client. */
export function basePrefixOf(orgId: number): string {
  return `org-${orgId}/`
}

/** Checks a key. Throws `bad_memory_key` that says what is wrong with it. */
export function parseKey(text: string): MemoryKey {
  const wrong = text === '' ? 'it is empty' : (problemOf(text) ?? (text.endsWith('/') ? 'it ends with a slash' : null))
  if (wrong !== null) throw fail('bad_memory_key', { message: `Not a valid memory key: ${wrong}.` })
  return text as MemoryKey
}

/** Checks a list prefix: a key, or the beginning of one, or nothing. Throws `bad_memory_key`. */
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

/** The key in the store. The result always begins with the organisation's prefix and stays below it. */
export function joinKey(orgId: number, key: string): string {
  return basePrefixOf(orgId) + key
}

/** The client's key of a store key, or null when it is not the organisation's. */
export function relativeKey(orgId: number, storeKey: string): string | null {
  const base = basePrefixOf(orgId)
  return storeKey.startsWith(base) && storeKey.length > base.length ? storeKey.slice(base.length) : null
}

/** Whether the gateway serves such a key at all: one that a client may name, below one of the roots. What else is in the bucket does not count. */
export function isServedKey(key: string): boolean {
  return servedRoots.some(root => key.startsWith(root)) && problemOf(key) === null && !key.endsWith('/')
}
