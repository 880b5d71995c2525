import { describe, expect, test } from 'vitest'
import { allowanceOf } from '../../../src/gateway/catalog/allowance.ts'
import { Catalog } from '../../../src/gateway/catalog/catalog.ts'
import { routeId } from '../../../src/gateway/catalog/model.ts'
import { virtualModels } from '../../../src/gateway/catalog/virtual-models.ts'
import type { ResolveRequest } from '../../../src/gateway/routing/plan.ts'
import { resolve } from '../../../src/gateway/routing/resolve.ts'
import type { RoutingWorld } from '../../../src/gateway/routing/routing-world.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import type { CallPolicy } from '../../../src/platform/security/principal.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { asking, catalog, model, orgRouting, provider, worldOf } from './world.ts'

const policy = (models: readonly string[] | null, providers: readonly string[] | null = null): CallPolicy => ({
  owner: 'key',
  ownerId: 1,
  allowedModels: models,
  allowedProviders: providers,
  maxCostUinr: null,
  maxOutputTokens: null,
  maxConcurrency: null,
})

const outcome = (request: ResolveRequest, world: RoutingWorld): string | string[] => {
  try {
    return resolve(request, world).attempts.map(attempt => routeId(attempt.route))
  } catch (error) {
    if (error instanceof GatewayError) return `${error.status} ${error.errorName}`
    throw error
  }
}

const one = provider('one')
const two = provider('two')
const cheap = model('cheap', [{ of: one, inr: 1 }])
const m = model('m', [
  { of: one, inr: 10 },
  { of: two, inr: 20 },
])
const seeing = model('seeing', [{ of: two, inr: 30 }], { modalities: ['text', 'image'] })
const gated = model('gated', [{ of: one }], { gated: true })
const all = [cheap, m, seeing, gated]
const ask = (modelId: string, policies: readonly CallPolicy[], fields: Parameters<typeof asking>[1] = {}, over: Partial<ResolveRequest> = {}) =>
  outcome(asking(modelId, fields, { policies, ...over }), worldOf(all))
const denied = '403 model_not_allowed'

