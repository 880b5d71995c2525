/** A part of a text that fits into one answer, and where the next part begins. Pure. */
import { jsonBytes } from './tool-memory-parts.ts'

export interface SliceWish {
  /** Lines to skip. */
  readonly offsetLine: number
  /** Characters of the next line to skip. */
  readonly offsetChar: number
  readonly limitLines: number | undefined
  /** Bound of the part, in bytes of JSON. */
  readonly bytesMax: number
}

export interface Slice {
  readonly text: string
  /** Lines of which something is in `text`. */
  readonly lines: number
  readonly totalLines: number
  /** Null when nothing follows. */
  readonly next: { readonly offset_line: number; readonly offset_char: number } | null
}

/** Whole lines as far as they fit; of a first line that is longer than the bound, its beginning. */
export function sliceOf(text: string, { offsetLine, offsetChar, limitLines, bytesMax }: SliceWish): Slice {
  const all = text.split('\n')
  const end = limitLines === undefined ? all.length : Math.min(all.length, offsetLine + limitLines)
  const [first, ...others] = all.slice(offsetLine, end)
  if (first === undefined) return { text: '', lines: 0, totalLines: all.length, next: null }
  const rest = first.slice(offsetChar)
  const fittingChars = charsThatFit(rest, bytesMax)
  if (fittingChars < rest.length) {
    const next = { offset_line: offsetLine, offset_char: offsetChar + fittingChars }
    return { text: rest.slice(0, fittingChars), lines: 1, totalLines: all.length, next }
  }
  let bytes = jsonBytes(rest)
  const over = others.findIndex(line => {
    bytes += jsonBytes(line)
    return bytes > bytesMax
  })
  const chosen = [rest, ...(over < 0 ? others : others.slice(0, over))]
  const nextLine = offsetLine + chosen.length
  return {
    text: chosen.join('\n'),
    lines: chosen.length,
    totalLines: all.length,
    next: nextLine < all.length ? { offset_line: nextLine, offset_char: 0 } : null,
  }
}

/** How many characters of a line fit; a character beyond the basic plane is never cut in two. */
function charsThatFit(line: string, bytesMax: number): number {
  // A character takes at most six bytes of JSON, so most lines need no count.
  if (line.length * 6 + 2 <= bytesMax || jsonBytes(line) <= bytesMax) return line.length
  let bytes = 2
  let chars = 0
  for (const char of line) {
    bytes += jsonBytes(char) - 2
    if (bytes > bytesMax && chars > 0) break
    chars += char.length
  }
  return chars
}
