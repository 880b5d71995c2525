/** Splits a TOML document into statements, so that one statement can be changed while the others stay as they were typed. */
import { parse } from 'smol-toml'

/** A header, an assignment, or the comments and blank lines between two of them. */
export interface TomlStatement {
  readonly kind: 'header' | 'assignment' | 'rest'
  /**
   * The absolute path of the table that a header opens, or of the value that an assignment sets. It is empty for other statements, and for headers of
   * arrays of tables.
   */
  readonly path: readonly string[]
  /** The path of the table that contains the statement. */
  readonly table: readonly string[]
  readonly start: number
  /** The position after the statement's line break. */
  readonly end: number
  /** The position of the value. Only assignments have one. */
  readonly valueStart: number
  readonly valueEnd: number
}

/** Returns the statements of a valid document. Their texts joined together are the document. */
export function tomlStatements(text: string): TomlStatement[] {
  const statements: TomlStatement[] = []
  let table: readonly string[] = []
  let isInArray = false
  for (let start = 0; start < text.length; ) {
    const first = text.slice(start).search(/[^ \t]/)
    const at = first < 0 ? text.length : start + first
    const character = text[at]
    if (character === '[') {
      const end = lineEnd(text, at)
      isInArray = text[at + 1] === '['
      table = keyPath(text.slice(at, end).trim())
      statements.push({ kind: 'header', path: isInArray ? [] : table, table, start, end, valueStart: end, valueEnd: end })
      start = end
    } else if (character === undefined || character === '#' || character === '\n' || character === '\r') {
      const end = lineEnd(text, at)
      statements.push({ kind: 'rest', path: [], table, start, end, valueStart: end, valueEnd: end })
      start = end
    } else {
      const valueStart = skipBlank(text, afterKey(text, at))
      const valueEnd = afterValue(text, valueStart)
      const end = lineEnd(text, valueEnd)
      // Statements in an array of tables have no path, because names alone do not identify them.
      const path = isInArray ? [] : [...table, ...keyPath(`${text.slice(at, valueStart)}0`)]
      statements.push({ kind: 'assignment', path, table, start, end, valueStart, valueEnd })
      start = end
    }
  }
  return statements
}

/** Returns the names in `[a.b]` or `a.b = 0`. It uses the TOML parser to find them. */
function keyPath(statement: string): string[] {
  const names: string[] = []
  let at: unknown = parse(statement)
  for (;;) {
    if (Array.isArray(at)) at = at[0]
    if (typeof at !== 'object' || at === null) return names
    const [name] = Object.keys(at)
    if (name === undefined) return names
    names.push(name)
    at = Object.getOwnPropertyDescriptor(at, name)?.value
  }
}

function lineEnd(text: string, from: number): number {
  const found = text.indexOf('\n', from)
  return found < 0 ? text.length : found + 1
}

function skipBlank(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** Returns the position after the `=`. Names may be quoted. */
function afterKey(text: string, from: number): number {
  for (let at = from; at < text.length; ) {
    if (text[at] === '=') return at + 1
    at = text[at] === '"' || text[at] === "'" ? afterString(text, at) : at + 1
  }
  return text.length
}

/** Returns the position after the last character of the value. Lists and inline tables may span lines and contain comments. */
function afterValue(text: string, from: number): number {
  let depth = 0
  let last = from
  for (let at = from; at < text.length; ) {
    const character = text[at]
    if (character === '"' || character === "'") {
      at = afterString(text, at)
      last = at
      continue
    }
    if (character === '#') {
      if (depth === 0) return last
      at = lineEnd(text, at)
      continue
    }
    if (character === '\n' && depth === 0) return last
    if (character === '[' || character === '{') depth++
    if (character === ']' || character === '}') depth--
    at++
    if (character !== ' ' && character !== '\t' && character !== '\r' && character !== '\n') last = at
  }
  return last
}

function afterString(text: string, from: number): number {
  const quote = text[from] ?? ''
  const isLong = text.startsWith(quote.repeat(3), from)
  const close = isLong ? quote.repeat(3) : quote
  for (let at = from + close.length; at < text.length; at++) {
    if (quote === '"' && text[at] === '\\') {
      at++
    } else if (text.startsWith(close, at)) {
      // Up to two more quotes belong to the text of a long string.
      let end = at + close.length
      while (isLong && text[end] === quote && end < at + 5) end++
      return end
    }
  }
  return text.length
}
