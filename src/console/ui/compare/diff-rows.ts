import { diffWordsWithSpace } from 'diff'
import { hunksOf, linesOf } from './lines.ts'

/** A part of a line. `isChanged`: the other version has something else here. */
export interface DiffPart {
  readonly text: string
  readonly isChanged: boolean
}

interface DiffLine {
  /** From 1. */
  readonly line: number
  readonly parts: readonly DiffPart[]
}

/** A row of a comparison side by side. A line that only one version has leaves the other side empty. */
export interface DiffRow {
  readonly kind: 'same' | 'removed' | 'added' | 'changed'
  readonly before: DiffLine | null
  readonly after: DiffLine | null
}

/** Rows that are shown, or rows that are the same in both versions and far from a change. */
export interface DiffBlock {
  readonly isFolded: boolean
  readonly rows: readonly DiffRow[]
}

/** Lines around a change that are shown with it. */
const contextLines = 3
/** Fewer lines than this are not worth a fold. */
const foldFrom = 4
/** In longer lines, only the line as a whole is marked. */
const wordsCharsMax = 2_000
/** From this share of equal text on, two lines are versions of one line, and their words are compared. */
const alikeShare = 0.35
const wordsMsMax = 50

/** Returns all rows of a comparison of two texts. */
export function diffRows(before: string, after: string): DiffRow[] {
  const old = linesOf(before)
  const rows: DiffRow[] = []
  let at = 0
  let right = 1
  const same = (to: number): void => {
    for (; at < to; at++) rows.push({ kind: 'same', before: whole(at + 1, old[at], false), after: whole(right++, old[at], false) })
  }
  for (const { from, to, lines } of hunksOf(old, linesOf(after))) {
    same(from)
    for (let place = 0; place < Math.max(to - from, lines.length); place++) {
      const left = from + place < to ? old[from + place] : undefined
      const fresh = lines[place]
      rows.push(pairOf(left, fresh, from + place + 1, right))
      if (fresh !== undefined) right++
    }
    at = to
  }
  same(old.length)
  return rows
}

const whole = (line: number, text = '', isChanged = true): DiffLine => ({ line, parts: [{ text, isChanged }] })

function pairOf(left: string | undefined, fresh: string | undefined, leftLine: number, rightLine: number): DiffRow {
  if (left === undefined) return { kind: 'added', before: null, after: whole(rightLine, fresh, false) }
  if (fresh === undefined) return { kind: 'removed', before: whole(leftLine, left, false), after: null }
  const words = wordsOf(left, fresh)
  if (words === null) return { kind: 'changed', before: whole(leftLine, left, false), after: whole(rightLine, fresh, false) }
  return { kind: 'changed', before: { line: leftLine, parts: words.before }, after: { line: rightLine, parts: words.after } }
}

/** Returns the words of two lines that differ. Null for lines that have little in common. */
function wordsOf(left: string, fresh: string): { before: DiffPart[]; after: DiffPart[] } | null {
  if (left.length + fresh.length > wordsCharsMax) return null
  const changes = diffWordsWithSpace(left, fresh, { timeout: wordsMsMax })
  if (changes === undefined) return null
  const kept = changes.filter(({ added, removed }) => !added && !removed).reduce((sum, { value }) => sum + value.trim().length, 0)
  if (kept < alikeShare * Math.max(left.trim().length, fresh.trim().length)) return null
  const side = (other: 'added' | 'removed') =>
    changes.filter(change => !change[other]).map(({ value, added, removed }) => ({ text: value, isChanged: added || removed }))
  return { before: side('added'), after: side('removed') }
}

/** Returns the rows in blocks, with the long equal parts folded. */
export function foldedRows(rows: readonly DiffRow[]): DiffBlock[] {
  const shown = new Uint8Array(rows.length)
  rows.forEach((row, place) => {
    if (row.kind !== 'same') shown.fill(1, Math.max(0, place - contextLines), place + contextLines + 1)
  })
  const blocks: { isFolded: boolean; rows: DiffRow[] }[] = []
  rows.forEach((row, place) => {
    const isFolded = shown[place] === 0
    const last = blocks.at(-1)
    if (last?.isFolded === isFolded) last.rows.push(row)
    else blocks.push({ isFolded, rows: [row] })
  })
  return blocks.map(block => (block.rows.length < foldFrom ? { ...block, isFolded: false } : block))
}

/** Returns how many lines were added and removed. */
export function diffCounts(rows: readonly DiffRow[]): { readonly added: number; readonly removed: number } {
  const of = (...kinds: DiffRow['kind'][]): number => rows.filter(({ kind }) => kinds.includes(kind)).length
  return { added: of('added', 'changed'), removed: of('removed', 'changed') }
}

/** A line of a comparison in one column. */
export interface UnifiedLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly before: number | null
  readonly after: number | null
  readonly parts: readonly DiffPart[]
}

/** Returns rows as lines of one column: of each change first what was removed, then what was added. */
export function unifiedLines(rows: readonly DiffRow[]): UnifiedLine[] {
  const lines: UnifiedLine[] = []
  let added: UnifiedLine[] = []
  for (const { kind, before, after } of rows) {
    if (kind === 'same') {
      lines.push(...added, { kind, before: before?.line ?? null, after: after?.line ?? null, parts: after?.parts ?? [] })
      added = []
      continue
    }
    if (before !== null) lines.push({ kind: 'removed', before: before.line, after: null, parts: before.parts })
    if (after !== null) added.push({ kind: 'added', before: null, after: after.line, parts: after.parts })
  }
  return [...lines, ...added]
}
