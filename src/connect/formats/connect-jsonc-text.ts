/** Changes values in the text of JSON with comments. The rest of the text stays as it was typed. */
import { type Node, parseTree } from 'jsonc-parser'
import type { SettingValue } from '../connect-edits.ts'

/** The layout of a file. */
export interface JsonLayout {
  /** One step of indentation. */
  readonly step: string
  readonly eol: string
}

/** Returns the layout: the indentation of the file's first indented line, and its line ends. */
export function layoutOf(text: string): JsonLayout {
  return { step: /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ', eol: text.includes('\r\n') ? '\r\n' : '\n' }
}

/** Returns the text with the value at the path. Missing objects of the path are created. */
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

/** Returns the text with one more item in the existing list at the path. */
export function withItemAt(text: string, path: readonly string[], item: SettingValue, layout: JsonLayout): string {
  const list = path.reduce((at, name) => propertyOf(at, name)?.children?.[1] ?? at, rootOf(text))
  return withMember(text, list, indent => laidOut(item, indent, layout), layout)
}

/** Returns the text without the property at the path. Comments around the property stay. A line that contained only the property is removed. */
export function withoutValueAt(text: string, path: readonly string[]): string {
  const parent = path.slice(0, -1).reduce<Node | undefined>((at, name) => at && propertyOf(at, name)?.children?.[1], rootOf(text))
  const members = parent?.children ?? []
  const property = parent && propertyOf(parent, path.at(-1) ?? '')
  if (property === undefined) return text
  const comma = commaAfter(text, endOf(property))
  const before = members[members.indexOf(property) - 1]
  // When the removed member is the last one and has no comma after it, the comma before it is removed too.
  const commaBefore = comma === null && before !== undefined ? commaAfter(text, endOf(before)) : null
  const cuts = [...(commaBefore === null ? [] : [[commaBefore, commaBefore + 1] as const]), [property.offset, endOf(property)] as const]
  if (comma !== null) cuts.push([comma, comma + 1])
  return cuts.reduceRight((now, [from, to]) => withoutRange(now, from, to), text)
}

/** Adds a member after the last member of an object or list. The new member comes after the comments on the line of the last member. */
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

/** Removes a range. Removes the whole line when the line contains nothing else. */
function withoutRange(text: string, from: number, to: number): string {
  const lineStart = text.lastIndexOf('\n', from - 1) + 1
  const lineBreak = text.indexOf('\n', to)
  const isAlone = lineStart > 0 && lineBreak >= 0 && text.slice(lineStart, from).trim() === '' && text.slice(to, lineBreak).trim() === ''
  return isAlone ? text.slice(0, lineStart) + text.slice(lineBreak + 1) : text.slice(0, from) + text.slice(to)
}

/** Returns the position of the comma after a member. Returns null when it has none. */
function commaAfter(text: string, from: number): number | null {
  const at = behind(/(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y, text, from)
  return text[at] === ',' ? at : null
}

/** Returns the position after the comments that follow on the same line. */
function afterCommentsOfLine(text: string, from: number): number {
  return behind(/(?:[ \t]*(?:\/\/[^\r\n]*|\/\*[\s\S]*?\*\/))*/y, text, from)
}

/** Returns the end of the match that begins at `from`. The expression must be sticky. */
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

/** Returns the last member with that name, because parsers use the last one. */
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
