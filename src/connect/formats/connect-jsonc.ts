/** Merges settings into JSON files with comments, as editors and coding agents have them. */
import { isDeepStrictEqual } from 'node:util'
import { type ParseError, parse, printParseErrorCode, stripComments } from 'jsonc-parser'
import { cannotChange, edited, isSettings, missingEdits, type SettingEdit, type Settings, settingAt } from '../connect-edits.ts'
import { type JsonLayout, layoutOf, withItemAt, withoutValueAt, withValueAt } from './connect-jsonc-text.ts'

const byteOrderMark = '\uFEFF'

/**
 * Returns the text with the edits. Returns the same text when all edits are already in effect. Comments, order and every other value stay as they
 * were typed. Throws ConnectError when the text is not a JSON object, or cannot be changed safely.
 */
export function editJsonc(text: string, edits: readonly SettingEdit[]): string {
  const mark = text.startsWith(byteOrderMark) ? byteOrderMark : ''
  const given = text.slice(mark.length)
  const layout = layoutOf(given)
  const start = withObject(given, layout)
  const before = settingsIn(start)
  const missing = missingEdits(before, edits)
  if (missing.length === 0) return text
  const after = missing.reduce((now, edit) => changed(now, edit, layout), start)
  if (!isDeepStrictEqual(settingsIn(after), edited(before, edits))) throw cannotChange('it is written in a way that cannot be changed safely')
  return mark + after
}

/** Returns the text with an empty object appended when it has no settings. A text of only blanks and comments has none. */
function withObject(text: string, { eol }: JsonLayout): string {
  if (stripComments(text).trim() !== '') return text
  return text.trim() === '' ? `{}${eol}` : `${text.trimEnd()}${eol}{}${eol}`
}

function changed(text: string, edit: SettingEdit, layout: JsonLayout): string {
  if (edit.kind === 'drop') return withoutValueAt(text, edit.path)
  if (edit.kind === 'set') return withValueAt(text, edit.path, edit.value, layout)
  // An item for a missing list creates the list.
  if (settingAt(settingsIn(text), edit.path) === undefined) return withValueAt(text, edit.path, [edit.item], layout)
  return withItemAt(text, edit.path, edit.item, layout)
}

/** Returns the settings of a JSON file with comments. Returns {} for an empty file. Throws ConnectError when the file is not a JSON object. */
export function jsoncSettings(text: string): Settings {
  const given = text.startsWith(byteOrderMark) ? text.slice(byteOrderMark.length) : text
  return settingsIn(withObject(given, layoutOf(given)))
}

function settingsIn(text: string): Settings {
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true })
  const [first] = errors
  if (first !== undefined) {
    const before = text.slice(0, first.offset).split('\n')
    throw cannotChange(`it is not JSON: ${printParseErrorCode(first.error)} in line ${before.length}`)
  }
  if (!isSettings(value)) throw cannotChange('it is JSON, but no object')
  return value
}
