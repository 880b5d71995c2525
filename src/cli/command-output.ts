/** Prints the output of commands. Text that others wrote is printed without control characters, so that it cannot control the terminal. */

import { plain } from '../platform/observe/terminal/plain-text.ts'

export { plain }

/** Prints one line to stdout. */
export function printLine(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints one line of JSON to stdout. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

/** A column: its heading and its alignment. */
export interface Column {
  readonly head: string
  readonly align?: 'right'
}

/** Returns the aligned lines of a table. The last column has no padding. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map(column => column.head), ...rows.map(row => row.map(plain))]
  const widths = columns.map((_column, at) => Math.max(...cells.map(row => lengthOf(row[at] ?? ''))))
  return cells.map(row =>
    columns
      .map(({ align }, at) => {
        const text = row[at] ?? ''
        const room = ' '.repeat((widths[at] ?? 0) - lengthOf(text))
        return align === 'right' ? room + text : text + room
      })
      .join('  ')
      .trimEnd(),
  )
}

/** Prints a table. */
export function printTable(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(columns, rows)) printLine(line)
}

/** Prints names with their values, one on each line, aligned. */
export function printFields(fields: Readonly<Record<string, string>>): void {
  const width = Math.max(...Object.keys(fields).map(lengthOf))
  for (const [name, value] of Object.entries(fields)) printLine(`${name.padEnd(width)}  ${plain(value)}`)
}

function lengthOf(text: string): number {
  return [...text].length
}

/** Returns the rupees of one column, all with the same number of decimals. The number is 2, or what the smallest amount needs, up to 6. */
export function rupees(amounts: readonly number[]): string[] {
  const smallest = Math.min(...amounts.map(Math.abs).filter(amount => amount > 0), 1)
  const decimals = Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(smallest))))
  return amounts.map(amount => amount.toFixed(decimals))
}

/** Prints the result of a command: one field on each line, or JSON. */
export function printResult(value: object, asJson: boolean): void {
  if (asJson) printJson(value)
  else
    printFields(
      Object.fromEntries(
        Object.entries(value).map(([name, field]) => [name, typeof field === 'object' && field !== null ? JSON.stringify(field) : String(field)]),
      ),
    )
}
