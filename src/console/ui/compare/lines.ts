import { diffArrays } from 'diff'

/** A part of a text that another text has differently: lines `from` to `to` (not included) of the first text became `lines`. */
export interface Hunk {
  readonly from: number
  readonly to: number
  readonly lines: readonly string[]
}

/** The most time that one comparison takes. Texts that have nothing in common would take minutes. */
const compareMsMax = 1_000

export const linesOf = (text: string): string[] => text.split('\n')

/** Returns where two lists of lines differ, in order. Lists that take too long to compare differ as a whole. */
export function hunksOf(before: readonly string[], after: readonly string[]): readonly Hunk[] {
  const changes = diffArrays([...before], [...after], { timeout: compareMsMax })
  if (changes === undefined) return [{ from: 0, to: before.length, lines: after }]
  const hunks: { from: number; to: number; lines: string[] }[] = []
  let at = 0
  let open: { from: number; to: number; lines: string[] } | null = null
  for (const { added, removed, value } of changes) {
    if (!added && !removed) {
      at += value.length
      open = null
      continue
    }
    if (open === null) {
      open = { from: at, to: at, lines: [] }
      hunks.push(open)
    }
    if (added) open.lines.push(...value)
    else {
      at += value.length
      open.to = at
    }
  }
  return hunks
}
