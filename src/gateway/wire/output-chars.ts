/**
 * How much a model has said, in UTF-8 bytes as a prompt is counted, where its provider has not told: every text of a reply counts, whatever the field. Not counted
 * are names that a text has (ids, types, roles, names of tools) and seals. Media count by the size of their base64, and thinking that is
 * said under several names counts once. Decision 0376 says why.
 */
import { isObject } from '../../platform/values/json.ts'

/**
 * This many characters of base64 count as one of text. Speech in PCM is 3,200 a token and in MP3 about 500, a picture about 1,000: the assumed text is
 * more than their cost, and not a thousand times more.
 */
export const mediaCharsPerChar = 256

/** Members that say nothing of their own. */
const silentNames: ReadonlySet<string> = new Set([
  'id',
  'type',
  'role',
  'name',
  'format',
  'signature',
  'call_id',
  'mimeType',
  'thoughtSignature',
  'thought_signature',
  'encrypted_content',
])

/** Members that hold media in base64; an address does where it is a data URL. */
const mediaMembers = { data: false, b64_json: false, url: true } as const

/** What the text under a name counts for: nothing, each of its characters, its size as media, or that where it is a data URL. */
export const textWeight = { silent: 0, spoken: 1, media: 2, address: 3 } as const

/** Names with their own weight, by length, which separates most names already. */
const weighed: readonly (readonly { readonly bytes: Uint8Array; readonly weight: number }[])[] = Array.from({ length: 18 }, (_, length) => [
  ...[...silentNames].filter(name => name.length === length).map(name => ({ bytes: Buffer.from(name), weight: textWeight.silent })),
  ...Object.entries(mediaMembers)
    .filter(([name]) => name.length === length)
    .map(([name, isAddress]) => ({ bytes: Buffer.from(name), weight: isAddress ? textWeight.address : textWeight.media })),
])
const thoughtWords = ['reasoning', 'thinking'] as const
const thoughtBytes = thoughtWords.map(word => Buffer.from(word))
const dataScheme = Buffer.from('data:')

/** What the text under the name in these bytes counts for. */
export function weightOf(bytes: Uint8Array, start: number, end: number): number {
  const names = weighed[end - start]
  if (names === undefined) return textWeight.spoken
  for (const { bytes: name, weight } of names) if (startsAt(bytes, start, end, name)) return weight
  return textWeight.spoken
}

/** True for the bytes of a member of a delta under which thinking is said. */
export function isThoughtName(bytes: Uint8Array, start: number, end: number): boolean {
  const first = bytes[start]
  if (first !== 114 && first !== 116) return false
  for (const word of thoughtBytes) if (startsAt(bytes, start, end, word)) return true
  return false
}

/** True for the bytes of a data URL. */
export const isMediaText = (bytes: Uint8Array, start: number, end: number): boolean => startsAt(bytes, start, end, dataScheme)

function startsAt(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  if (end - start < word.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[start + index] !== word[index]) return false
  return true
}

/** Deeper than this nothing is looked for: no provider nests its output so. */
const depthMax = 128

/** UTF-8 bytes of output in a delta, a message or any other value that a provider has sent as what its model says. */
export function outputChars(said: unknown): number {
  if (!isObject(said)) return charsUnder('', said, 0)
  let chars = 0
  let thoughtChars = 0
  for (const name of Object.keys(said)) {
    const memberChars = charsUnder(name, said[name], 0)
    if (memberChars > 0 && thoughtWords.some(word => name.startsWith(word))) thoughtChars = Math.max(thoughtChars, memberChars)
    else chars += memberChars
  }
  return chars + thoughtChars
}

function charsUnder(name: string, value: unknown, depth: number): number {
  if (typeof value === 'string') return charsOf(name, value)
  if (typeof value !== 'object' || value === null || depth > depthMax) return 0
  let chars = 0
  if (Array.isArray(value)) for (const each of value) chars += charsUnder('', each, depth + 1)
  else for (const inner of Object.keys(value)) chars += charsUnder(inner, (value as Readonly<Record<string, unknown>>)[inner], depth + 1)
  return chars
}

function charsOf(name: string, text: string): number {
  if (silentNames.has(name)) return 0
  const isMedia = name === 'data' || name === 'b64_json' || (name === 'url' && text.startsWith('data:'))
  return isMedia ? Math.ceil(Buffer.byteLength(text) / mediaCharsPerChar) : Buffer.byteLength(text)
}
