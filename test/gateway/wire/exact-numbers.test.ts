/** Numbers that a double cannot hold have the same digits in what is written, whatever the number is. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ExactNumbers, isHeld } from '../../../src/gateway/wire/json/exact-numbers.ts'
import { exactNumbersOf, lookAhead, parseAhead, parseExactJson, wellFormed } from '../../../src/gateway/wire/json/json-body.ts'
import { inferenceBounds, JsonScan } from '../../../src/gateway/wire/json/json-scan.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** What is written of a body that was read. */
function written(body: string): string {
  const bytes = Buffer.from(body)
  const text = JSON.stringify(parseExactJson(bytes, inferenceBounds))
  return exactNumbersOf(bytes)?.restored(text) ?? text
}

const read = (body: string): number[] => parseExactJson(Buffer.from(body), inferenceBounds) as number[]

const digits = fc.stringMatching(/^[0-9]{1,25}$/)
const whole = fc.oneof(fc.constantFrom('0', '1', '9', '4503599627370496', '9007199254740992'), fc.stringMatching(/^[1-9][0-9]{0,24}$/))
const fraction = fc.oneof(
  fc.constant(''),
  digits.map(text => `.${text}`),
  digits.map(text => `.00000000000000000${text}`),
  digits.map(text => `.99999999999999999${text}`),
)
const exponent = fc.oneof(
  fc.constant(''),
  fc.tuple(fc.constantFrom('e', 'E', 'e+', 'e-', 'E-'), fc.integer({ min: 0, max: 420 })).map(([sign, power]) => `${sign}${power}`),
)
const token = fc.tuple(whole, fraction, exponent).map(parts => parts.join(''))

describe('numbers that a double cannot hold', () => {
  test('EDGE-07 every number is written with its own digits, or as JavaScript writes it if that is the same number', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('', '-'), token), { minLength: 1, maxLength: 20 }), numbers => {
        const expected = numbers.map(([sign, text]) => (isHeld(text) ? JSON.stringify(Number(sign + text)) : sign + text))
        expect(written(`[${numbers.map(parts => parts.join('')).join(',')}]`)).toBe(`[${expected.join(',')}]`)
      }),
      { numRuns: propertyRuns(500) },
    )
  })

  test.each([
    '1.00000000000000000001',
    '4e-324',
    '2.4703282292062328e-324',
    '0.99999999999999999999',
    '123456789012345.678901',
    '4503599627370496.7',
    '9007199254740991.5',
    '1.79769313486231570001e308',
    '999999999999999999999',
    `0.${'1'.repeat(900)}`,
    `1${'0'.repeat(400)}`,
  ])('EDGE-07 %s is written unchanged', number => {
    for (let times = 0; times < 50; times++) expect(written(`{"a":${number},"b":-${number}}`)).toBe(`{"a":${number},"b":-${number}}`)
  })

  test('many different long numbers of a body are replaced in many turns of the event loop', async () => {
    const body = `[${Array.from({ length: 9_000 }, (_, index) => 9007199254740993n + 2n * BigInt(index)).join(',')}]`
    const bytes = Buffer.from(body)
    let turns = 0
    await parseAhead(bytes, inferenceBounds, async work => {
      turns++
      return work()
    })
    expect(turns).toBeGreaterThan(9)
    const text = JSON.stringify(parseExactJson(bytes, inferenceBounds))
    expect(text).not.toBe(body)
    expect(exactNumbersOf(bytes)?.restored(text) === body).toBe(true)
  })

  test('a long number that is written many more times than it was sent is refused', () => {
    const bytes = Buffer.from(`[${'7'.repeat(1000)}]`)
    const text = JSON.stringify(parseExactJson(bytes, inferenceBounds))
    const exact = exactNumbersOf(bytes) as ExactNumbers
    expect(exact.extraChars).toBeGreaterThan(970)
    expect(exact.restored(text.repeat(2), exact.room())).toHaveLength(2 * 1002)
    expect(() => exact.restored(text.repeat(100), exact.room())).toThrow('written many times')
  })

  test('EDGE-07 a number very near to a whole one is read on the same side of it', () => {
    for (let times = 0; times < 100; times++) {
      const [above, below] = read('[2.00000000000000000001,1.99999999999999999999]')
      expect(above).toBeGreaterThan(2)
      expect(above).toBeLessThan(2.001)
      expect(below).toBeLessThan(2)
      expect(below).toBeGreaterThan(1.999)
    }
  })

  test.each(['00000000000000001', '-012345678901234567890', '12345678901234567890.', '1.e500', '1.2.3456789012345678', '1e5e5', '1-2', '5e'])(
    'EDGE-07 %s is not JSON and is refused',
    number => {
      expect(() => wellFormed(() => written(`[${number}]`))).toThrow(GatewayError)
    },
  )

  test('EDGE-07 a text of millions of digits does not change', () => {
    const exact = new ExactNumbers(new Map([['1234567890123456', '9007199254740993']]))
    for (const text of ['1'.repeat(8_000_000), `0.${'1'.repeat(8_000_000)}`, `1234567890123456e${'1'.repeat(8_000_000)}`, '1.'.repeat(4_000_000)])
      expect(exact.restored(text) === text).toBe(true)
    expect(exact.restored('[-1234567890123456,12345678901234567]')).toBe('[-9007199254740993,12345678901234567]')
  })

  test('EDGE-07 a run of zeros takes time in proportion to its length', () => {
    const begun = performance.now()
    for (let times = 0; times < 2000; times++) isHeld(`1.1${'0'.repeat(990)}1`)
    for (let times = 0; times < 2000; times++) isHeld(`1.1${'0'.repeat(110)}1`)
    expect(performance.now() - begun).toBeLessThan(500)
  })

  test('HARD-01 a scan refuses numbers without commas before it has examined all of them', () => {
    const bytes = Buffer.from(`[${'0.1234567890123456 '.repeat(100_000)}]`)
    const scan = new JsonScan(bytes, inferenceBounds)
    expect(() => scan.to(bytes.length)).toThrow('The body is not valid JSON.')
    const honest = Buffer.from(`[${'0.1234567890123456,'.repeat(100_000)}1]`)
    expect(new JsonScan(honest, inferenceBounds).to(honest.length)).toBe(true)
  })

  test('HARD-01 a piece of a scan ends after its limit of examined numbers', () => {
    const bytes = Buffer.from(`[${'0.1234567890123456,'.repeat(10_000)}1]`)
    const scan = new JsonScan(bytes, inferenceBounds)
    expect(scan.to(bytes.length, 100)).toBe(false)
    expect(scan.at).toBeLessThan(100 * 20)
    expect(scan.to(bytes.length)).toBe(true)
  })

  test('HARD-01 concurrent large bodies are scanned one piece in each turn of the event loop', async () => {
    const bodies = Array.from({ length: 4 }, () => Buffer.from(`[${'1,'.repeat(140_000)}${' '.repeat(2_000_000)}1]`))
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await Promise.all(bodies.map(body => lookAhead(body, inferenceBounds)))
    isOver = true
    expect(turns).toBeGreaterThanOrEqual(4 * 8)
  })
})
