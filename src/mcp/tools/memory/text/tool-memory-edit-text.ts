/** Replaces a part of a text for memory_edit. The functions are pure. */
import { normalFormC } from '../../../../platform/values/normal-form.ts'
import { occursIn, placesIn } from './tool-memory-find.ts'

export interface EditParams {
  readonly oldText: string
  readonly newText: string
  /** When false, old_text must occur exactly once. */
  readonly replacesAll: boolean
  /** Maximum number of characters of the text after the change. */
  readonly charsMax: number
}

export type EditOutcome =
  | { readonly kind: 'done'; readonly text: string; readonly replaced: number; readonly diff: string }
  /** `hint` says what may be wrong with old_text. It is empty when no cause is found. */
  | { readonly kind: 'absent'; readonly hint: string }
  /** The size that the changed text would have. The text was not changed. */
  | { readonly kind: 'too-long'; readonly chars: number }
  /** `count` is at most `ambiguousMax`. `lines` contains the first lines where old_text begins, counted from 1. */
  | { readonly kind: 'ambiguous'; readonly count: number; readonly lines: readonly number[] }

/** Maximum number of characters of old_text. */
export const oldTextCharsMax = 65_536
/** The search for an ambiguous old_text stops after this many positions. */
export const ambiguousMax = 1_000
const linesNamedMax = 10

/**
 * Returns the text with `oldText` replaced by `newText`. If every line of the text ends with CRLF, a plain line end in the request matches CRLF,
 * because models write plain line ends. The text keeps its line ends.
 */
export function editText(text: string, params: EditParams): EditOutcome {
  const { oldText, newText } = endingLike(text, params)
  // Overlapping positions make an edit ambiguous too.
  const places = placesIn(text, oldText, { isOverlapping: !params.replacesAll, placesMax: params.replacesAll ? text.length : ambiguousMax })
  if (places.length === 0) return { kind: 'absent', hint: hintFor(text, oldText) }
  if (places.length > 1 && !params.replacesAll)
    return { kind: 'ambiguous', count: places.length, lines: places.slice(0, linesNamedMax).map(place => lineAt(text, place)) }
  const chars = text.length + places.length * (newText.length - oldText.length)
  if (chars > params.charsMax) return { kind: 'too-long', chars }
  const hunks = hunksOf(text, places, oldText, newText)
  return {
    kind: 'done',
    text: replaced(text, places, oldText, newText),
    replaced: places.length,
    diff: diffOf(hunks),
  }
}

function endingLike(text: string, { oldText, newText }: EditParams): { oldText: string; newText: string } {
  const isCrlf = text.includes('\r\n') && !/(?:^|[^\r])\n/.test(text)
  if (!isCrlf || oldText.includes('\r') || newText.includes('\r')) return { oldText, newText }
  return { oldText: oldText.replaceAll('\n', '\r\n'), newText: newText.replaceAll('\n', '\r\n') }
}

function replaced(text: string, places: readonly number[], oldText: string, newText: string): string {
  const parts: string[] = []
  let from = 0
  for (const place of places) {
    parts.push(text.slice(from, place), newText)
    from = place + oldText.length
  }
  return parts.join('') + text.slice(from)
}

function lineAt(text: string, place: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < place; at = text.indexOf('\n', at + 1)) line++
  return line
}

function hintFor(text: string, oldText: string): string {
  const loose = (some: string): string => normalFormC(some).replace(/\s+/g, ' ').trim()
  const looseOld = loose(oldText)
  if (looseOld === '') return ''
  const looseText = loose(text)
  if (occursIn(looseText, looseOld)) return 'The object has the same words with other white space, line ends or Unicode form: copy them exactly.'
  return occursIn(looseText.toLowerCase(), looseOld.toLowerCase()) ? 'The object has the same words in other upper and lower case.' : ''
}

/** Changed lines, before and after the change. */
interface Hunk {
  readonly line: number
  readonly before: readonly string[]
  readonly after: readonly string[]
}

const hunksMax = 5
const hunkLinesMax = 12
const lineCharsMax = 200

/**
 * Returns one hunk for each run of whole lines that the positions touch. Only the first few hunks are returned. `hidden` is the number of the other
 * hunks.
 */
function hunksOf(text: string, places: readonly number[], oldText: string, newText: string): { shown: Hunk[]; hidden: number } {
  const shown: Hunk[] = []
  let at = 0
  while (at < places.length && shown.length < hunksMax) {
    const first = places[at] ?? 0
    const start = first === 0 ? 0 : text.lastIndexOf('\n', first - 1) + 1
    let end = start
    const touched: number[] = []
    for (let place = places[at]; place !== undefined && (touched.length === 0 || place <= end); place = places[++at]) {
      touched.push(place - start)
      if (touched.length > 1 && place + oldText.length <= end) continue
      const lineEnd = text.indexOf('\n', place + oldText.length)
      end = lineEnd < 0 ? text.length : lineEnd
    }
    const block = text.slice(start, end)
    shown.push(trimmed(lineAt(text, start), block.split('\n'), replaced(block, touched, oldText, newText).split('\n')))
  }
  return { shown, hidden: places.length - at }
}

/** Returns the hunk without the equal lines at both ends. */
function trimmed(line: number, before: readonly string[], after: readonly string[]): Hunk {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  return { line: line + head, before: before.slice(head, before.length - tail), after: after.slice(head, after.length - tail) }
}

function diffOf({ shown, hidden }: { readonly shown: readonly Hunk[]; readonly hidden: number }): string {
  const signed = (sign: string, lines: readonly string[]): string[] => [
    ...lines.slice(0, hunkLinesMax).map(line => `${sign} ${cut(line.replace(/\r$/, ''))}`),
    ...(lines.length > hunkLinesMax ? [`${sign} … ${lines.length - hunkLinesMax} more lines`] : []),
  ]
  const hunks = shown.flatMap(({ line, before, after }) => [`@@ line ${line} @@`, ...signed('-', before), ...signed('+', after)])
  return [...hunks, ...(hidden > 0 ? [`… and ${hidden} more places`] : [])].join('\n')
}

function cut(line: string): string {
  return line.length <= lineCharsMax ? line : `${line.slice(0, lineCharsMax).toWellFormed()}…`
}
