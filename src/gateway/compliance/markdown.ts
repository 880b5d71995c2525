/** Markdown in which names from others (models, servers, agents, organisations) are plain text. Decision 0350 says why. */

/** Control characters, line separators, and characters that hide text or change its direction. */
const notPlain = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu
/** Characters that a renderer could read as markup. A colon or a dot is one of them only where a link could begin. */
const special = /[^\p{L}\p{M}\p{N} /.:-]|:(?=\/)|(?<=www)\./giu

/** Returns the text as one harmless line. Every character that could be markup is written as a numeric reference, which no renderer treats as markup. */
export function markdownText(text: string): string {
  return text
    .replace(notPlain, ' ')
    .trim()
    .replace(special, character => `&#${character.codePointAt(0)};`)
}

/** Returns a table with harmless cells. Numbers are right-aligned. */
export function markdownTable(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = heads.map((_head, at) =>
    rows.length > 0 && rows.every(row => typeof row[at] === 'number' || /^[\d.]+ %$/.test(String(row[at]))) ? '---:' : '---',
  )
  const body = rows.map(row => line(row.map(cell => (typeof cell === 'number' ? String(cell) : percentOr(cell)))))
  return [line(heads), line(rule), ...body].join('\n')
}

/** Formats a share for reports. */
export const percent = (share: number): string => `${share.toFixed(2)} %`

const percentOr = (cell: string): string => (/^\d+\.\d\d %$/.test(cell) ? cell : markdownText(cell) || '–')

/** The definition of "in India" in both reports. */
export const indiaRule =
  'A call counts as in India only when every provider that it was sent to is there, as the catalog of this gateway had it when the call was made; one that was sent elsewhere first, and failed there, does not.'
