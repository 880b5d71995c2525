/** Shows definitions of tools and their changes as lines of text. A server wrote them, so they are printed so that nothing in them is hidden. */
import { plain } from '../command-output.ts'

/** The most places of a comparison. The gateway stops there. */
const differencesMax = 200
/** Characters that a person cannot see, or that change the direction of text. */
const hidden = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu

/** Returns the lines of a text without control characters. */
export function linesOf(text: string): string[] {
  return text.split(/\r\n|\n|\r/).map(plain)
}

/** Returns a value as lines of JSON. Characters that a person cannot see are written as `\u` and their number. */
export function jsonLines(value: unknown): string[] {
  const json = JSON.stringify(value, null, 2) ?? 'null'
  const shown = json.replace(hidden, character => [...Array(character.length).keys()].map(at => escaped(character.charCodeAt(at))).join(''))
  return linesOf(shown)
}

const escaped = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`

/** What a person sees of a tool before an approval. */
export interface ToolDetail {
  readonly name: string
  readonly state: string
  readonly hash: string
  readonly approvable: boolean
  readonly findings: readonly { readonly kind: string; readonly at: string; readonly code_point: string | null; readonly blocks: boolean }[]
  readonly definition: unknown
  readonly approved_definition: unknown
  readonly diff: readonly { readonly at: string; readonly change: string; readonly approved?: unknown; readonly seen?: unknown }[]
}

/** Number of digits of a hash that people copy. */
export const shortHashChars = 12

/** Returns the lines about a tool: what was found, and its whole definition, or what changed since the approval. */
export function detailLines(tool: ToolDetail): string[] {
  return [
    plain(`${tool.name}  ${tool.state}  ${tool.hash.slice(0, shortHashChars)}${tool.approvable ? '' : '  cannot be approved'}`),
    ...tool.findings.map(({ kind, at, code_point: point, blocks }) =>
      plain(`  ${blocks ? 'blocks the approval' : 'look at it'}: ${kind} at ${at}${point === null ? '' : ` (${point})`}`),
    ),
    ...(tool.diff.length >= differencesMax ? ['  More places differ than a comparison shows, so this is the whole definition.'] : []),
    ...(tool.approved_definition === null || tool.state === 'pending' || tool.diff.length >= differencesMax
      ? marked('+', tool.definition)
      : tool.diff.flatMap(({ at, change, approved, seen }) => [
          plain(`  ${change} ${at === '' ? '(the definition)' : at}`),
          ...(approved === undefined ? [] : marked('-', approved)),
          ...(seen === undefined ? [] : marked('+', seen)),
        ])),
  ]
}

const marked = (mark: '+' | '-', value: unknown): string[] => jsonLines(value).map(line => `  ${mark} ${line}`)
