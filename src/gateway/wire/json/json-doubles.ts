/** Finds names that occur twice in a JSON object, at any depth. The gateway reads the last occurrence, but another parser may read the first. */

import { memberPlacesOf } from './json-body.ts'

const quote = 34
const colon = 58
const backslash = 92
/** Strings up to this length are read byte by byte. For longer ones a native search is faster. */
const shortString = 48

/**
 * Returns whether any object in the bytes has a name twice. `value` must be the result of parsing the bytes. The two have different numbers of members when
 * a later member has overwritten an earlier one.
 */
export function hasDoubles(bytes: Buffer, value: object): boolean {
  return membersIn(bytes) !== membersOf(value)
}

/** A scan counts the members of longer JSON. */
const scannedLeastBytes = 16 * 1024
/** The number of members of edited bytes, whose members were known before. */
const noted = new WeakMap<Buffer, number>()

/** Notes the number of members of all objects in the bytes, so that `hasDoubles` need not count them. */
export const noteMembers = (bytes: Buffer, count: number): void => void noted.set(bytes, count)

/** Returns the number of members of all objects in the bytes. */
export function membersIn(bytes: Buffer): number {
  return bytes.length < scannedLeastBytes ? countMembers(bytes) : (noted.get(bytes) ?? memberPlacesOf(bytes)?.colons ?? countMembers(bytes))
}

/** Counts the members of all objects in the bytes, by the colons outside strings. */
function countMembers(bytes: Buffer): number {
  let count = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) at = stringEnd(bytes, at)
    else if (byte === colon) count++
  }
  return count
}

/** Returns the offset of the closing quote of the string that begins at `start`. */
function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  for (const near = Math.min(bytes.length, at + shortString); at < near; at++) {
    const byte = bytes[at]
    if (byte === quote) return at
    if (byte === backslash) at++
  }
  for (;;) {
    at = bytes.indexOf(quote, at)
    if (at === -1) return bytes.length
    let slashes = 0
    while (bytes[at - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return at
    at++
  }
}

/** Counts the own members of all objects in a value. It uses a list instead of recursion, because a body may be nested deeper than the call stack allows. */
function membersOf(value: object): number {
  let count = 0
  const waiting: object[] = [value]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (Array.isArray(next)) {
      for (const each of next as readonly unknown[]) if (typeof each === 'object' && each !== null) waiting.push(each)
      continue
    }
    // A list of the values would be garbage of every call.
    for (const name in next) {
      count++
      const each = (next as Readonly<Record<string, unknown>>)[name]
      if (typeof each === 'object' && each !== null) waiting.push(each)
    }
  }
  return count
}