describe('what a credential may use', () => {
  test('without rules for models or providers, everything is allowed', () => {
    for (const policies of [[], [policy(null)]]) expect(ask('m', policies)).toEqual(['one/m', 'two/m'])
    expect(allowanceOf([policy(null)])).toBeNull()
  })

  test('only listed models are allowed. An unknown id stays unknown, and the rule is checked before the gate', () => {
    expect(ask('m', [policy(['m'])])).toEqual(['one/m', 'two/m'])
    expect(ask('cheap', [policy(['m'])])).toBe(denied)
    expect(ask('nope', [policy(['m'])])).toBe('404 model_not_found')
    expect(ask('gated', [policy(['m'])])).toBe(denied)
    expect(ask('gated', [policy(['gated'])])).toBe('403 model_gated')
    expect(ask('m', [policy([])])).toBe(denied)
  })

  test('only listed providers are allowed. A pin outside the list is refused, and other routes are left out', () => {
    expect(ask('m', [policy(null, ['two'])])).toEqual(['two/m'])
    expect(ask('cheap', [policy(null, ['two'])])).toBe(denied)
    expect(ask('m', [policy(null, ['two'])], { provider: 'one' })).toBe(denied)
    expect(ask('m', [policy(null, ['two'])], { provider: 'two' })).toEqual(['two/m'])
    expect(ask('cheap', [policy(null, ['one', 'two'])], { provider: 'two' })).toBe('400 no_route')
    expect(ask('m', [policy(null, [])])).toBe(denied)
  })

  test('only what every rule allows is allowed', () => {
    expect(ask('m', [policy(['m', 'cheap']), policy(['m'], ['two'])])).toEqual(['two/m'])
    expect(ask('cheap', [policy(['m', 'cheap']), policy(['m'])])).toBe(denied)
    expect(ask('m', [policy(null, ['one']), policy(null, ['two'])])).toBe(denied)
  })

  test('the rules limit what a preset picks', () => {
    expect(ask('auto:cheapest', [policy(['m'])])).toEqual(['one/m', 'two/m'])
    expect(ask('auto:cheapest', [policy(null, ['two'])])).toEqual(['two/m'])
    expect(ask('auto:vision', [policy(['m'])])).toBe(denied)
    expect(ask('auto:reasoning', [policy(['m'])])).toBe('404 no_route_virtual')
    expect(ask('auto', [policy(['m'])], { provider: 'one' })).toEqual(['one/m'])
    expect(ask('auto', [policy(null, ['two'])], { provider: 'one' })).toBe(denied)
  })

  test('a list of only virtual ids lets them pick any model. A list that also has models lets them pick those', () => {
    expect(ask('auto:cheapest', [policy(['auto:cheapest'])])).toEqual(['one/cheap'])
    expect(ask('auto:vision', [policy(['auto:cheapest'])])).toBe(denied)
    expect(ask('cheap', [policy(['auto:cheapest'])])).toBe(denied)
    expect(ask('auto:cheapest', [policy(['auto:cheapest', 'm'])])).toEqual(['one/m', 'two/m'])
    expect(ask('auto:cheapest', [policy(['auto:cheapest']), policy(['seeing'])])).toEqual(['two/seeing'])
    expect(allowanceOf([policy(['best'])])?.pick('auto:best', 'm')).toBe(true)
  })

  test('the rules apply to the steps of a chain: steps are skipped, and the call is refused when no step is left', () => {
    const steps = (...ids: string[]) => ids.map(id => ({ model: id, provider: null }))
    expect(ask('m', [policy(['m', 'seeing'])], { fallbacks: steps('cheap', 'seeing') })).toEqual(['two/seeing'])
    expect(ask('m', [policy(['m'])], { fallbacks: steps('cheap', 'seeing', 'nope') })).toBe(denied)
    expect(ask('m', [policy(['m'])], { fallbacks: steps('nope') })).toBe('400 no_route')
    expect(ask('cheap', [policy(['m'])], { fallbacks: steps('m') })).toBe(denied)
    expect(ask('m', [policy(null, ['two'])], { fallbacks: [{ model: 'm', provider: 'one' }, ...steps('m')] })).toEqual(['two/m'])
    const org = orgRouting({ chains: new Map([['m', steps('cheap')]]) })
    expect(ask('m', [policy(['m'])], {}, { org })).toBe(denied)
    expect(ask('m', [policy(['m', 'cheap'])], {}, { org })).toEqual(['one/cheap'])
    expect(ask('m', [policy(['m'])], { fallbacks: steps('auto:cheapest') })).toEqual(['one/m', 'two/m'])
  })

  test('the rules cover ids of models on own keys and references to own servers', () => {
    const org = orgRouting({
      savedKeys: new Map([['two', { key: new Secret('saved'), alwaysUse: false, models: ['a', 'b'] }]]),
      customRoutes: new Map([
        ['byoe:box', { slug: 'box', modelId: 'm', provider: provider('byoe:box', { userGiven: true }), upstreamModel: 'x', stateKey: 'byoe#1' }],
      ]),
    })
    expect(ask('two/a', [policy(['two/a'])], {}, { org })).toEqual(['two/two/a'])
    expect(ask('two/b', [policy(['two/a'])], {}, { org })).toBe(denied)
    expect(ask('two/a', [policy(null, ['one'])], {}, { org })).toBe(denied)
    expect(ask('m', [policy(['m'], ['byoe:box'])], { provider: 'byoe:box' }, { org })).toEqual(['byoe:box/m'])
    expect(ask('m', [policy(null, ['one'])], { provider: 'byoe:box' }, { org })).toBe(denied)
  })
})

describe('what a credential is shown', () => {
  const snapshot = catalog([...all, ...virtualModels(all, 'test')])
  const shown = new Catalog(snapshot, () => ({ available: true, maintenance: false }))
  const ids = (policies: readonly CallPolicy[]) => shown.publicModels([], allowanceOf(policies)).map(entry => entry.id)

  test('a credential sees the allowed models with their allowed routes, and the presets that can pick one', () => {
    const visible = ids([policy(['m', 'seeing'], ['two'])])
    expect(visible).toEqual(expect.arrayContaining(['m', 'seeing', 'auto', 'auto:vision']))
    expect(visible).not.toContain('cheap')
    expect(visible).not.toContain('gated')
    expect(ids([policy(['cheap'])])).not.toContain('auto:vision')
    expect(ids([policy(['auto:vision'])])).toEqual(['auto:vision'])
    const entry = shown.publicModel('m', allowanceOf([policy(null, ['two'])]))
    expect(entry?.routes.map(route => route.provider)).toEqual(['two'])
    expect(shown.publicModel('cheap', allowanceOf([policy(null, ['two'])]))).toBeNull()
    const auto = shown.publicModel('auto', allowanceOf([policy(['m'], ['two'])]))
    expect(auto?.routes.map(route => [route.model, route.provider])).toEqual([['m', 'two']])
  })

  test('a credential sees the providers that may serve an allowed model', () => {
    const providers = (policies: readonly CallPolicy[]) => shown.publicProviders(allowanceOf(policies)).map(entry => entry.id)
    expect(providers([])).toEqual(['one', 'two'])
    expect(providers([policy(null, ['two'])])).toEqual(['two'])
    expect(providers([policy(['cheap'])])).toEqual(['one'])
    expect(providers([policy(['nothing'])])).toEqual([])
  })
})
