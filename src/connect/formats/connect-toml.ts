/** Merges settings into TOML files. Assignments are added, replaced and removed one by one. The rest stays as it was typed. */
import { isDeepStrictEqual } from 'node:util'
import { parse, TomlError } from 'smol-toml'
import { cannotChange, dotted, edited, isSettings, missingEdits, type SettingEdit, type Settings, type SettingValue } from '../connect-edits.ts'
import { type TomlStatement, tomlStatements } from './connect-toml-statements.ts'

/**
 * Returns the text with the edits. Returns the same text when all edits are already in effect. Comments, order and every other value stay. Values
 * must be texts, numbers, booleans or lists of them. Throws ConnectError when the text is not TOML, or cannot be changed safely.
 */
export function editToml(text: string, edits: readonly SettingEdit[]): string {
  const before = tomlSettings(text)
  const missing = missingEdits(before, edits)
  if (missing.length === 0) return text
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const after = missing.reduce((now, edit) => changed(now, edit, eol), text)
  if (means(after, edited(before, edits))) return after
  const alone = missing.find(edit => !means(changed(text, edit, eol), edited(before, [edit])))
  throw cannotChange(`${dotted(alone?.path.slice(0, 2) ?? [])} is written in a way that cannot be changed safely; a table of its own can be`)
}

function means(text: string, settings: Settings): boolean {
  try {
    return isDeepStrictEqual(tomlSettings(text), plainly(settings))
  } catch {
    return false
  }
}

function changed(text: string, edit: SettingEdit, eol: string): string {
  const statements = tomlStatements(text)
  switch (edit.kind) {
    case 'drop':
      return without(text, statements, edit.path)
    case 'set':
      return withAssignment(text, statements, edit.path, tomlValue(edit.value), eol)
    case 'include':
      throw cannotChange(`${dotted(edit.path)} is no list that can be added to`)
  }
}

function withAssignment(text: string, statements: readonly TomlStatement[], path: readonly string[], value: string, eol: string): string {
  const there = statements.find(({ kind, path: other }) => kind === 'assignment' && isSame(other, path))
  if (there !== undefined) return text.slice(0, there.valueStart) + value + text.slice(there.valueEnd)
  const parent = path.slice(0, -1)
  const beside = statements.findLast(({ kind, path: other }) => kind === 'assignment' && other.length === path.length && isSame(other.slice(0, -1), parent))
  if (beside !== undefined) {
    const indent = /^[ \t]*/.exec(text.slice(beside.start))?.[0] ?? ''
    return inserted(text, beside.end, `${indent}${path.slice(beside.table.length).map(tomlKey).join('.')} = ${value}`, eol)
  }
  const line = `${tomlKey(path.at(-1) ?? '')} = ${value}`
  if (parent.length === 0) return beforeTables(text, statements, line, eol)
  const header = statements.find(({ kind, path: other }) => kind === 'header' && isSame(other, parent))
  if (header !== undefined) return inserted(text, header.end, line, eol)
  const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol
  return `${text}${gap}[${parent.map(tomlKey).join('.')}]${eol}${line}${eol}`
}

/** Returns the position before the first header and before the comment directly above it. */
function beforeTables(text: string, statements: readonly TomlStatement[], line: string, eol: string): string {
  let index = statements.findIndex(({ kind }) => kind === 'header')
  if (index < 0) return inserted(text, text.length, line, eol)
  const isComment = (statement: TomlStatement | undefined): boolean =>
    statement?.kind === 'rest' && text.slice(statement.start, statement.end).trim().startsWith('#')
  while (isComment(statements[index - 1])) index--
  return inserted(text, statements[index]?.start ?? 0, `${line}${eol}`, eol)
}

function inserted(text: string, at: number, line: string, eol: string): string {
  const gap = at === 0 || text[at - 1] === '\n' ? '' : eol
  return `${text.slice(0, at)}${gap}${line}${eol}${text.slice(at)}`
}

/** Removes the assignments at and below the path, and the headers of tables there. Comments stay. */
function without(text: string, statements: readonly TomlStatement[], path: readonly string[]): string {
  const isBelow = ({ kind, path: other }: TomlStatement): boolean => kind !== 'rest' && other.length >= path.length && isSame(other.slice(0, path.length), path)
  return statements
    .filter(statement => !isBelow(statement))
    .map(({ start, end }) => text.slice(start, end))
    .join('')
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at])
}

function tomlKey(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : tomlText(name)
}

/** Returns a basic string. The escapes of JSON are valid in TOML. TOML requires an escape for DEL too. */
function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007F')
}

function tomlValue(value: SettingValue): string {
  if (typeof value === 'string') return tomlText(value)
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`
  if (typeof value === 'object') throw cannotChange('a group of settings has to be set field by field')
  return String(value)
}

/** Returns the settings in the text. Throws ConnectError when it is not TOML. */
export function tomlSettings(text: string): Settings {
  try {
    // Integers beyond 2^53 must stay exact for the comparison.
    return plainly(parse(text, { integersAsBigInt: 'asNeeded' }))
  } catch (error) {
    if (error instanceof TomlError) throw cannotChange(`it is not TOML: ${error.message.split('\n')[0]} (line ${error.line})`)
    throw error
  }
}

/** Returns objects that all have the same prototype, so that they can be compared. The parser makes some objects without a prototype. */
function plainly(value: object): Settings {
  const walk = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(walk)
    if (inner instanceof Date) return `date ${String(inner)}`
    if (typeof inner === 'object' && inner !== null) return Object.fromEntries(Object.entries(inner).map(([name, field]) => [name, walk(field)]))
    return inner
  }
  const made = walk(value)
  return isSettings(made) ? made : {}
}
