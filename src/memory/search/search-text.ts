/** Finds lines in a text, for a plain text or a regular expression whose cost is bounded. The functions are pure. */
import { RE2JS } from 're2js'
import { fail } from '../../platform/errors.ts'
import { instructionsMax, instructionsOf, rangeCharsMax, rangeCharsOf } from '../../platform/security/pattern-cost.ts'

/** A line that matches. */
export interface FoundLine {
  /** Counted from 1. */
  readonly line: number
  readonly snippet: string
}

export interface LineMatcher {
  /** Returns the index of the first match in a line or a piece of a line. Returns -1 when there is no match. */
  readonly find: (piece: string) => number
  /** A longer line is searched in pieces of this many characters, because the search of one piece blocks the whole process. */
  readonly pieceChars: number
}

export interface SearchParams {
  readonly text: string
  readonly isRegex: boolean
  readonly isCaseSensitive: boolean
}

export const searchCharsMax = 500
const pieceCharsMax = 4096
const pieceCharsMin = 512
/** An expression with this many instructions takes at most some hundredths of a second for the longest piece. A larger expression gets shorter pieces. */
const instructionsMin = 100
const snippetChars = 240
/** Number of characters of a snippet before the match. */
const leadChars = 80

/**
 * Returns the matcher of a search. The compilation of an expression blocks the process for up to some hundredths of a second, so it needs a turn. Throws
 * `bad_request` for an invalid expression. The message never repeats the expression.
 */
export function matcherOf({ text, isRegex, isCaseSensitive }: SearchParams): LineMatcher {
  if (!isRegex) {
    const folded = text.toLowerCase()
    return { find: isCaseSensitive ? piece => piece.indexOf(text) : piece => piece.toLowerCase().indexOf(folded), pieceChars: pieceCharsMax }
  }
  if (instructionsOf(text) > instructionsMax) throw tooLarge()
  if (rangeCharsOf(text) > rangeCharsMax)
    throw fail('bad_request', { message: `Field "q": the ranges in [ ] have more than ${rangeCharsMax} characters together. Use smaller ranges, or \\p{…}.` })
  const expression = compiled(text, isCaseSensitive)
  const instructions = expression.programSize()
  if (instructions > instructionsMax) throw tooLarge()
  const share = instructionsMin / Math.max(instructions, instructionsMin)
  return {
    pieceChars: Math.max(pieceCharsMin, Math.floor(pieceCharsMax * share)),
    find(piece) {
      // Testing whether there is a match is much cheaper than finding its position.
      if (!expression.test(piece)) return -1
      const matcher = expression.matcher(piece)
      return matcher.find() ? matcher.start() : 0
    },
  }
}

function compiled(text: string, isCaseSensitive: boolean): RE2JS {
  try {
    return RE2JS.compile(text, isCaseSensitive ? 0 : RE2JS.CASE_INSENSITIVE)
  } catch {
    // biome-ignore lint/style/useErrorCause: the cause would carry the expression, which is content, into the log.
    throw fail('bad_request', { message: 'Field "q": not a regular expression of RE2 syntax (no look-around, no back references, repeats up to 1000).' })
  }
}

function tooLarge() {
  return fail('bad_request', { message: 'Field "q": the expression is too large with its repeats written out. Use smaller counts, or * and +.' })
}

/** Returns the part of a line around a match. */
export function snippetOf(line: string, at: number): string {
  const from = Math.max(0, Math.min(at - leadChars, line.length - snippetChars))
  // A cut in the middle of a surrogate pair would leave half a character.
  return line
    .slice(from, from + snippetChars)
    .replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '')
    .trim()
}
