/** CSV as in RFC 4180. Text that a spreadsheet would read as a formula gets an apostrophe in front. */

/** Returns one line of cells, with its line end. */
export function csvLine(cells: readonly (string | number | bigint)[]): string {
  return `${cells.map(cell).join(',')}\r\n`
}

function cell(value: string | number | bigint): string {
  if (typeof value !== 'string') return String(value)
  const text = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
