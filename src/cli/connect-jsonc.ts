/** Merges into JSON files with comments, as editors and coding agents keep them. */
import { isDeepStrictEqual } from 'node:util'
import { applyEdits, type EditResult, type FormattingOptions, modify, type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { cannotChange, edited, isSettings, listAt, missingEdits, type SettingEdit, type Settings, settingAt } from './connect-edits.ts'

const byteOrderMark = '\uFEFF'

/**
 * The text with the edits made; the same text when all are so already. Comments, order and every other value stay;
 * a neighbour that shares its line with a change is laid out anew.
 * Throws CommandError when the text is no JSON object, or cannot be changed so.
 */
export function editJsonc(text: string, edits: readonly SettingEdit[]): string {
  const mark = text.startsWith(byteOrderMark) ? byteOrderMark : ''
  const given = text.slice(mark.length)
  const start = given.trim() === '' ? '{}\n' : given
  const before = settingsIn(start)
  const missing = missingEdits(before, edits)
  if (missing.length === 0) return text
  const formattingOptions = formattingOf(start)
  const after = missing.reduce((now, edit) => applyEdits(now, textEdits(now, edit, formattingOptions)), start)
  if (!isDeepStrictEqual(settingsIn(after), edited(before, edits))) throw cannotChange('it is written in a way that cannot be changed safely')
  return mark + after
}

function textEdits(text: string, edit: SettingEdit, formattingOptions: FormattingOptions): EditResult {
  const path = [...edit.path]
  if (edit.kind === 'drop') return modify(text, path, undefined, { formattingOptions })
  if (edit.kind === 'set') return modify(text, path, edit.value, { formattingOptions })
  const settings = settingsIn(text)
  // An item of a list that is not there yet makes the list.
  if (settingAt(settings, path) === undefined) return modify(text, path, [edit.item], { formattingOptions })
  return modify(text, [...path, listAt(settings, path).length], edit.item, { formattingOptions, isArrayInsertion: true })
}

/** What the text of such a file means; {} for an empty one. Throws CommandError when it is no JSON object. */
export function jsoncSettings(text: string): Settings {
  const given = text.startsWith(byteOrderMark) ? text.slice(byteOrderMark.length) : text
  return given.trim() === '' ? {} : settingsIn(given)
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

/** As the file is written: the indentation of its first indented line, its line ends. */
function formattingOf(text: string): FormattingOptions {
  const indent = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '
  return {
    insertSpaces: !indent.startsWith('\t'),
    tabSize: indent.startsWith('\t') ? 4 : Math.min(indent.length, 8),
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  }
}
