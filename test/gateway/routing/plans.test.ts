import { describe, expect, test } from 'vitest'
import type { CatalogSnapshot } from '../../../src/gateway/catalog/model.ts'
import type { OrgRouting } from '../../../src/gateway/routing/org-routing.ts'
import type { Plan, ResolveRequest } from '../../../src/gateway/routing/plan.ts'
import { Plans } from '../../../src/gateway/routing/plans.ts'
import { resolve } from '../../../src/gateway/routing/resolve.ts'
import { defaultFields } from '../../../src/gateway/wire/chat/router-fields.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { asking, catalog, model, orgRouting, orgWithKeys, provider, trip, worldOf } from './world.ts'

const [one, two, three] = ['one', 'two', 'three'].map(id => provider(id)) as [
  ReturnType<typeof provider>,
  ReturnType<typeof provider>,
  ReturnType<typeof provider>,
]
const models = [
  model('m', [
    { of: one, inr: 10 },
    { of: two, inr: 20 },
  ]),
  model('n', [{ of: two }]),
  model('gated', [{ of: one }], { gated: true }),
  model('vectors', [{ of: one }], { kind: 'embedding' }),
]

/** The kept plans over a world whose catalog can be replaced. */
function plansOver() {
  const world = worldOf(models)
  let snapshot: CatalogSnapshot = world.catalog
  const plans = new Plans({
    catalog: () => snapshot,
    circuits: { of: () => world.circuits, isOpen: (key, _orgId, nowMs) => world.circuits.isOpen(key, nowMs) },
    health: { of: () => world.health, inMaintenance: key => world.health.inMaintenance(key) },
    clock: world.clock,
  })
  const said = (make: () => Plan): unknown => {
    try {
      return make().attempts.map(({ route, byok }) => `${route.provider.id} ${route.price.inputUinrPerMtok} ${byok}`)
    } catch (error) {
      if (error instanceof GatewayError) return error.errorName
      throw error
    }
  }
  return {
    world,
    plans,
    replace(next: CatalogSnapshot) {
      snapshot = next
    },
    /** Returns the routes of the kept plan, which must be those of a new one. */
    agreed(request: ResolveRequest): unknown {
      const kept = said(() => plans.resolve(request))
      expect(kept).toEqual(said(() => resolve(request, { ...world, catalog: snapshot })))
      return kept
    },
  }
}

const plain = (modelId: string, org: OrgRouting, over: Partial<ResolveRequest> = {}): ResolveRequest =>
  asking(modelId, {}, { fields: defaultFields, org, ...over })

describe('kept plans', () => {
  test('are one object for equal requests, until the settings of the organisation or the catalog are new', () => {
    const { plans, replace } = plansOver()
    const org = orgRouting()
    const first = plans.resolve(plain('m', org))
    expect(plans.resolve(plain('m', org))).toBe(first)
    expect(plans.resolve(plain('m', orgRouting()))).not.toBe(first)
    replace(catalog(models))
    expect(plans.resolve(plain('m', org))).not.toBe(first)
  })

  test('follow circuits, withheld routes, keys, chains and prices at the next call', () => {
    const { world, replace, agreed } = plansOver()
    const org = orgRouting()
    expect(agreed(plain('m', org))).toEqual(['one 5000000 false', 'two 10000000 false'])
    trip(world, 'one/m')
    expect(agreed(plain('m', org))).toEqual(['two 10000000 false', 'one 5000000 false'])
    world.circuits.success('one/m')
    world.health.withhold('one/m', world.clock.nowMs() + 1000)
    expect(agreed(plain('m', org))).toEqual(['two 10000000 false'])
    world.clock.step(2000)
    expect(agreed(plain('m', org))).toEqual(['one 5000000 false', 'two 10000000 false'])
    expect(agreed(plain('m', orgWithKeys('two')))).toEqual(['one 5000000 false', 'two 10000000 false'])
    const chained = orgRouting({ chains: new Map([['m', [{ model: 'n', provider: null }]]]) })
    for (const _call of [1, 2]) expect(agreed(plain('m', chained))).toEqual(['two 5000000 false'])
    replace(catalog([model('m', [{ of: three, inr: 2 }])]))
    expect(agreed(plain('m', org))).toEqual(['three 1000000 false'])
  })

  test('never serve a request with fields, rules, another kind or another payer', () => {
    const { agreed, plans } = plansOver()
    const org = orgRouting()
    agreed(plain('m', org))
    const policies = [
      { owner: 'key', ownerId: 1, allowedModels: ['n'], allowedProviders: null, maxCostUinr: null, maxOutputTokens: null, maxConcurrency: null },
    ] as const
    expect(agreed(plain('m', org, { policies }))).toBe('model_not_allowed')
    expect(agreed(asking('m', { provider: 'two' }, { org }))).toEqual(['two 10000000 false'])
    expect(agreed(plain('m', org, { kind: 'embedding' }))).toBe('no_route')
    expect(agreed(plain('m', org, { platform: 'none' }))).toBe('no_route')
    for (const _call of [1, 2]) expect(agreed(plain('gated', org))).toBe('model_gated')
    const refuses = plain('m', org, {
      accepts: () => {
        throw new Error('refused')
      },
    })
    expect(() => plans.resolve(refuses)).toThrow('refused')
  })
})
