import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sandboxProvider } from '../../../src/gateway/catalog/loading/sandbox.ts'
import { routeId } from '../../../src/gateway/catalog/model.ts'
import { resolve } from '../../../src/gateway/routing/resolve.ts'
import type { RoutingWorld } from '../../../src/gateway/routing/routing-world.ts'
import { optimizeModes } from '../../../src/gateway/wire/chat/router-fields.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { dialed, errorOf } from './outcome.ts'
import { asking, catalog, model, noFields, orgRouting, orgWithKeys, provider, trip, unconfigured, worldOf } from './world.ts'

const india = provider('india', { residency: 'india' })
const one = provider('one')
const two = provider('two')
const unproven = provider('unproven', { residency: 'unknown' })
const both = model('m', [
  { of: one, inr: 10 },
  { of: two, inr: 20 },
  { of: india, inr: 30 },
])
const abroad = model('abroad', [{ of: one }, { of: unproven }])
const vectors = model('vectors', [{ of: one }], { kind: 'embedding' })
const native = provider('native', { dialect: 'anthropic', auth: 'x-api-key' })
const claude = model('claude-x', [{ of: native, byokOnly: true }])
const keyed = model('keyed', [{ of: one, byokOnly: true }])
const absent = model('absent', [{ of: unconfigured('absent-provider') }])
const all = [both, abroad, vectors, claude, keyed, absent]

describe('a plain model', () => {
  test('a plain model gets every usable route on the platform key, cheapest first', () => {
    const plan = resolve(asking('m'), worldOf(all))
    expect(plan.attempts.map(attempt => [attempt.route.provider.id, attempt.credential?.reveal(), attempt.byok])).toEqual([
      ['one', 'key of one', false],
      ['two', 'key of two', false],
      ['india', 'key of india', false],
    ])
    expect(plan.model.id).toBe('m')
    expect(plan.headers).toEqual({})
  })

  test('an unknown model gives model_not_found', () => {
    expect(errorOf(asking('nope'), worldOf(all))).toBe('404 model_not_found')
    expect(errorOf(asking('nobody/nope'), worldOf(all))).toBe('404 model_not_found')
    expect(errorOf(asking('auto:nope'), worldOf(all))).toBe('404 model_not_found')
  })

  test('an id of the form provider/id gives no_route without a saved key, and is unknown with one', () => {
    expect(errorOf(asking('one/nope'), worldOf(all))).toBe('400 no_route')
    expect(errorOf(asking('one/nope', {}, { org: orgWithKeys('one') }), worldOf(all))).toBe('404 model_not_found')
  })

  test('a model of another kind gives no_route', () => {
    expect(errorOf(asking('vectors'), worldOf(all))).toBe('400 no_route')
    expect(errorOf(asking('m', {}, { kind: 'embedding' }), worldOf(all))).toBe('400 no_route')
    expect(dialed(asking('vectors', {}, { kind: 'embedding' }), worldOf(all))).toEqual(['one/vectors'])
  })

  test('a gated model needs a retention window of the organisation', () => {
    const gated = model('gated', [{ of: one }], { gated: true })
    expect(errorOf(asking('gated'), worldOf([gated]))).toBe('403 model_gated')
    expect(dialed(asking('gated', {}, { org: orgRouting({ retentionDays: 1 }) }), worldOf([gated]))).toEqual(['one/gated'])
  })

  test('a route with an open circuit stays in the plan, after all others', () => {
    const world = worldOf(all)
    trip(world, 'one/m')
    expect(dialed(asking('m'), world)).toEqual(['two/m', 'india/m', 'one/m'])
    world.clock.step(30_000)
    expect(dialed(asking('m'), world)[0]).toBe('one/m')
  })

  test('a route in maintenance is skipped until the maintenance ends', () => {
    const world = worldOf([abroad])
    world.health.withhold('one/abroad', world.clock.nowMs() + 1000)
    expect(dialed(asking('abroad'), world)).toEqual(['unproven/abroad'])
    world.health.withhold('unproven/abroad', world.clock.nowMs() + 2000)
    expect(errorOf(asking('abroad'), world)).toBe('400 no_route')
    world.clock.step(1000)
    expect(dialed(asking('abroad'), world)).toEqual(['one/abroad'])
  })
})

describe('a pin', () => {
  test('a pin leaves only that provider, even with an open circuit', () => {
    const world = worldOf(all)
    trip(world, 'two/m')
    expect(dialed(asking('m', { provider: 'two' }), world)).toEqual(['two/m'])
  })

  test('a pin on a provider that does not serve the model, or that is unknown, gives no_route', () => {
    for (const pinned of ['native', 'nobody']) expect(errorOf(asking('m', { provider: pinned }), worldOf(all)), pinned).toBe('400 no_route')
  })

  test('a pin takes precedence over a chain', () => {
    expect(dialed(asking('m', { provider: 'two', fallbacks: [{ model: 'abroad', provider: null }] }), worldOf(all))).toEqual(['two/m'])
  })
})

