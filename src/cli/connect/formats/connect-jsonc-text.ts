/** Changes in the text of JSON with comments: what is not changed keeps every character that it has. */
import { type Node, parseTree } from 'jsonc-parser'
import type { SettingValue } from '../connect-edits.ts'

/** How a file is laid out. */
export interface JsonLayout {
  /** One step of indentation. */
  readonly step: string
  readonly eol: string
}

/** The indentation of the file's first indented line, its line ends. */
export function layoutOf(text: string): JsonLayout {
  return { step: /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ', eol: text.includes('\r\n') ? '\r\n' : '\n' }
}

/** The text with the value at the path; objects on the way that are missing are made. */
export function withValueAt(text: string, path: readonly string[], value: SettingValue, layout: JsonLayout): string {
  let at = rootOf(text)
  for (const [depth, name] of path.entries()) {
    const next = propertyOf(at, name)?.children?.[1]
    if (next === undefined) {
      const made = path.slice(depth + 1).reduceRight<SettingValue>((inner, outer) => ({ [outer]: inner }), value)
      return withMember(text, at, indent => `${JSON.stringify(name)}: ${laidOut(made, indent, layout)}`, layout)
    }
    at = next
  }
  return text.slice(0, at.offset) + laidOut(value, indentAt(text, at.offset), layout) + text.slice(endOf(at))
}

/** The text with one more item in the list at the path, which is there. */
export function withItemAt(text: string, path: readonly string[], item: SettingValue, layout: JsonLayout): string {
  const list = path.reduce((at, name) => propertyOf(at, name)?.children?.[1] ?? at, rootOf(text))
  return withMember(text, list, indent => laidOut(item, indent, layout), layout)
}

/** The text without the property at the path; comments around it stay, and a line that was its alone goes. */
export function withoutValueAt(text: string, path: readonly string[]): string {
  const parent = path.slice(0, -1).reduce<Node | undefined>((at, name) => at && propertyOf(at, name)?.children?.[1], rootOf(text))
  const members = parent?.children ?? []
  const property = parent && propertyOf(parent, path.at(-1) ?? '')
  if (property === undefined) return text
  const comma = commaAfter(text, endOf(property))
  const before = members[members.indexOf(property) - 1]
  // The last member of a list without a comma at its end leaves the comma before it.
  const commaBefore = comma === null && before !== undefined ? commaAfter(text, endOf(before)) : null
  const cuts = [...(commaBefore === null ? [] : [[commaBefore, commaBefore + 1] as const]), [property.offset, endOf(property)] as const]
  if (comma !== null) cuts.push([comma, comma + 1])
  return cuts.reduceRight((now, [from, to]) => withoutRange(now, from, to), text)
}

/** Adds a member behind the last one of an object or list, behind the comments in that one's line too. */
function withMember(text: string, parent: Node, memberAt: (indent: string) => string, { step, eol }: JsonLayout): string {
  const close = endOf(parent) - 1
  const outer = indentAt(text, parent.offset)
  const last = parent.children?.at(-1)
  if (last === undefined) {
    const inside = text.slice(parent.offset + 1, close).trimEnd()
    return `${text.slice(0, parent.offset + 1)}${inside}${eol}${outer}${step}${memberAt(outer + step)}${eol}${outer}${text.slice(close)}`
  }
  const isOneLine = !text.slice(parent.offset, last.offset).includes('\n')
  const indent = isOneLine ? outer + step : indentAt(text, last.offset)
  const comma = commaAfter(text, endOf(last))
  const after = comma === null ? endOf(last) : comma + 1
  const lineEnd = afterCommentsOfLine(text, after)
  const member = `${eol}${indent}${memberAt(indent)}${comma === null ? '' : ','}`
  const head = `${text.slice(0, endOf(last))}${comma === null ? ',' : ''}${text.slice(endOf(last), lineEnd)}${member}`
  const tail = text.slice(lineEnd, close)
  return tail.includes('\n') ? `${head}${text.slice(lineEnd)}` : `${head}${tail.trimEnd()}${eol}${outer}${text.slice(close)}`
}

/** Takes a range out, and its line when nothing else stands there. */
function withoutRange(text: string, from: number, to: number): string {
  const lineStart = text.lastIndexOf('\n', from - 1) + 1
  const lineBreak = text.indexOf('\n', to)
  const isAlone = lineStart > 0 && lineBreak >= 0 && text.slice(lineStart, from).trim() === '' && text.slice(to, lineBreak).trim() === ''
  return isAlone ? text.slice(0, lineStart) + text.slice(lineBreak + 1) : text.slice(0, from) + text.slice(to)
}

/** Where the comma behind a member stands; null: it has none. */
function commaAfter(text: string, from: number): number | null {
  const at = behind(/(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y, text, from)
  return text[at] === ',' ? at : null
}

/** Behind the comments that follow in the same line. */
function afterCommentsOfLine(text: string, from: number): number {
  return behind(/(?:[ \t]*(?:\/\/[^\r\n]*|\/\*[\s\S]*?\*\/))*/y, text, from)
}

/** Where the match ends that begins there; the expression is sticky. */
function behind(expression: RegExp, text: string, from: number): number {
  expression.lastIndex = from
  expression.exec(text)
  return expression.lastIndex
}

function rootOf(text: string): Node {
  const root = parseTree(text, [], { allowTrailingComma: true })
  if (root === undefined) throw new Error('the text has no value')
  return root
}

/** The last one of that name, which is the one that counts. */
function propertyOf(object: Node, name: string): Node | undefined {
  return object.type === 'object' ? object.children?.findLast(({ children }) => children?.[0]?.value === name) : undefined
}

function endOf({ offset, length }: Node): number {
  return offset + length
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset))?.[0] ?? ''
}

function laidOut(value: SettingValue, indent: string, { step, eol }: JsonLayout): string {
  return JSON.stringify(value, null, step.slice(0, 10)).replaceAll('\n', `${eol}${indent}`)
}
