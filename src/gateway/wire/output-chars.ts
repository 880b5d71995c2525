/**
 * Counts the output of a model in UTF-8 bytes, like a prompt, when its provider reports no usage. Every text of a reply counts, in any field, and so do
 * names of tools. Ids, types, roles and signatures do not count. A digit counts as a token. Media count by the size of their base64. Thinking that is
 * repeated under several names counts once. Decisions 0376 and 0507 give the reasons.
 */
import { isObject } from '../../platform/values/json.ts'
import { bytesPerToken } from './usage.ts'

/**
 * This number of base64 characters counts as one character of text. For one token, speech in PCM has 3,200 base64 characters, MP3 about 500, and a picture
 * about 1,000. The estimate is therefore higher than the real cost, but not a thousand times higher.
 */
export const mediaCharsPerChar = 256

/** Bytes that a digit counts in addition to its own, so that it counts as a token. */
export const digitExtraBytes = bytesPerToken - 1

/** Returns 1 for the code of a digit, otherwise 0. */
export const isDigit = (code: number): 0 | 1 => (code >= 48 && code <= 57 ? 1 : 0)

/** Returns the bytes of a text as it counts. */
export function spokenBytes(text: string): number {
  let digits = 0
  for (let at = 0; at < text.length; at++) digits += isDigit(text.charCodeAt(at))
  return Buffer.byteLength(text) + digits * digitExtraBytes
}

/** Members whose text does not count. */
const silentNames: ReadonlySet<string> = new Set([
  'id',
  'type',
  'role',
  'format',
  'signature',
  'call_id',
  'mimeType',
  'thoughtSignature',
  'thought_signature',
  'encrypted_content',
])

/** Members that contain media in base64. For a member with the value true, this holds only if it is a data URL. */
const mediaMembers = { data: false, b64_json: false, url: true } as const

/** How the text under a name counts: not at all, by its characters, by its size as media, or as media only if it is a data URL. */
export const textWeight = { silent: 0, spoken: 1, media: 2, address: 3 } as const

/** Names that have a weight of their own, indexed by their length, because the length alone excludes most names. */
const weighed: readonly (readonly { readonly bytes: Uint8Array; readonly weight: number }[])[] = Array.from({ length: 18 }, (_, length) => [
  ...[...silentNames].filter(name => name.length === length).map(name => ({ bytes: Buffer.from(name), weight: textWeight.silent })),
  ...Object.entries(mediaMembers)
    .filter(([name]) => name.length === length)
    .map(([name, isAddress]) => ({ bytes: Buffer.from(name), weight: isAddress ? textWeight.address : textWeight.media })),
])
const thoughtWords = ['reasoning', 'thinking'] as const
const thoughtBytes = thoughtWords.map(word => Buffer.from(word))
const dataScheme = Buffer.from('data:')

/** Returns the weight of the text under the name in these bytes. */
export function weightOf(bytes: Uint8Array, start: number, end: number): number {
  const names = weighed[end - start]
  if (names === undefined) return textWeight.spoken
  for (const { bytes: name, weight } of names) if (startsAt(bytes, start, end, name)) return weight
  return textWeight.spoken
}

/** True for the name of a delta's member that contains thinking. */
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

/** Values that are nested deeper than this do not count. No provider nests its output that deeply. */
const depthMax = 128

/** Returns the UTF-8 bytes of output in a delta, a message, or any other value that a provider sent as its model's output. */
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
  return isMedia ? Math.ceil(Buffer.byteLength(text) / mediaCharsPerChar) : spokenBytes(text)
}
