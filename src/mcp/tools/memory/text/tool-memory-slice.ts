/** Cuts out a part of a text that fits into one answer, and says where the next part begins. */
import { nextTurn } from '../../../../platform/loop/next-turn.ts'
import { jsonBytes } from './tool-memory-parts.ts'

export interface SliceParams {
  /** Number of lines to skip. */
  readonly offsetLine: number
  /** Number of characters to skip in the line after those. */
  readonly offsetChar: number
  readonly limitLines: number | undefined
  /** Maximum size of the part, in bytes of JSON. */
  readonly bytesMax: number
}

export interface Slice {
  readonly text: string
  /** Number of lines that are at least partly in `text`. */
  readonly lines: number
  readonly totalLines: number
  /** Null when there is no next part. */
  readonly next: { readonly offset_line: number; readonly offset_char: number } | null
}

/** Number of characters in which lines are counted before other work of the process runs. They take about 3 milliseconds. */
const countedChars = 1024 * 1024
const newline = 0x0a

/** Returns as many whole lines as fit. When the first line alone is too long, this returns the beginning of that line. */
export async function sliceOf(text: string, { offsetLine, offsetChar, limitLines, bytesMax }: SliceParams): Promise<Slice> {
  const { totalLines, start } = await linesOf(text, offsetLine)
  if (start === null) return { text: '', lines: 0, totalLines, next: null }
  const firstEnd = endOf(text, start)
  const rest = text.slice(Math.min(start + offsetChar, firstEnd), firstEnd)
  const fittingChars = charsThatFit(rest, bytesMax)
  if (fittingChars < rest.length) {
    const next = { offset_line: offsetLine, offset_char: offsetChar + fittingChars }
    return { text: rest.slice(0, fittingChars), lines: 1, totalLines, next }
  }
  const chosen = [rest]
  let bytes = jsonBytes(rest)
  for (let at = firstEnd + 1; at <= text.length && chosen.length < (limitLines ?? totalLines); ) {
    const end = endOf(text, at)
    const line = text.slice(at, end)
    bytes += jsonBytes(line)
    if (bytes > bytesMax) break
    chosen.push(line)
    at = end + 1
  }
  const nextLine = offsetLine + chosen.length
  return { text: chosen.join('\n'), lines: chosen.length, totalLines, next: nextLine < totalLines ? { offset_line: nextLine, offset_char: 0 } : null }
}

/**
 * Returns the number of lines and the position of one line. The position is null when there is no such line. It builds no list of lines, because an
 * object may have very many short lines.
 */
async function linesOf(text: string, wanted: number): Promise<{ totalLines: number; start: number | null }> {
  let totalLines = 1
  let start = wanted === 0 ? 0 : null
  for (let from = 0; from < text.length; from += countedChars) {
    if (from > 0) await nextTurn()
    const end = Math.min(from + countedChars, text.length)
    // For short lines, a look at each character is several times faster than `indexOf`.
    for (let at = from; at < end; at++) {
      if (text.charCodeAt(at) !== newline) continue
      if (totalLines === wanted) start = at + 1
      totalLines++
    }
  }
  return { totalLines, start }
}

function endOf(text: string, start: number): number {
  const end = text.indexOf('\n', start)
  return end < 0 ? text.length : end
}

/** Returns the number of characters of a line that fit. A surrogate pair is never split. */
function charsThatFit(line: string, bytesMax: number): number {
  // A character takes at most six bytes of JSON. Most lines are short enough to need no count.
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
