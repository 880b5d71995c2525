/** Shows files and folders to the model. The functions are pure. */
import { memoryToolText } from './memory-tool-text.ts'

/** One line of a listing. Null as the size means a folder. */
export interface ListingItem {
  /** The path below the listed folder. */
  readonly path: string
  readonly sizeBytes: number | null
}

const linesMax = 999_999
const numberWidth = String(linesMax).length
const units = ['B', 'K', 'M', 'G'] as const
/** The size that every folder shows. Shared memory has no folders, so this is the usual size of a folder in a file system: 4096 bytes. */
const folderSizeBytes = 4096

/** Returns the listing of a folder. `path` is the path as the model wrote it. */
export function listingText(path: string, items: readonly ListingItem[]): string {
  const lines = items.map(item => `${sizeText(item.sizeBytes ?? folderSizeBytes)}\t${path}/${item.path}${item.sizeBytes === null ? '/' : ''}`)
  return [memoryToolText.listing(path), `${sizeText(folderSizeBytes)}\t${path}`, ...lines].join('\n')
}

/** Returns a file with line numbers, completely or in part. Throws when it has too many lines. */
export function contentText(path: string, content: string, range: readonly number[] | undefined): string {
  const lines = content.split('\n')
  if (lines.length > linesMax) throw new Error(memoryToolText.tooManyLines(path, lines.length, linesMax))
  const [first = 1, last = -1] = range ?? []
  const skipped = Math.max(1, first) - 1
  const shown = lines.slice(skipped, last === -1 ? lines.length : last)
  return [memoryToolText.content(path), numbered(shown, skipped)].join('\n')
}

/** Returns the lines around a change, two on each side. */
export function changeText(content: string, changedLine: number): string {
  const skipped = Math.max(0, changedLine - 3)
  return [memoryToolText.replaced, numbered(content.split('\n').slice(skipped, changedLine + 2), skipped)].join('\n')
}

/** Returns the numbers of the lines that contain the text, counted from 1. A text with a line break is in no single line. */
export function linesWith(content: string, wanted: string): number[] {
  return content.split('\n').flatMap((line, at) => (line.includes(wanted) ? [at + 1] : []))
}

function numbered(lines: readonly string[], skipped: number): string {
  return lines.map((line, at) => `${String(skipped + at + 1).padStart(numberWidth)}\t${line}`).join('\n')
}

function sizeText(bytes: number): string {
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit++
  }
  return `${Number.isInteger(size) ? size : size.toFixed(1)}${units[unit]}`
}
