import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Catalog } from '../../../src/gateway/catalog/catalog.ts'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { decimalOf, decimalText, roundedDivision, uinrPerMtokOf } from '../../../src/gateway/catalog/prices/price-decimal.ts'
import { indexPrices, matchOf } from '../../../src/gateway/catalog/prices/price-match.ts'
import { pricesOf, rateOf } from '../../../src/gateway/catalog/prices/price-sources.ts'
import { ConfigError, loadConfig } from '../../../src/platform/config.ts'

const decimal = (text: string) => {
  const made = decimalOf(text)
  if (made === null) throw new Error(`${text} is no decimal`)
  return made
}

describe('decimal texts', () => {
  test('decimals are read and written without loss, from texts, exponents and numbers', () => {
    for (const [given, text] of [
      ['0.00000025', '0.00000025'],
      ['1', '1'],
      ['1.50', '1.50'],
      [2.5e-7, '0.00000025'],
      ['1E+3', '1000'],
      ['12e-1', '1.2'],
      [83.12, '83.12'],
    ] as const)
      expect(decimalText(decimalOf(given) ?? decimal('9')), String(given)).toBe(text)
    for (const wrong of ['-1', '', 'free', '1.', '.5', 'NaN', Number.NaN, Number.POSITIVE_INFINITY, null, undefined, {}, '1e999', '1'.repeat(99)])
      expect(decimalOf(wrong), String(wrong)).toBeNull()
  })

  test('a price is converted to micro-rupees exactly, and rounded half up once', () => {
    expect(uinrPerMtokOf(decimal('0.00000025'), decimal('83.125'))).toBe(20_781_250n)
    // 0.1 and 0.2 are exact decimals here, not floating-point numbers.
    expect(uinrPerMtokOf(decimal('0.0000001'), decimal('0.3'))).toBe(30_000n)
    expect(uinrPerMtokOf(decimal('0.0000000000005'), decimal('1'))).toBe(1n)
    expect(uinrPerMtokOf(decimal('0.00000000000049'), decimal('1'))).toBe(0n)
    expect([roundedDivision(5n, 2n), roundedDivision(-5n, 2n), roundedDivision(-4n, 3n)]).toEqual([3n, -3n, -1n])
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.bigInt({ min: 1n, max: 10n ** 9n }), (price, rate) => {
        const usd = { digits: price, scale: 18 }
        const inr = { digits: rate, scale: 6 }
        const exact = price * rate * 10n ** 12n
        const twice = 2n * (uinrPerMtokOf(usd, inr) * 10n ** 24n - exact)
        return twice <= 10n ** 24n && twice > -(10n ** 24n)
      }),
    )
  })
})

describe('replies of the sources', () => {
  test('rates are read in the shapes of public services, and other currencies and impossible rates are refused', () => {
    for (const reply of [
      { result: 'success', base_code: 'USD', rates: { INR: 88.25 } },
      { base: 'USD', date: '2026-11-01', rates: { INR: '88.25' } },
      { base_code: 'USD', conversion_rates: { INR: 88.25 } },
      { data: { INR: { code: 'INR', value: 88.25 } } },
      { data: { INR: 88.25 } },
      { source: 'USD', quotes: { USDINR: 88.25 } },
      { date: '2026-11-01', usd: { inr: 88.25 } },
    ])
      expect(rateOf(reply)).toBe('88.25')
    for (const reply of [
      null,
      [],
      'INR',
      {},
      { rates: {} },
      { rates: { INR: -1 } },
      { rates: { INR: 'x' } },
      { rates: { INR: 0.5 } },
      { rates: { INR: 99_999 } },
    ])
      expect(() => rateOf(reply), JSON.stringify(reply)).toThrow()
    expect(() => rateOf({ base: 'EUR', rates: { INR: 88 } })).toThrow(/EUR/)
  })

  test('only entries with a price are read from a price list, whatever the other entries contain', () => {
    const entry = (id: unknown, prompt: unknown, completion: unknown) => ({ id, pricing: { prompt, completion } })
    const good = [entry('a/b', '0.000001', '0'), entry('c', 0.000002, 1e-6)]
    const odd = [
      1,
      null,
      'x',
      {},
      entry(7, '1', '1'),
      entry('a b', '0.1', '0.1'),
      entry('a/b:free', '0.1', '0.1'),
      entry('z', '0', '0'),
      entry('y', '5', '5'),
      entry('x', '-1', '-1'),
    ]
    for (const reply of [{ data: [...odd, ...good] }, [...good, ...odd]])
      expect(pricesOf(reply)).toEqual([
        { id: 'a/b', input: '0.000001', output: '0' },
        { id: 'c', input: '0.000002', output: '0.000001' },
      ])
    for (const reply of [null, {}, { data: [] }, { data: odd }]) expect(() => pricesOf(reply)).toThrow(/no model with a price/)
    expect(pricesOf(Array.from({ length: 9000 }, (_, n) => entry(`m/${n}`, '0.1', '0.1'))).length).toBe(5000)
  })
})

