/** Looks for characters in a definition that a person who approves it cannot see, and for advice that the person should have. */
import type { ListedTool } from '../callable-tool.ts'

/** Something that a definition contains. */
export interface Finding {
  readonly kind: 'zero_width' | 'bidi' | 'tag' | 'variation' | 'control' | 'remote_ref'
  /** JSON pointer of the text. Characters outside of printable ASCII are replaced. */
  readonly at: string
  /** The first such character, as `U+200B`. Null when the finding is not about a character. */
  readonly code_point: string | null
  /** True: the definition cannot be approved. False: advice. */
  readonly blocks: boolean
}

const findingsMax = 20
const pointerMaxChars = 200

/** Groups of characters without a shape of their own. Each can hide text from a person that a model still reads. Decision 0783 says why. */
const unseen: readonly (readonly [kind: Finding['kind'], pattern: RegExp])[] = [
  ['tag', /[\u{e0000}-\u{e007f}]/u],
  ['bidi', /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u],
  // One selector of emoji or text style after a character is usual. Others, and several in a row, can carry hidden bytes.
  ['variation', /[\ufe00-\ufe0d\u{e0100}-\u{e01ef}]|[\ufe0e\ufe0f]{2}/u],
  [
    'zero_width',
    /\u034f|\u17b4|\u17b5|\u180b|\u180c|\u180d|\u180f|[\u00ad\u115f\u1160\u180e\u200b-\u200d\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufff8\u{1d173}-\u{1d17a}]/u,
  ],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point.
  ['control', /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/u],
]

/** Returns what a definition contains, at most 20 findings. Those that block approval come first. It reads names of members as well as texts. */
export function findingsIn(tool: ListedTool): readonly Finding[] {
  const found: Finding[] = []
  const open: { readonly value: unknown; readonly at: string }[] = [{ value: tool, at: '' }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, at } = next
    if (typeof value === 'string') note(found, value, at)
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      const place = pointer(at, name)
      if (!Array.isArray(value)) note(found, name, place)
      if (name === '$ref' && typeof member === 'string' && !member.startsWith('#'))
        found.push({ kind: 'remote_ref', at: place, code_point: null, blocks: false })
      open.push({ value: member, at: place })
    }
  }
  return [...found.filter(({ blocks }) => blocks), ...found.filter(({ blocks }) => !blocks)].slice(0, findingsMax)
}

function note(found: Finding[], text: string, at: string): void {
  for (const [kind, pattern] of unseen) {
    const character = pattern.exec(text)?.[0]
    if (character === undefined) continue
    const codePoint = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    found.push({ kind, at, code_point: `U+${codePoint}`, blocks: true })
  }
}

function pointer(at: string, name: string): string {
  const safe = name
    .replace(/[^\x20-\x7e]/gu, '?')
    .replaceAll('~', '~0')
    .replaceAll('/', '~1')
  return `${at}/${safe}`.slice(0, pointerMaxChars)
}
