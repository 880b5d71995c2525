import { isWordAt, skipWhite, stringEnd } from '../json/json-bytes.ts'
import { digitExtraBytes, isDigit, isMediaText, isThoughtName, mediaCharsPerChar, textWeight, weightOf } from '../output-chars.ts'

/** The result of scanning one stream chunk. Each scan fills the same object again, so that the hot path allocates nothing. */
export interface ChunkFacts {
  /** UTF-8 bytes of output below `delta`, counted by the rules of `outputChars`. */
  outputChars: number
  /** True: `choices` has an entry. */
  hasChoices: boolean
  /** True: a choice has a finish reason. */
  hasFinish: boolean
  /** True: a delta has thinking in another member than `reasoning_content`, or has its content in parts, where thinking may be. */
  hasOddThinking: boolean
  /** True: a `usage` key outside of a delta has an object as its value. */
  hasUsage: boolean
  /** True: the top-level `error` has a value other than null. */
  hasError: boolean
  /** The start and end offsets of the text of the top-level `model`. Both are 0 if the chunk has no model. */
  modelFrom: number
  modelTo: number
  /**
   * True: a choice may have failed, because it has an `error` or its finish reason is `error`. The scan checks only the depth of the member, so the same
   * member in another object at that depth also sets this field.
   */
  mayHaveFailedChoice: boolean
  /** The number of texts below `delta` that count as output. The next two fields are the offsets of the last one. Media and addresses count twice. */
  texts: number
  textFrom: number
  textTo: number
}

const space = 32
const quote = 34
const backslash = 92
const colon = 58
const openBrace = 123
const closeBrace = 125
const openBracket = 91
const closeBracket = 93

const usageKey = Buffer.from('usage')
const errorKey = Buffer.from('error')
const choicesKey = Buffer.from('choices')
const modelKey = Buffer.from('model')
const deltaKey = Buffer.from('delta')
const messageKey = Buffer.from('message')
const finishKey = Buffer.from('finish_reason')
const reasoningKey = Buffer.from('reasoning')
const contentKey = Buffer.from('content')
const nullWord = Buffer.from('null')
const finishedWithError = Buffer.from('"error"')

/** The depth of a member of the top-level object, and of a member of a choice. */
const topDepth = 1
const choiceDepth = 3

/** Returns empty facts, for a scan to fill. */
export const noFacts = (): ChunkFacts => ({
  outputChars: 0,
  hasChoices: false,
  hasFinish: false,
  hasOddThinking: false,
  hasUsage: false,
  hasError: false,
  modelFrom: 0,
  modelTo: 0,
  mayHaveFailedChoice: false,
  texts: 0,
  textFrom: 0,
  textTo: 0,
})

/**
 * Scans the JSON of one chunk once, string by string, without decoding it. It never throws, and for bytes that are not JSON it reports what it can find. It
 * never takes text inside a string for a key.
 */
export function scanChunkJson(bytes: Uint8Array, start: number, end: number, facts: ChunkFacts): void {
  facts.outputChars = 0
  facts.hasChoices = false
  facts.hasFinish = false
  facts.hasOddThinking = false
  facts.hasUsage = false
  facts.hasError = false
  facts.modelFrom = 0
  facts.modelTo = 0
  facts.mayHaveFailedChoice = false
  facts.texts = 0
  facts.textFrom = 0
  facts.textTo = 0
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
    const behind = next(bytes, keyEnd + 1, end)
    if (behind >= end || bytes[behind] !== colon) {
      at = keyEnd + 1
      continue
    }
    const value = next(bytes, behind + 1, end)
    if (depth === choiceDepth && isDelta(bytes, at + 1, keyEnd)) at = readDelta(bytes, value, end, facts)
    else at = readMember(bytes, at + 1, keyEnd, value, end, depth, facts)
  }
}

/** Skips white space. The first check is for speed, because most providers write no white space. */
const next = (bytes: Uint8Array, from: number, end: number): number => ((bytes[from] ?? 0) > space ? from : skipWhite(bytes, from, end))

/** True for `delta` and for `message`, because some servers send a whole `message` instead of a delta. */
function isDelta(bytes: Uint8Array, start: number, end: number): boolean {
  return isWordAt(bytes, start, end, deltaKey) || isWordAt(bytes, start, end, messageKey)
}

/** Reads one key outside of a delta, and its value. Returns the offset at which the scan continues. */
function readMember(bytes: Uint8Array, keyStart: number, keyEnd: number, value: number, end: number, depth: number, facts: ChunkFacts): number {
  const first = value < end ? bytes[value] : undefined
  if (depth === topDepth) {
    if (isWordAt(bytes, keyStart, keyEnd, errorKey)) facts.hasError = !isWordAt(bytes, value, Math.min(end, value + nullWord.length), nullWord)
    else if (first === quote && isWordAt(bytes, keyStart, keyEnd, modelKey)) {
      facts.modelFrom = value + 1
      facts.modelTo = stringEnd(bytes, value + 1, end)
      return facts.modelTo + 1
    } else if (first === openBracket && isWordAt(bytes, keyStart, keyEnd, choicesKey))
      facts.hasChoices = bytes[skipWhite(bytes, value + 1, end)] !== closeBracket
  } else if (depth === choiceDepth) {
    if (first === quote && isWordAt(bytes, keyStart, keyEnd, finishKey)) {
      facts.hasFinish = true
      if (isWordAt(bytes, value, Math.min(end, value + finishedWithError.length), finishedWithError)) facts.mayHaveFailedChoice = true
    } else if (isWordAt(bytes, keyStart, keyEnd, errorKey) && !isWordAt(bytes, value, Math.min(end, value + nullWord.length), nullWord))
      facts.mayHaveFailedChoice = true
  }
  if (first === quote) return stringEnd(bytes, value + 1, end) + 1
  if (first === openBrace && isWordAt(bytes, keyStart, keyEnd, usageKey)) facts.hasUsage = true
  return value
}

