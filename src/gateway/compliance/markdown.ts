/** Markdown in which what others named (models, servers, agents, organisations) is text and nothing else. Decision 0350 says why. */

/** Control characters, separators of lines, and characters that hide text or turn its direction. */
const notPlain = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu
/** What no renderer reads as markup. A colon is among it unless a link could begin there. */
const special = /[^\p{L}\p{M}\p{N} /.:-]|:(?=\/)|(?<=www)\./giu

/** The text as one harmless line: every character that could be markup is written as its number, which no renderer takes for markup. */
export function markdownText(text: string): string {
  return text
    .replace(notPlain, ' ')
    .trim()
    .replace(special, character => `&#${character.codePointAt(0)};`)
}

/** A table with harmless cells. Numbers are right-aligned. */
export function markdownTable(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = heads.map((_head, at) =>
    rows.length > 0 && rows.every(row => typeof row[at] === 'number' || /^[\d.]+ %$/.test(String(row[at]))) ? '---:' : '---',
  )
  const body = rows.map(row => line(row.map(cell => (typeof cell === 'number' ? String(cell) : percentOr(cell)))))
  return [line(heads), line(rule), ...body].join('\n')
}

/** A share as reports write it. */
export const percent = (share: number): string => `${share.toFixed(2)} %`

const percentOr = (cell: string): string => (/^\d+\.\d\d %$/.test(cell) ? cell : markdownText(cell) || '–')

/** What both reports mean by India. */
export const indiaRule =
  'A call counts as in India only when every provider that it was sent to is there, as the catalog of this gateway had it when the call was made; one that was sent elsewhere first, and failed there, does not.'
