import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Route } from '../../../src/gateway/catalog/model.ts'
import { type Preference, priceOf, type RouteFacts, rank } from '../../../src/gateway/routing/selection/rank.ts'
import { optimizeModes } from '../../../src/gateway/wire/chat/router-fields.ts'
import { model, provider } from './world.ts'

const unknown: RouteFacts = { open: false, latencyMs: null, failureRate: null, headroom: null, brokenToolCalls: null }

interface Sketch extends Partial<RouteFacts> {
  readonly inr?: number
  readonly rank?: number
}

/** Returns the names of the routes in ranked order. The order of the object is the order of the catalog. */
function order(sketches: Readonly<Record<string, Sketch>>, over: Partial<Preference> = {}): string[] {
  const entry = model(
    'm',
    Object.entries(sketches).map(([name, { inr, rank: quality }]) => ({
      of: provider(name),
      ...(inr === undefined ? {} : { inr }),
      ...(quality === undefined ? {} : { rank: quality }),
    })),
  )
  const factsOf = (route: Route): RouteFacts => {
    const { open, latencyMs, failureRate, headroom, brokenToolCalls } = { ...unknown, ...sketches[route.provider.id] }
    return { open, latencyMs, failureRate, headroom, brokenToolCalls }
  }
  return rank(entry.routes, factsOf, { optimize: 'price', weights: null, probe: false, ...over }).map(route => route.provider.id)
}

describe('each mode', () => {
  test('price prefers the lowest sum of input and output price', () => {
    expect(order({ dear: { inr: 30 }, cheap: { inr: 10 }, middle: { inr: 20 } })).toEqual(['cheap', 'middle', 'dear'])
  })

  test('latency prefers the lowest average, and puts unmeasured routes after measured ones', () => {
    expect(order({ unseen: {}, slow: { latencyMs: 900 }, quick: { latencyMs: 100 } }, { optimize: 'latency' })).toEqual(['quick', 'slow', 'unseen'])
  })

  test('latency puts an unmeasured route first when a probe is due', () => {
    expect(order({ quick: { latencyMs: 100 }, unseen: {} }, { optimize: 'latency', probe: true })).toEqual(['unseen', 'quick'])
  })

  test('uptime prefers the lowest failure rate', () => {
    expect(order({ shaky: { failureRate: 0.3 }, solid: { failureRate: 0.01 } }, { optimize: 'uptime' })).toEqual(['solid', 'shaky'])
  })

  test('throughput prefers headroom and low latency', () => {
    const routes = { full: { headroom: 0.05, latencyMs: 100 }, roomy: { headroom: 0.9, latencyMs: 120 }, slow: { headroom: 0.9, latencyMs: 900 } }
    expect(order(routes, { optimize: 'throughput' })[0]).toBe('roomy')
  })

  test('quality follows the curated rank, and unranked routes follow by latency', () => {
    const routes = { slow: { latencyMs: 900 }, second: { rank: 2 }, quick: { latencyMs: 100 }, first: { rank: 1 } }
    expect(order(routes, { optimize: 'quality' })).toEqual(['first', 'second', 'quick', 'slow'])
  })

  test('auto puts reliability before price and latency', () => {
    const routes = {
      shaky: { inr: 1, latencyMs: 50, failureRate: 0.5 },
      dear: { inr: 100, latencyMs: 100, failureRate: 0 },
      fair: { inr: 20, latencyMs: 110, failureRate: 0.01 },
    }
    expect(order(routes, { optimize: 'auto' })).toEqual(['fair', 'dear', 'shaky'])
  })

  test('equal routes keep the order of the catalog', () => {
    for (const optimize of optimizeModes) expect(order({ b: {}, a: {}, c: {} }, { optimize }), optimize).toEqual(['b', 'a', 'c'])
  })
})

describe('weights', () => {
  const routes = { cheap: { inr: 1, latencyMs: 900 }, quick: { inr: 100, latencyMs: 10 } }

  test('weights take precedence over the mode', () => {
    expect(order(routes, { optimize: 'price', weights: { price: 0, latency: 1, uptime: 0, throughput: 0 } })).toEqual(['quick', 'cheap'])
  })

  test('a zero weight removes its axis from the sum', () => {
    expect(order(routes, { weights: { price: 1, latency: 0, uptime: 0, throughput: 0 } })).toEqual(['cheap', 'quick'])
  })

  test('weights as large as numbers allow still give an order', () => {
    const weights = { price: Number.MAX_VALUE, latency: Number.MAX_VALUE, uptime: Number.MAX_VALUE, throughput: Number.MAX_VALUE }
    expect(order({ dear: { inr: 9 }, cheap: { inr: 1 } }, { weights })).toEqual(['cheap', 'dear'])
  })
})

