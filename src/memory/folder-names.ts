/**
 * Keys as file names that are the same on every system: lower-case ASCII only (case-insensitive and normalising file systems),
 * no reserved device names, no trailing dots, no name that could be a directory and a file at once. Pure.
 */
import { createHash } from 'node:crypto'

/** Longer encoded segments end in a hash: file names hold 255 bytes, and suffixes need their part. */
const segmentCharsMax = 150
const reserved = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/

/** One segment of a key as a name without `~`. Different segments get different names. */
export function segmentName(segment: string): string {
  let name = ''
  for (const byte of Buffer.from(segment)) {
    const char = String.fromCharCode(byte)
    name += /[a-z0-9._-]/.test(char) ? char : percent(byte)
  }
  if (name.startsWith('.') || reserved.test(name)) name = percent(name.charCodeAt(0)) + name.slice(1)
  if (name.endsWith('.')) name = name.slice(0, -1) + percent(0x2e)
  if (name.length <= segmentCharsMax) return name
  return `${name.slice(0, 80)}~~${createHash('sha256').update(segment).digest('hex').slice(0, 40)}`
}

/** Where the object of a key lives: its directories below the root, and the stem of its files. */
export function placeOf(key: string): { directories: string[]; stem: string } {
  const names = key.split('/').map(segmentName)
  const stem = names.pop() ?? ''
  return { directories: names, stem: `${stem}~` }
}

/** The directories that every key of this prefix shares. */
export function directoriesOfPrefix(prefix: string): string[] {
  return prefix.split('/').slice(0, -1).map(segmentName)
}

function percent(byte: number): string {
  return `%${byte.toString(16).padStart(2, '0')}`
}
