/** Writes Markdown in which names that others chose (of models, servers, agents, organisations) appear as plain text. Decision 0350 says why. */

/** Control characters, line separators, and characters that hide text or change its direction. */
const notPlain = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu
/** Characters that a renderer could read as markup. A colon counts only before a slash, and a dot only after `www`, because a link could begin there. */
const special = /[^\p{L}\p{M}\p{N} /.:-]|:(?=\/)|(?<=www)\./giu

/**
 * Returns the text as one line without markup. Every character that could be markup is written as a numeric character reference. No renderer treats a
 * reference as markup.
 */
export function markdownText(text: string): string {
  return text
    .replace(notPlain, ' ')
    .trim()
    .replace(special, character => `&#${character.codePointAt(0)};`)
}

/** Returns a table whose cells contain no markup. Numbers are right-aligned. */
export function markdownTable(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = heads.map((_head, at) =>
    rows.length > 0 && rows.every(row => typeof row[at] === 'number' || /^[\d.]+ %$/.test(String(row[at]))) ? '---:' : '---',
  )
  const body = rows.map(row => line(row.map(cell => (typeof cell === 'number' ? String(cell) : percentOr(cell)))))
  return [line(heads), line(rule), ...body].join('\n')
}

/** Formats a percentage for reports. */
export const percent = (share: number): string => `${share.toFixed(2)} %`

const percentOr = (cell: string): string => (/^\d+\.\d\d %$/.test(cell) ? cell : markdownText(cell) || '–')

/** The definition of "in India" that both reports contain. */
export const indiaRule =
  'A call counts as in India only when every provider that it was sent to is there, as the catalog of this gateway had it when the call was made; one that was sent elsewhere first, and failed there, does not.'