describe('for any routes, facts and preference', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  const sketch = fc.record({
    inr: fc.integer({ min: 0, max: 5000 }),
    byRank: fc.option(fc.integer({ min: 1, max: 9 })),
    facts: fc.record({
      open: fc.boolean(),
      latencyMs: fc.option(fc.integer({ min: 0, max: 60_000 })),
      failureRate: fc.option(share),
      headroom: fc.option(share),
      brokenToolCalls: fc.option(share),
    }),
  })
  const weight = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e300, noNaN: true }))
  const preference = fc.record({
    optimize: fc.constantFrom(...optimizeModes, 'window' as const),
    weights: fc.option(fc.record({ price: weight, latency: weight, uptime: weight, throughput: weight })),
    probe: fc.boolean(),
  })

  const ranked = (sketches: readonly { inr: number; byRank: number | null; facts: RouteFacts }[], params: Preference) => {
    const entry = model(
      'm',
      sketches.map((item, index) => ({ of: provider(`p${index}`), inr: item.inr, ...(item.byRank === null ? {} : { rank: item.byRank }) })),
    )
    const facts = new Map(entry.routes.map((route, index) => [route, sketches[index]?.facts ?? unknown]))
    return {
      before: entry.routes,
      after: rank(entry.routes, route => facts.get(route) ?? unknown, params),
      openOf: (route: Route) => facts.get(route)?.open ?? false,
    }
  }

  test('the result of a ranking is a permutation of its input', () => {
    fc.assert(
      fc.property(fc.array(sketch, { maxLength: 8 }), preference, (sketches, params) => {
        const { before, after } = ranked(sketches, params)
        expect(after).toHaveLength(before.length)
        expect(new Set(after)).toEqual(new Set(before))
      }),
    )
  })

  test('open circuits come last in every mode', () => {
    fc.assert(
      fc.property(fc.array(sketch, { maxLength: 8 }), preference, (sketches, params) => {
        const { after, openOf } = ranked(sketches, params)
        const flags = after.map(openOf)
        expect(flags).toEqual([...flags].sort())
      }),
    )
  })

  test('price never puts a more expensive route before a cheaper one with the same circuit state', () => {
    fc.assert(
      fc.property(fc.array(sketch, { maxLength: 8 }), sketches => {
        const { after, openOf } = ranked(sketches, { optimize: 'price', weights: null, probe: false })
        for (const open of [false, true]) {
          const prices = after.filter(route => openOf(route) === open).map(priceOf)
          expect(prices).toEqual([...prices].sort((a, b) => a - b))
        }
      }),
    )
  })

  test('an axis with the weight zero has no effect, whatever its values', () => {
    const axes = ['price', 'latency', 'uptime', 'throughput'] as const
    fc.assert(
      fc.property(fc.array(fc.tuple(sketch, sketch), { maxLength: 8 }), preference, fc.constantFrom(...axes), (pairs, params, dropped) => {
        const weights = { price: 1, latency: 1, uptime: 1, throughput: 1, ...params.weights, [dropped]: 0 }
        fc.pre(axes.some(axis => weights[axis] > 0))
        const other = pairs.map(([one, two]) => ({
          inr: dropped === 'price' ? two.inr : one.inr,
          byRank: two.byRank,
          facts: {
            ...one.facts,
            brokenToolCalls: two.facts.brokenToolCalls,
            latencyMs: (dropped === 'latency' ? two : one).facts.latencyMs,
            failureRate: (dropped === 'uptime' ? two : one).facts.failureRate,
            headroom: (dropped === 'throughput' ? two : one).facts.headroom,
          },
        }))
        const names = (sketches: Parameters<typeof ranked>[0]) => ranked(sketches, { ...params, weights }).after.map(route => route.provider.id)
        expect(names(other)).toEqual(names(pairs.map(([one]) => one)))
      }),
    )
  })
})
