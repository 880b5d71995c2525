import { isWordAt, skipWhite, stringEnd } from './json-bytes.ts'

/** What a scan over one stream chunk found; filled anew by each scan, so that the hot path makes no garbage. */
export interface ChunkFacts {
  /** UTF-16 characters of content, reasoning, refusal and tool arguments. */
  outputChars: number
  /** A `usage` key holds an object somewhere. */
  hasUsage: boolean
  /** A top-level `error` key holds something else than null. */
  hasError: boolean
}

const quote = 34
const backslash = 92
const colon = 58
const openBrace = 123
const closeBrace = 125
const openBracket = 91
const closeBracket = 93

const outputKeys = ['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments'].map(key => Buffer.from(key))
const usageKey = Buffer.from('usage')
const errorKey = Buffer.from('error')
const nullWord = Buffer.from('null')

/**
 * Walks over the JSON of one chunk once, string by string, without decoding it. It never throws: of bytes that are no JSON it says
 * what it can. Text inside strings is never taken for a key.
 */
export function scanChunkJson(bytes: Uint8Array, start: number, end: number, facts: ChunkFacts): void {
  facts.outputChars = 0
  facts.hasUsage = false
  facts.hasError = false
  let depth = 0
  let at = start
  while (at < end) {
    const byte = bytes[at]
    if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) depth--
    if (byte !== quote) {
      at++
      continue
    }
    const keyEnd = stringEnd(bytes, at + 1, end)
    const behind = skipWhite(bytes, keyEnd + 1, end)
    if (bytes[behind] !== colon || behind >= end) {
      at = keyEnd + 1
      continue
    }
    const value = skipWhite(bytes, behind + 1, end)
    at = readMember(bytes, at + 1, keyEnd, value, end, depth, facts)
  }
}

/** Looks at one key and its value; returns where the walk goes on. */
function readMember(bytes: Uint8Array, keyStart: number, keyEnd: number, value: number, end: number, depth: number, facts: ChunkFacts): number {
  if (bytes[value] === quote && value < end) {
    const valueEnd = stringEnd(bytes, value + 1, end)
    if (isOutputKey(bytes, keyStart, keyEnd)) facts.outputChars += charsOf(bytes, value + 1, valueEnd)
    else if (depth === 1 && isWordAt(bytes, keyStart, keyEnd, errorKey)) facts.hasError = true
    return valueEnd + 1
  }
  if (bytes[value] === openBrace && isWordAt(bytes, keyStart, keyEnd, usageKey)) facts.hasUsage = true
  if (depth === 1 && isWordAt(bytes, keyStart, keyEnd, errorKey) && !isWordAt(bytes, value, Math.min(end, value + nullWord.length), nullWord))
    facts.hasError = true
  return value
}

/** Few keys have the length of one of these, so most are told apart by that alone. */
function isOutputKey(bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start
  if (length !== 7 && length !== 9 && length !== 17) return false
  for (const key of outputKeys) if (key.length === length && isWordAt(bytes, start, end, key)) return true
  return false
}

/** Length of a JSON string as JavaScript counts it: continuation bytes count nothing, four-byte characters two, an escape one. */
function charsOf(bytes: Uint8Array, from: number, end: number): number {
  let chars = 0
  for (let at = from; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (byte === backslash) {
      at += bytes[at + 1] === 117 ? 5 : 1
      chars++
    } else if ((byte & 0xc0) !== 0x80) {
      chars += byte >= 0xf0 ? 2 : 1
    }
  }
  return chars
}