const { silent, spoken, media } = textWeight

/** The UTF-8 bytes of the last string that `walkedEnd` passed. */
let walkedChars = 0
/** The digits of that string. */
let walkedDigits = 0

/** Counts the text of a delta. Returns the offset after the delta. */
function readDelta(bytes: Uint8Array, value: number, end: number, facts: ChunkFacts): number {
  let depth = 0
  let weight: number = spoken
  let isThought = false
  let memberChars = 0
  // Providers often send the same thinking under several names, so only the longest of them counts.
  let thoughtChars = 0
  let at = value
  do {
    const byte = bytes[at]
    if (byte !== quote) {
      if (byte === openBrace || byte === openBracket) depth++
      else if (byte === closeBrace || byte === closeBracket) depth--
      // The name of a member sets the weight of its own text, but not of the lists below it.
      if (byte === openBracket || byte === closeBrace) weight = spoken
      at++
      continue
    }
    const from = at + 1
    const close = walkedEnd(bytes, from, end)
    const behind = next(bytes, close + 1, end)
    at = close + 1
    if (depth === 0 || behind >= end || bytes[behind] !== colon) {
      memberChars += counted(bytes, from, close, weight)
      if (weight !== silent) {
        // A text with another weight does not count by its length. It adds two to `texts`, so that the chunk does not look like a chunk with one plain
        // text.
        facts.texts += weight === spoken ? 1 : 2
        facts.textFrom = from
        facts.textTo = close
      }
      weight = spoken
      continue
    }
    if (depth === 1) {
      if (isThought) thoughtChars = Math.max(thoughtChars, memberChars)
      else facts.outputChars += memberChars
      memberChars = 0
      isThought = isThoughtName(bytes, from, close)
      if (isOdd(bytes, from, close, skipWhite(bytes, behind + 1, end), end)) facts.hasOddThinking = true
    }
    weight = weightOf(bytes, from, close)
    at = behind + 1
  } while (at < end && depth > 0)
  if (isThought) thoughtChars = Math.max(thoughtChars, memberChars)
  else facts.outputChars += memberChars
  facts.outputChars += thoughtChars
  return at
}

/** True for a direct member of a delta, other than `reasoning_content`, that has or may have thinking. */
function isOdd(bytes: Uint8Array, start: number, end: number, value: number, limit: number): boolean {
  if (value >= limit) return false
  if (bytes[value] === openBracket) return isWordAt(bytes, start, end, contentKey)
  return bytes[value] === quote && bytes[value + 1] !== quote && isWordAt(bytes, start, end, reasoningKey)
}

function counted(bytes: Uint8Array, from: number, end: number, weight: number): number {
  const spokenChars = walkedChars + walkedDigits * digitExtraBytes
  if (weight === spoken) return spokenChars
  if (weight === silent) return 0
  return weight === media || isMediaText(bytes, from, end) ? Math.ceil(walkedChars / mediaCharsPerChar) : spokenChars
}

/**
 * Returns the offset of the closing quote of a string whose text begins at `from`, or `end`. Counts the UTF-8 bytes of its text: an escape counts as the
 * character that it encodes.
 */
function walkedEnd(bytes: Uint8Array, from: number, end: number): number {
  /** The number of bytes by which the escapes are longer than the characters that they encode. */
  let spare = 0
  let digits = 0
  let at = from
  while (at < end) {
    const byte = bytes[at] as number
    if (byte === quote) break
    if (byte !== backslash) {
      digits += isDigit(byte)
      at++
      continue
    }
    if (bytes[at + 1] !== letterU) {
      at += 2
      spare++
      continue
    }
    const isPair = isFirstHalf(bytes, at) && isSecondHalf(bytes, at + 6)
    spare += isPair ? 8 : 6 - escapedBytes(bytes, at)
    at += isPair ? 12 : 6
  }
  const close = Math.min(at, end)
  walkedChars = Math.max(0, close - from - spare)
  walkedDigits = digits
  return close
}

const letterU = 117
const letterD = 100
const zero = 48
/** Turns a letter into lower case; digits do not change. */
const small = 0x20

/** Whether the escape at that offset is the first half of a surrogate pair (`d8` to `db`). */
function isFirstHalf(bytes: Uint8Array, at: number): boolean {
  const second = (bytes[at + 3] ?? 0) | small
  return ((bytes[at + 2] ?? 0) | small) === letterD && (second === 56 || second === 57 || second === 97 || second === 98)
}

/** Whether an escape begins at that offset that is the second half of a surrogate pair (`dc` to `df`). */
function isSecondHalf(bytes: Uint8Array, at: number): boolean {
  const second = (bytes[at + 3] ?? 0) | small
  return bytes[at] === backslash && bytes[at + 1] === letterU && ((bytes[at + 2] ?? 0) | small) === letterD && second >= 99 && second <= 102
}

/** Returns the UTF-8 bytes of the character that an escape of four hexadecimal digits encodes. */
function escapedBytes(bytes: Uint8Array, at: number): number {
  if (bytes[at + 2] !== zero) return 3
  const second = bytes[at + 3] ?? 0
  if (second !== zero) return second < 56 ? 2 : 3
  return (bytes[at + 4] ?? 0) < 56 ? 1 : 2
}