describe('hard constraints', () => {
  test('india_only leaves only routes with proven residency in India', () => {
    expect(dialed(asking('m', { indiaOnly: true }), worldOf(all))).toEqual(['india/m'])
    expect(errorOf(asking('abroad', { indiaOnly: true }), worldOf(all))).toBe('422 no_route_residency')
  })

  test('exclude removes a provider, or a provider for one model', () => {
    expect(dialed(asking('m', { exclude: ['one', 'two/m', 'two/abroad', 'nobody'] }), worldOf(all))).toEqual(['india/m'])
    expect(dialed(asking('m', { exclude: ['one/abroad'] }), worldOf(all))[0]).toBe('one/m')
    expect(errorOf(asking('m', { exclude: ['one', 'two', 'india'] }), worldOf(all))).toBe('422 no_route_residency')
  })

  test('when several causes apply, the first counts: pin, then residency, then exclude, then credentials', () => {
    expect(errorOf(asking('m', { provider: 'native', indiaOnly: true }), worldOf(all))).toBe('400 no_route')
    expect(errorOf(asking('m', { provider: 'one', indiaOnly: true }), worldOf(all))).toBe('422 no_route_residency')
    expect(errorOf(asking('absent', { indiaOnly: true }), worldOf(all))).toBe('422 no_route_residency')
    expect(errorOf(asking('absent', { exclude: ['absent-provider'] }), worldOf(all))).toBe('422 no_route_residency')
    expect(errorOf(asking('absent'), worldOf(all))).toBe('400 no_route')
  })

  test('india_only never allows a route outside India, whatever else the request contains', () => {
    const residency = fc.constantFrom('india', 'global', 'unknown')
    const world = fc.array(fc.array(residency, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 })
    const fields = fc.record({
      optimize: fc.constantFrom(...optimizeModes),
      provider: fc.option(fc.constantFrom('p0', 'p1', 'p2')),
      exclude: fc.subarray(['p0', 'p1/m0', 'p2']),
      upstreamKey: fc.option(fc.constant('caller-key')),
      fallbacks: fc.option(
        fc.array(fc.record({ model: fc.constantFrom('m0', 'm1', 'm2', 'auto', 'auto:sovereign'), provider: fc.option(fc.constantFrom('p0', 'p1')) }), {
          minLength: 1,
          maxLength: 4,
        }),
      ),
    })
    fc.assert(
      fc.property(world, fields, fc.constantFrom('m0', 'auto', 'auto:cheapest'), (models, params, modelId) => {
        const built = models.map((residencies, index) =>
          model(
            `m${index}`,
            residencies.map((where, at) => ({ of: provider(`p${at}`, { residency: where }) })),
          ),
        )
        const outcome = (): readonly string[] =>
          resolve(asking(modelId, { ...noFields, ...params, indiaOnly: true }), worldOf(built)).attempts.map(attempt => attempt.route.residency)
        try {
          const residencies = outcome()
          expect(residencies.length).toBeGreaterThan(0)
          expect(residencies.every(where => where === 'india')).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
      { numRuns: propertyRuns(300) },
    )
  })
})

describe('credentials', () => {
  test("a model that needs a caller's key gives no_route without one, and in the native messages format the error asks for the key", () => {
    expect(errorOf(asking('keyed'), worldOf(all))).toBe('400 no_route')
    expect(errorOf(asking('claude-x'), worldOf(all))).toBe('401 byok_required')
  })

  test('a saved key of the organisation serves where the platform cannot, and the attempt is marked as such', () => {
    const [attempt] = resolve(asking('claude-x', {}, { org: orgWithKeys('native') }), worldOf(all)).attempts
    expect([attempt?.credential?.reveal(), attempt?.byok]).toEqual(['saved', true])
    expect(errorOf(asking('claude-x'), worldOf(all))).toBe('401 byok_required')
  })

  test('platform routes come before routes on a saved key, whatever their price', () => {
    const mixed = model('mixed', [
      { of: one, inr: 1, byokOnly: true },
      { of: two, inr: 99 },
    ])
    expect(dialed(asking('mixed', {}, { org: orgWithKeys('one', 'two') }), worldOf([mixed]))).toEqual(['two/mixed', 'one/mixed'])
  })

  test('a route in maintenance is served on a saved key', () => {
    const world = worldOf([vectors])
    world.health.withhold('one/vectors', world.clock.nowMs() + 1000)
    expect(resolve(asking('vectors', {}, { kind: 'embedding', org: orgWithKeys('one') }), world).attempts.map(attempt => attempt.byok)).toEqual([true])
  })

  test('a provider that needs no key is dialed without a credential', () => {
    const local = model('local', [{ of: provider('here', { auth: 'none', platformKey: null, byok: false }) }])
    expect(resolve(asking('local'), worldOf([local])).attempts[0]?.credential).toBeNull()
  })
})

describe('a key sent with the request', () => {
  const alpha = unconfigured('alpha', { keyShape: '^al-' })
  const beta = unconfigured('beta', { keyShape: '^be-' })
  const gamma = unconfigured('gamma', { keyShape: '^ga-' })
  const priced = model('priced', [
    { of: one, inr: 1 },
    { of: alpha, inr: 2 },
    { of: beta, inr: 3, byokOnly: true },
  ])
  const chained = {
    fallbacks: [
      { model: 'priced', provider: null },
      { model: 'm', provider: null },
    ],
  }
  const world = (): RoutingWorld => ({ ...worldOf([]), catalog: catalog([priced, both, claude], [gamma]) })
  const plan = (key: string, over = {}): [string, string | undefined, boolean][] =>
    resolve(asking('priced', { upstreamKey: key, ...over }), world()).attempts.map(attempt => [
      routeId(attempt.route),
      attempt.credential?.reveal(),
      attempt.byok,
    ])

  test('a key in the request goes to the provider whose key format it has', () => {
    expect(plan('be-1')).toEqual([['beta/priced', 'be-1', true]])
  })

  test('a key of unknown format goes to the provider of the best route, and to no second provider', () => {
    expect(plan('whatever')).toEqual([['one/priced', 'whatever', true]])
    expect(plan('whatever', chained)).toEqual([
      ['one/priced', 'whatever', true],
      ['one/m', 'whatever', true],
    ])
  })

  test('a key of another provider is not sent', () => {
    expect(errorOf(asking('priced', { upstreamKey: 'ga-1' }), world())).toBe('400 no_route')
  })

  test('a key goes to a pinned provider, whatever its format', () => {
    expect(plan('ga-1', { provider: 'alpha' })).toEqual([['alpha/priced', 'ga-1', true]])
  })

  test("a key in the request serves a model that runs on callers' keys only", () => {
    expect(resolve(asking('claude-x', { upstreamKey: 'k' }), world()).attempts[0]?.byok).toBe(true)
  })
})

describe('a chain of fallbacks', () => {
  const steps = (...list: (readonly [string, string?])[]) => list.map(([id, on]) => ({ model: id, provider: on ?? null }))

  test('fallbacks are dialed instead of the model, step by step, and each route once', () => {
    expect(dialed(asking('m', { fallbacks: steps(['abroad'], ['m', 'two'], ['abroad', 'one']) }), worldOf(all))).toEqual([
      'one/abroad',
      'unproven/abroad',
      'two/m',
    ])
    expect(resolve(asking('m', { fallbacks: steps(['abroad']) }), worldOf(all)).model.id).toBe('abroad')
  })

  test('steps that do not resolve are skipped: unknown, of another kind, not served, without a credential', () => {
    const chain = steps(['nope'], ['vectors'], ['m', 'nobody'], ['absent'], ['m', 'india'])
    expect(dialed(asking('m', { fallbacks: chain }), worldOf(all))).toEqual(['india/m'])
  })

  test('fallbacks without any step that resolves give no_route', () => {
    expect(errorOf(asking('m', { fallbacks: steps(['nope'], ['vectors']) }), worldOf(all))).toBe('400 no_route')
  })

  test('fallbacks obey the hard constraints', () => {
    expect(dialed(asking('abroad', { indiaOnly: true, fallbacks: steps(['abroad'], ['m']) }), worldOf(all))).toEqual(['india/m'])
    expect(errorOf(asking('m', { indiaOnly: true, fallbacks: steps(['abroad']) }), worldOf(all))).toBe('422 no_route_residency')
  })

  test('a request with fallbacks needs a model that exists, and a preset counts as one', () => {
    expect(errorOf(asking('nope', { fallbacks: steps(['m']) }), worldOf(all))).toBe('404 model_not_found')
    expect(dialed(asking('auto', { fallbacks: steps(['auto:sovereign'], ['abroad', 'one']) }), worldOf(all))).toEqual(['india/m', 'one/abroad'])
  })
})

describe('a preset', () => {
  const cheap = model('cheap', [{ of: one, inr: 2 }], { tools: false, contextLength: 1000 })
  const seeing = model(
    'seeing',
    [
      { of: one, inr: 50 },
      { of: two, inr: 40 },
    ],
    { modalities: ['text', 'image'] },
  )
  const thinking = model('thinking', [{ of: two, inr: 60 }], { reasoning: true, contextLength: 200_000 })
  const pool = [both, cheap, seeing, thinking, claude, absent]
  const chosen = (id: string, fields = {}, over = {}): string | undefined => resolve(asking(id, fields, over), worldOf(pool)).headers['x-br-auto-model']

  test('a preset picks the cheapest model that can serve what the request contains, and says so', () => {
    for (const id of ['auto', 'auto:balanced', 'auto:cheapest']) {
      expect(chosen(id), id).toBe('cheap')
      expect(chosen(id, {}, { promptTokens: 1000 }), id).toBe('m')
      expect(chosen(id, {}, { needs: { tools: true, vision: false } }), id).toBe('m')
      expect(chosen(id, {}, { needs: { tools: false, vision: true } }), id).toBe('seeing')
    }
    expect(resolve(asking('auto'), worldOf(pool)).headers).toEqual({
      'x-br-auto-preset': 'balanced',
      'x-br-auto-model': 'cheap',
      'x-br-auto-reason': 'cheapest_capable',
      'x-br-route': 'best',
      'x-br-route-capability': 'general',
      'x-br-route-model': 'cheap',
      'x-br-route-reason': 'cheapest_capable; no_cue',
    })
    expect(Object.keys(resolve(asking('auto:balanced'), worldOf(pool)).headers)).toEqual(['x-br-auto-preset', 'x-br-auto-model', 'x-br-auto-reason'])
  })

  test('a preset dials the routes of the picked model in the requested order', () => {
    expect(dialed(asking('auto:vision'), worldOf(pool))).toEqual(['two/seeing', 'one/seeing'])
  })

  test('a preset picks only models for its purpose', () => {
    expect(chosen('auto:reasoning')).toBe('thinking')
    expect(chosen('auto:long-context')).toBe('thinking')
    expect(dialed(asking('auto:sovereign'), worldOf(pool))).toEqual(['india/m'])
  })

  test('the preset fastest picks the lowest measured latency', () => {
    const world = worldOf(pool)
    world.health.record({ routeId: 'two/thinking', latencyMs: 5, ok: true })
    world.health.record({ routeId: 'one/cheap', latencyMs: 50, ok: true })
    expect(resolve(asking('auto:fastest'), world).model.id).toBe('thinking')
  })

  test('the preset fastest sometimes tries an unmeasured model', () => {
    const world = worldOf(pool)
    world.health.record({ routeId: 'two/thinking', latencyMs: 5, ok: true })
    const picks = Array.from({ length: 20 }, () => resolve(asking('auto:fastest'), world).model.id)
    expect(picks.filter(id => id !== 'thinking')).toHaveLength(1)
  })

  test('a preset avoids a model whose circuits are open while another model fits, and uses it when none does', () => {
    const world = worldOf(pool)
    trip(world, 'one/cheap')
    expect(resolve(asking('auto:cheapest'), world).model.id).toBe('m')
    const only = worldOf([cheap])
    trip(only, 'one/cheap')
    expect(dialed(asking('auto'), only)).toEqual(['one/cheap'])
  })

  test('a preset without any reachable model gives 404, whatever the reason', () => {
    const fails = (id: string, fields = {}, over = {}): string => errorOf(asking(id, fields, over), worldOf([cheap, absent, vectors]))
    expect(fails('auto:vision')).toBe('404 no_route_virtual')
    expect(fails('auto:sovereign')).toBe('404 no_route_virtual')
    expect(fails('auto', { indiaOnly: true })).toBe('404 no_route_virtual')
    expect(fails('auto', { exclude: ['one'] })).toBe('404 no_route_virtual')
    expect(fails('auto', { provider: 'two' })).toBe('404 no_route_virtual')
    expect(fails('auto', {}, { promptTokens: 5000 })).toBe('404 no_route_virtual')
    expect(fails('auto', {}, { kind: 'embedding' })).toBe('404 no_route_virtual')
    expect(fails('best', { indiaOnly: true })).toBe('404 no_route_virtual')
    expect(fails('auto:best', {}, { promptTokens: 5000 })).toBe('404 no_route_virtual')
  })

  test("a preset includes models on the organisation's own key, for that organisation only", () => {
    expect(resolve(asking('auto', {}, { org: orgWithKeys('native') }), worldOf([claude])).model.id).toBe('claude-x')
    expect(errorOf(asking('auto'), worldOf([claude]))).toBe('404 no_route_virtual')
  })

  test('a preset uses the sandbox only while nothing else can be reached', () => {
    const simulated = model('sandbox-chat', [{ of: sandboxProvider('http://127.0.0.1:1/v1').provider, inr: 0 }])
    expect(resolve(asking('auto'), worldOf([simulated, absent])).model.id).toBe('sandbox-chat')
    expect(resolve(asking('auto:cheapest'), worldOf([simulated, both])).model.id).toBe('m')
    expect(errorOf(asking('auto', { exclude: ['one'] }), worldOf([simulated, cheap]))).toBe('404 no_route_virtual')
  })
})
