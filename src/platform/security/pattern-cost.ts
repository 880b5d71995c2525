/**
 * Estimates what the compilation of a regular expression costs, because a large expression takes too long to compile it first. Decisions 0218 and 0556 give
 * the reasons. The functions are pure.
 */

/**
 * Maximum number of instructions. A larger expression is refused, because its compilation, and one piece of a text, would block other work for too
 * long.
 */
export const instructionsMax = 5_000
/**
 * Maximum number of characters in the ranges of all classes together. The library looks for the other case of each of them, about 50 nanoseconds for
 * one. Four ranges can contain every character that has another case.
 */
export const rangeCharsMax = 500_000
/** The first and the last character that have another case, in the Unicode version of the library. */
const firstWithCase = 0x41
const lastWithCase = 0x1e943

/** Quotes, escapes, classes and counts. Every other token is one character. */
const tokens = /\\Q.*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gs
/** Classes with a name inside of a class, and single characters or ranges of characters. */
const members =
  /\[:\^?\w+:\]|\\[dswDSW]|\\[pP](?:\{[^}]*\}|.)|(\\x\{[\da-f]+\}|\\x[\da-f]{2}|\\[0-7]{1,3}|\\.|.)(?:-(\\x\{[\da-f]+\}|\\x[\da-f]{2}|\\[0-7]{1,3}|\\.|.))?/gisu

/**
 * Estimates the number of instructions of an expression. A repeated part counts once for each repetition. Only a compilation gives the exact number, and
 * for a large expression the compilation itself takes too long.
 */
export function instructionsOf(text: string): number {
  const outside: number[] = []
  let size = 0
  let last = 0
  for (const [token, least, most] of text.matchAll(tokens)) {
    if (token === '(') {
      outside.push(size)
      size = 0
    } else if (token === ')') {
      last = size + 2
      size = (outside.pop() ?? 0) + last
    } else if (least !== undefined) {
      const times = Math.max(Number(least), Number(most ?? 0), 1)
      size += (last + 1) * times - last
      last = (last + 1) * times
    } else {
      last = token.length > 2 && token.startsWith('\\Q') ? token.length : 1
      size += last
    }
  }
  return outside.reduce((sum, part) => sum + part, size)
}

/** Returns the number of characters in the ranges of all classes for which the library looks for another case. */
export function rangeCharsOf(text: string): number {
  let sum = 0
  for (const [token] of text.matchAll(tokens)) {
    if (token.length < 3 || !token.startsWith('[')) continue
    const inside = token.slice(token[1] === '^' ? 2 : 1, -1)
    for (const [, first, last] of inside.matchAll(members)) if (first !== undefined && last !== undefined) sum += casesIn(charOf(first), charOf(last))
  }
  return sum
}

function casesIn(first: number, last: number): number {
  // The library takes a range of all characters as it is.
  if (first <= firstWithCase && last >= lastWithCase) return 0
  return Math.max(0, Math.min(last, lastWithCase) - Math.max(first, firstWithCase) + 1)
}

/** Returns the code point of a character or of an escape. */
function charOf(written: string): number {
  const hex = /^\\x\{?([\da-f]+)/i.exec(written)?.[1]
  if (hex !== undefined) return Number.parseInt(hex, 16)
  const octal = /^\\([0-7]+)$/.exec(written)?.[1]
  if (octal !== undefined) return Number.parseInt(octal, 8)
  return written.codePointAt(written.length > 1 && written.startsWith('\\') ? 1 : 0) ?? 0
}
