/** Returns the records of a CSV text (RFC 4180). The first line has the names of the fields. */
export function csvRecords(text: string): Record<string, string>[] {
  const [head = [], ...lines] = cellsOf(text)
  return lines.map(cells => Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])))
}

/** A cell is plain, or is in quotes with the quotes inside it doubled. A comma, the end of the line, or the end of the text follows it. */
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
