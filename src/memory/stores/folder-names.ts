/** The file names of a folder store: one directory or file for each segment of a key. The functions are pure. */
import { createHash } from 'node:crypto'

/** Maximum length of an encoded segment. A longer one ends in a hash, because file names have at most 255 bytes, and suffixes need their part. */
const segmentCharsMax = 150
const reserved = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/

/** Returns one segment of a key as a file name without `~`. Different segments get different names. */
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

/** Returns the place of a key's object: its directories below the root, and the stem of its files. */
export function placeOf(key: string): { directories: string[]; stem: string } {
  const names = key.split('/').map(segmentName)
  const stem = names.pop() ?? ''
  return { directories: names, stem: `${stem}~` }
}

/** Returns the directories that every key of this prefix shares. */
export function directoriesOfPrefix(prefix: string): string[] {
  return prefix.split('/').slice(0, -1).map(segmentName)
}

function percent(byte: number): string {
  return `%${byte.toString(16).padStart(2, '0')}`
}

/** The end of the name of a sidecar. A segment contains no `~`, so no data file and no temporary file ends with it. */
export const sidecarEnd = '~.json'

/** Returns the bytes of the segment that has this file name. Returns null for a long segment, whose file name is not reversible. */
export function segmentOf(name: string): Buffer | null {
  if (name.includes('~')) return null
  if (!name.includes('%')) return Buffer.from(name, 'latin1')
  return Buffer.from(
    name.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}
