/** The records of a CSV text (RFC 4180) by the names of its first line. */
export function csvRecords(text: string): Record<string, string>[] {
  const [head = [], ...lines] = cellsOf(text)
  return lines.map(cells => Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])))
}

/** A cell is plain, or is in quotes with its quotes doubled; then comes a comma, the end of the line, or the end. */
const cellShape = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y

function cellsOf(text: string): string[][] {
  const lines: string[][] = []
  let line: string[] = []
  cellShape.lastIndex = 0
  while (cellShape.lastIndex < text.length) {
    const [, quoted, bare, end] = cellShape.exec(text) ?? []
    if (end === undefined) break
    line.push(quoted === undefined ? (bare ?? '') : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    lines.push(line)
    line = []
  }
  if (line.length > 0) lines.push(line)
  return lines
}
