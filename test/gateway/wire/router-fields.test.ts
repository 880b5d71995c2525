import { describe, expect, test } from 'vitest'
import { parseRouterFields, routerOnlyNames } from '../../../src/gateway/wire/chat/router-fields.ts'

const base = { model: 'm', messages: [] }
const fieldsOf = (more: Record<string, unknown>): ReturnType<typeof parseRouterFields>['fields'] => parseRouterFields({ ...base, ...more }).fields

describe('router fields', () => {
  test('a body without router fields is returned as the same object', () => {
    const body = { ...base, reasoning_effort: 'low' }
    const parsed = parseRouterFields(body)
    expect(parsed.stripped).toBe(body)
    expect(parsed.touched).toBe(false)
    expect(parsed.fields).toEqual({
      optimize: 'price',
      weights: null,
      best: false,
      provider: null,
      indiaOnly: false,
      exclude: [],
      upstreamKey: null,
      fallbacks: null,
      imageOptimize: null,
      imageMaxEdge: null,
    })
  })

  test('all router fields are read and removed, and no other field is', () => {
    const given = {
      optimize: 'latency',
      optimize_weights: { price: 1 },
      route: 'best',
      provider: 'p',
      data_policy: 'india_only',
      exclude: ['a', 'b/c'],
      upstream_key: 'sk-1',
      fallbacks: ['x', { model: 'y', provider: 'p' }],
      image_optimize: 'off',
      image_max_edge: 512,
    }
    expect(Object.keys(given).sort()).toEqual([...routerOnlyNames].sort())
    const body = { ...base, reasoning_effort: 'low', vendor: 1, ...given }
    const parsed = parseRouterFields(body)
    expect(parsed.stripped).toEqual({ ...base, reasoning_effort: 'low', vendor: 1 })
    expect(parsed.touched).toBe(true)
    expect(body.provider).toBe('p')
    expect(parsed.fields).toEqual({
      optimize: 'latency',
      weights: { price: 1, latency: 0, uptime: 0, throughput: 0 },
      best: true,
      provider: 'p',
      indiaOnly: true,
      exclude: ['a', 'b/c'],
      upstreamKey: 'sk-1',
      fallbacks: [
        { model: 'x', provider: null },
        { model: 'y', provider: 'p' },
      ],
      imageOptimize: 'off',
      imageMaxEdge: 512,
    })
  })

  test('null counts as absent and is removed too', () => {
    const nulls = Object.fromEntries(routerOnlyNames.map(name => [name, null]))
    const parsed = parseRouterFields({ ...base, ...nulls })
    expect(parsed.stripped).toEqual(base)
    expect(parsed.fields).toEqual(fieldsOf({}))
  })

  test('the model id "best" requests routing by quality', () => {
    expect(parseRouterFields({ model: 'best' }).fields.best).toBe(true)
    expect(parseRouterFields({ model: 'best', optimize: 'price' }).fields.best).toBe(true)
  })

  test.each([[-1], ['2'], [null], [{}], [Number.POSITIVE_INFINITY], [Number.NaN], [[1]]])('a malformed weight %j counts as 0', weight => {
    expect(fieldsOf({ optimize_weights: { price: weight, latency: 2, colour: 9 } }).weights).toEqual({ price: 0, latency: 2, uptime: 0, throughput: 0 })
  })

  test.each([[{ price: 0 }], [{}], ['x'], [[1]], [{ colour: 3 }]])('weights %j have no weight above zero and are ignored', weights => {
    expect(fieldsOf({ optimize_weights: weights }).weights).toBeNull()
  })

  test.each([
    ['optimize', 'cheap'],
    ['route', 'worst'],
    ['data_policy', 'eu_only'],
    ['data_policy', ''],
    ['provider', ''],
    ['provider', 7],
    ['exclude', 'p'],
    ['exclude', ['p', 1]],
    ['upstream_key', ''],
    ['upstream_key', 'two\r\nlines'],
    ['image_optimize', 'on'],
    ['image_max_edge', '512'],
  ])('%s: %j is refused with bad_request that names the field', (name, value) => {
    expect(() => fieldsOf({ [name]: value })).toThrow(expect.objectContaining({ code: 'bad_request', message: expect.stringContaining(name) }))
  })

  test.each([[[]], ['m'], [{}], [Array(11).fill('m')], [['']], [[1]], [[{ provider: 'p' }]], [[{ model: 'm', weight: 1 }]], [[{ model: 'm', provider: 1 }]]])(
    'fallbacks %j are refused with bad_steps',
    steps => {
      expect(() => fieldsOf({ fallbacks: steps })).toThrow(expect.objectContaining({ code: 'bad_steps', status: 400 }))
    },
  )

  test('the error message never repeats a refused upstream key', () => {
    expect(() => fieldsOf({ upstream_key: 'sk secret' })).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }))
  })
})
