const quote = 34
const comma = 44
const openBracket = 91
const backslash = 92
const openBrace = 123
const lineFeed = 10
const carriageReturn = 13

/**
 * Counts the values of JSON in a stream of bytes, before a parser makes objects of them. The stream may have events: no string contains a line break, so a
 * line break ends each string.
 */
export class ValueCount {
  #isInString = false
  #isEscaped = false

  /** Returns the number of objects, lists and commas in the next bytes. */
  add(bytes: Uint8Array): number {
    let values = 0
    let isInString = this.#isInString
    let isEscaped = this.#isEscaped
    for (const byte of bytes) {
      if (byte === lineFeed || byte === carriageReturn) isInString = isEscaped = false
      else if (!isInString) {
        if (byte === quote) isInString = true
        else if (byte === comma || byte === openBrace || byte === openBracket) values++
      } else if (isEscaped) isEscaped = false
      else if (byte === backslash) isEscaped = true
      else if (byte === quote) isInString = false
    }
    this.#isInString = isInString
    this.#isEscaped = isEscaped
    return values
  }
}

/** Maximum nesting of a message of a server. Definitions of real servers have less than 20 levels. */
const depthMax = 128

/** Returns true for a value with more than 128 levels of nesting. It uses no recursion, so no value can exhaust the stack. */
export function isTooDeep(value: unknown, most = depthMax): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > most) return true
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      for (const child of Object.values(item)) if (typeof child === 'object' && child !== null) next.push(child)
    }
    level = next
  }
  return false
}
