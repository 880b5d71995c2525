import { type Hunk, hunksOf, linesOf } from './lines.ts'

/** A piece of a merge of two texts that come from the same base. */
export interface MergePiece {
  /** Who changed it. `conflict`: both did, in different ways. `both`: both did the same. */
  readonly kind: 'same' | 'theirs' | 'yours' | 'both' | 'conflict'
  /** The first line in the base, from 1. */
  readonly line: number
  readonly base: readonly string[]
  readonly theirs: readonly string[]
  readonly yours: readonly string[]
}

/** What a person chose for a conflict. */
export type MergeChoice = 'theirs' | 'yours' | 'both'

interface Region {
  from: number
  to: number
  readonly theirs: Hunk[]
  readonly yours: Hunk[]
}

/** Returns the pieces of a merge, in order. Changes that overlap or touch are one piece. */
export function mergeOf(base: string, theirs: string, yours: string): readonly MergePiece[] {
  const lines = linesOf(base)
  const regions = regionsOf(hunksOf(lines, linesOf(theirs)), hunksOf(lines, linesOf(yours)))
  const pieces: MergePiece[] = []
  let at = 0
  const same = (to: number): void => {
    const part = lines.slice(at, to)
    if (part.length > 0) pieces.push({ kind: 'same', line: at + 1, base: part, theirs: part, yours: part })
  }
  for (const region of regions) {
    same(region.from)
    pieces.push(pieceOf(lines, region))
    at = region.to
  }
  same(lines.length)
  return pieces
}

function regionsOf(theirs: readonly Hunk[], yours: readonly Hunk[]): Region[] {
  const all = [...theirs.map(hunk => ({ hunk, side: 'theirs' as const })), ...yours.map(hunk => ({ hunk, side: 'yours' as const }))]
  all.sort((a, b) => a.hunk.from - b.hunk.from || a.hunk.to - b.hunk.to)
  const regions: Region[] = []
  for (const { hunk, side } of all) {
    let region = regions.at(-1)
    if (region === undefined || hunk.from > region.to) {
      region = { from: hunk.from, to: hunk.to, theirs: [], yours: [] }
      regions.push(region)
    }
    region.to = Math.max(region.to, hunk.to)
    region[side].push(hunk)
  }
  return regions
}

function pieceOf(lines: readonly string[], { from, to, theirs, yours }: Region): MergePiece {
  const texts = { base: lines.slice(from, to), theirs: applied(lines, from, to, theirs), yours: applied(lines, from, to, yours) }
  const isEqual = texts.theirs.length === texts.yours.length && texts.theirs.every((line, at) => line === texts.yours[at])
  const kind = yours.length === 0 ? 'theirs' : theirs.length === 0 ? 'yours' : isEqual ? 'both' : 'conflict'
  return { kind, line: from + 1, ...texts }
}

/** Returns lines `from` to `to` of the base with the hunks of one side in them. */
function applied(lines: readonly string[], from: number, to: number, hunks: readonly Hunk[]): string[] {
  const result: string[] = []
  let at = from
  for (const hunk of hunks) {
    result.push(...lines.slice(at, hunk.from), ...hunk.lines)
    at = hunk.to
  }
  return [...result, ...lines.slice(at, to)]
}

/** Returns the merged text. `choices` has the choice for each conflict by its place among the pieces. A conflict without a choice keeps your text. */
export function mergedText(pieces: readonly MergePiece[], choices: ReadonlyMap<number, MergeChoice>): string {
  return pieces
    .flatMap((piece, place) => {
      if (piece.kind === 'theirs') return piece.theirs
      if (piece.kind !== 'conflict') return piece.yours
      const choice = choices.get(place) ?? 'yours'
      return choice === 'both' ? [...piece.theirs, ...piece.yours] : piece[choice]
    })
    .join('\n')
}
