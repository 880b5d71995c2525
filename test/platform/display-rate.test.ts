import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { displayRates } from '../../src/composition/display-rates.ts'
import { ConfigError } from '../../src/platform/config.ts'
import { displayAmountOf, displayRatesOf } from '../../src/platform/display-rate.ts'
import { propertyRuns } from '../harness/property-runs.ts'

const rateOf = (entry: string) => [...displayRatesOf([entry]).values()][0] as NonNullable<ReturnType<ReturnType<typeof displayRatesOf>['get']>>

describe('rates of display currencies', () => {
  it('reads a currency, its price in rupees and the day of the price', () => {
    expect([...displayRatesOf(['USD=88.25@2026-11-28', 'JPY=0.5838@2026-11-27', 'KWD=287@2024-02-29']).values()]).toMatchObject([
      { currency: 'USD', rate: '88.25', asOf: '2026-11-28' },
      { currency: 'JPY', rate: '0.5838', asOf: '2026-11-27' },
      { currency: 'KWD', rate: '287', asOf: '2024-02-29' },
    ])
  })

  it.each([
    ['USD', 'USD=88.25@2026-11-28'],
    ['USD=88.25', 'Write a currency'],
    ['usd=88.25@2026-11-28', 'Write a currency'],
    ['USD=-1@2026-11-28', 'Write a currency'],
    ['USD=1e3@2026-11-28', 'Write a currency'],
    ['USD=1234567890@2026-11-28', 'Write a currency'],
    ['USD=0.123456789@2026-11-28', 'Write a currency'],
    ['USD=0.00@2026-11-28', 'above 0'],
    ['USD=88.25@2026-02-30', 'not a day'],
    ['INR=1@2026-11-28', 'other than INR'],
    ['QQQ=1@2026-11-28', 'not a currency'],
  ])('refuses the entry %s and says why', (entry, why) => {
    expect(() => displayRates({ FX_RATES: [entry] })).toThrow(ConfigError)
    expect(() => displayRates({ FX_RATES: [entry] })).toThrow(why)
  })

  it('refuses two rates of one currency, and more rates than there are currencies', () => {
    expect(() => displayRatesOf(['USD=88.25@2026-11-28', 'USD=88.30@2026-11-29'])).toThrow('USD has a rate already')
    expect(() => displayRatesOf(Array.from({ length: 201 }, () => 'USD=1@2026-11-28'))).toThrow('at most 200')
  })

  it('rounds half up, once, and the same on both sides of zero', () => {
    const two = rateOf('USD=2@2026-11-28')
    expect([1n, 2n, 3n, -1n, -3n, 0n, 88_250_000n].map(uinr => displayAmountOf(uinr, two))).toEqual([
      '0.000001',
      '0.000001',
      '0.000002',
      '-0.000001',
      '-0.000002',
      '0',
      '44.125',
    ])
  })

  it('is never farther from the exact amount than half of its last decimal', () => {
    const entry = fc.record({ whole: fc.nat(999_999_999), decimals: fc.nat(99_999_999), length: fc.integer({ min: 1, max: 8 }) })
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 18n), 10n ** 18n), entry, (uinr, { whole, decimals, length }) => {
        const text = `${whole}.${String(decimals).padStart(8, '0').slice(0, length)}`
        fc.pre(Number(text) > 0)
        const rate = rateOf(`USD=${text}@2026-11-28`)
        expect(rate.rate).toBe(text)
        const [, sign = '', units = '0', parts = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(displayAmountOf(uinr, rate)) ?? []
        const micro = BigInt(`${sign}${units}${parts.padEnd(6, '0')}`)
        // micro × rate differs from the amount by at most half of the rate.
        const twice = 2n * (micro * rate.digits - uinr * rate.scale)
        expect(twice <= rate.digits && twice >= -rate.digits).toBe(true)
      }),
      { numRuns: propertyRuns(500) },
    )
  })
})
