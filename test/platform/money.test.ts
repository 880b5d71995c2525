import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inrFromUinr, priceUnits, uinrFromInr } from '../../src/platform/values/money.ts'

describe('money', () => {
  test('₹1 per million tokens is one micro-rupee per token', () => {
    expect(priceUnits([{ units: 1234, uinrPerMtok: uinrFromInr(1) }])).toBe(1234n)
  })

  test('a price with several parts is rounded half up once, and not once for each part', () => {
    const half = { units: 1, uinrPerMtok: 500_000n }
    expect(priceUnits([half])).toBe(1n)
    expect(priceUnits([half, half])).toBe(1n)
    expect(priceUnits([half, half, half])).toBe(2n)
  })

  test('negative units cost nothing', () => {
    expect(priceUnits([{ units: -5, uinrPerMtok: 1_000_000n }])).toBe(0n)
  })

  test('rupees with six decimals are unchanged after conversion to micro-rupees and back', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9_000_000_000_000 }), uinr => {
        expect(uinrFromInr(inrFromUinr(BigInt(uinr)))).toBe(BigInt(uinr))
      }),
    )
  })

  test('text that is not a number is refused', () => {
    expect(() => uinrFromInr(Number.NaN)).toThrow(RangeError)
  })
})