test('models of the catalog are found under the names that other routers use', () => {
  const { snapshot } = new Catalog(loadCatalog({ config: loadConfig({}), operatorFile: null }), () => ({ available: true, maintenance: false }))
  const price = (id: string) => ({ id, input: '0.000001', output: '0.000001' })
  const index = indexPrices(
    [
      'anthropic/claude-opus-4.5',
      'meta-llama/llama-3.3-70b-instruct',
      'qwen/qwen-2.5-7b-instruct',
      'openai/gpt-4o-mini',
      'openai/gpt-oss-20b',
      'z-ai/glm-4.6',
      'z-ai/glm-4.6:exacto',
      'somebody/gpt-4o',
      'somebody-else/gpt-4o',
      'x-ai/grok-4',
      'somebody/grok-4',
    ].map(price),
  )
  const found = (id: string) => matchOf(snapshot.models.get(id) ?? raise(id), index)?.id ?? null
  expect(
    Object.fromEntries(
      [
        'claude-opus-4-5',
        'claude-opus-4-5-20251101',
        'llama-3.3-70b',
        'qwen2.5-7b-instruct',
        'gpt-4o-mini',
        'gpt-oss-20b',
        'glm-4.6',
        'gpt-4o',
        'grok-4',
        'kimi-k2',
      ].map(id => [id, found(id)]),
    ),
  ).toEqual({
    'claude-opus-4-5': 'anthropic/claude-opus-4.5',
    'claude-opus-4-5-20251101': 'anthropic/claude-opus-4.5',
    'llama-3.3-70b': 'meta-llama/llama-3.3-70b-instruct',
    'qwen2.5-7b-instruct': 'qwen/qwen-2.5-7b-instruct',
    'gpt-4o-mini': 'openai/gpt-4o-mini',
    'gpt-oss-20b': 'openai/gpt-oss-20b',
    'glm-4.6': 'z-ai/glm-4.6',
    // Two other vendors have a model of that name.
    'gpt-4o': null,
    'grok-4': 'x-ai/grok-4',
    'kimi-k2': null,
  })
})

function raise(id: string): never {
  throw new Error(`the catalog has no ${id}`)
}

test('the URLs of the sources must be http or https, or empty for off', () => {
  expect(loadConfig({ PRICE_FEED_URL: '', FX_URL: 'off' })).toMatchObject({ PRICE_FEED_URL: null, FX_URL: null })
  expect(loadConfig({ PRICE_FEED_URL: ' OFF ', FX_URL: '' })).toMatchObject({ PRICE_FEED_URL: null, FX_URL: null })
  expect(loadConfig({}).PRICE_FEED_URL).toMatch(/^https:/)
  for (const wrong of ['list', 'ftp://x/y', 'file:///etc/passwd']) expect(() => loadConfig({ PRICE_FEED_URL: wrong })).toThrow(ConfigError)
})
