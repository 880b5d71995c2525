import { describe, expect, test } from 'vitest'
import { plain, rupees, tableLines } from '../../src/cli/command-output.ts'
import { csvRecords } from '../../src/cli/reports/csv-records.ts'
import { csvLine } from '../../src/gateway/usage/reports/csv.ts'

describe('the output of commands', () => {
  test('columns are aligned, numbers to the right, and lines have no trailing spaces', () => {
    const columns = [{ head: 'NAME' }, { head: '₹', align: 'right' as const }, { head: 'NOTE' }]
    expect(
      tableLines(columns, [
        ['alpha', '12.50', ''],
        ['ब', '3.00', 'x'],
      ]),
    ).toEqual(['NAME       ₹  NOTE', 'alpha  12.50', 'ब       3.00  x'])
  })

  test('text that others wrote cannot control the terminal', () => {
    expect(plain('a\u001b[2Jb\nc\u202ed')).toBe('a [2Jb c d')
    expect(tableLines([{ head: 'NAME' }], [['evil\u001b]0;title\u0007']])[1]).toBe('evil ]0;title')
  })

  test('the rupees of a column have as many decimals as the smallest amount needs', () => {
    expect(rupees([500, 0, 12.5])).toEqual(['500.00', '0.00', '12.50'])
    expect(rupees([500, 0.0123])).toEqual(['500.000', '0.012'])
    expect(rupees([0.000001])).toEqual(['0.000001'])
    expect(rupees([])).toEqual([])
  })

  test('CSV that the gateway writes is read back unchanged', () => {
    const cells = ['a "quoted" model', 'two,cells', 'two\r\nlines', '', 'plain']
    const text = csvLine(['one', 'two', 'three', 'four', 'five']) + csvLine(cells) + csvLine(['', '', '', '', ''])
    expect(csvRecords(text).map(record => Object.values(record))).toEqual([cells, ['', '', '', '', '']])
    expect(csvRecords('')).toEqual([])
    expect(csvRecords('day,model\n2026-01-01,m')).toEqual([{ day: '2026-01-01', model: 'm' }])
  })
})
