/** The arithmetic of GSTINs: real numbers are valid, and a single mistake is always detected. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { gstinCheckDigit, readGstin } from '../../../src/gateway/billing/invoices/tax/gstin.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** Real numbers of many states, which companies have published themselves. */
const real = [
  ...['37AAACI1681G2ZN', '35AAACI1681G1ZS', '12AAACI1681G1Z0', '18AAACI1681G1ZO', '10AAACI1681G1Z4', '04AAACI1681G1ZX', '22AAACI1681G1ZZ', '07AAACI1681G1ZR'],
  ...['25AAACI1681G1ZT', '30AAACI1681G1Z2', '24AAACI1681G1ZV', '02AAACI1681G3ZZ', '01AAACI1681G2Z2', '29AAACI1681G1ZL', '34AAACI1681G1ZU', '33AAACI1681G1ZW'],
  ...['27AAPFU0939F1ZV', '27AAGCG4576J1Z6'],
]

const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const letter = fc.constantFrom(...upper)
const digit = fc.constantFrom(...'0123456789')
const any = fc.constantFrom(...upper, ...'0123456789')
const gstin = fc
  .tuple(
    fc.constantFrom('01', '07', '09', '19', '27', '29', '33', '36', '97'),
    fc.string({ unit: letter, minLength: 5, maxLength: 5 }),
    fc.string({ unit: digit, minLength: 4, maxLength: 4 }),
    letter,
    fc.constantFrom(...upper, ...'123456789'),
  )
  .map(([state, name, number, last, entity]) => {
    const body = `${state}${name}${number}${last}${entity}Z`
    return body + gstinCheckDigit(body)
  })

test('real tax numbers are valid, also in lower case and with spaces around them', () => {
  for (const number of real) {
    expect(readGstin(number)).toMatchObject({ valid: true, gstin: number, pan: number.slice(2, 12), stateCode: number.slice(0, 2) })
    expect(readGstin(` ${number.toLowerCase()} `).valid).toBe(true)
  }
})

test('one wrong character is always detected', () => {
  fc.assert(
    fc.property(gstin, fc.nat(14), any, (number, place, other) => {
      fc.pre(number[place] !== other)
      return !readGstin(number.slice(0, place) + other + number.slice(place + 1)).valid
    }),
    { numRuns: propertyRuns(3000) },
  )
})

test('two swapped adjacent characters are always detected', () => {
  fc.assert(
    fc.property(gstin, fc.nat(13), (number, place) => {
      const [left = '', right = ''] = number.slice(place)
      fc.pre(left !== right)
      return !readGstin(number.slice(0, place) + right + left + number.slice(place + 2)).valid
    }),
    { numRuns: propertyRuns(3000) },
  )
})

test('the reason for an invalid number is its form, its state or its check character', () => {
  const reasonOf = (text: string) => {
    const finding = readGstin(text)
    return finding.valid ? null : finding.reason
  }
  for (const text of ['', '29', '29AAACI1681G1Z', '29AAACI1681G1ZLL', '29AAACI1681G0ZL', '2９AAACI1681G1ZL', '29AAACI-681G1ZL', 'X'.repeat(10_000)])
    expect([text, reasonOf(text)]).toEqual([text, 'format'])
  for (const code of ['00', '39', '50', '96', '98', '99']) expect(reasonOf(`${code}AAACI1681G1ZL`)).toBe('unknown_state')
  expect(reasonOf('29AAACI1681G1ZM')).toBe('check_digit')
})
