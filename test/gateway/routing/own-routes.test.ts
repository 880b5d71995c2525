import { describe, expect, test } from 'vitest'
import type { CustomRoute } from '../../../src/gateway/byok/org-credentials.ts'
import { routeId, stateKeyOf } from '../../../src/gateway/catalog/model.ts'
import { bytesOfRouting } from '../../../src/gateway/routing/org-routing.ts'
import { discoveredModels } from '../../../src/gateway/routing/own-models.ts'
import type { ResolveRequest } from '../../../src/gateway/routing/plan.ts'
import { resolve } from '../../../src/gateway/routing/resolve.ts'
import type { RoutingWorld } from '../../../src/gateway/routing/routing-world.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { errorOf } from './outcome.ts'
import { asking, model, orgRouting, provider, unconfigured, worldOf } from './world.ts'

const attempts = (request: ResolveRequest, world: RoutingWorld): string[] =>
  resolve(request, world).attempts.map(({ route, credential, byok }) => `${routeId(route)} ${byok ? 'own' : 'platform'} ${credential?.reveal() ?? 'no key'}`)

const one = provider('one')
const two = provider('two', { residency: 'india' })
const away = unconfigured('away')
const m = model('m', [
  { of: one, inr: 10 },
  { of: two, inr: 20 },
  { of: away, inr: 5 },
])
const vectors = model('vectors', [{ of: one, inr: 3 }], { kind: 'embedding' })
const gated = model('gated', [{ of: one }], { gated: true })
const world = () => worldOf([m, vectors, gated])
const savedKey = (over: { alwaysUse?: boolean; models?: readonly string[] } = {}) => ({ key: new Secret('saved'), alwaysUse: false, models: [], ...over })
const withKey = (id: string, over: Parameters<typeof savedKey>[0] = {}) => orgRouting({ savedKeys: new Map([[id, savedKey(over)]]) })

describe('a saved key', () => {
  test("a saved key serves where the platform's key cannot, and comes after the platform's routes", () => {
    expect(attempts(asking('m', {}, { org: withKey('away') }), world())).toEqual(['one/m platform key of one', 'two/m platform key of two', 'away/m own saved'])
    expect(attempts(asking('m', {}, { org: withKey('two') }), world())).toEqual(['one/m platform key of one', 'two/m platform key of two'])
  })

  test("a saved key that is always used comes first, and the platform's key of the same provider follows", () => {
    expect(attempts(asking('m', {}, { org: withKey('two', { alwaysUse: true }) }), world())).toEqual([
      'two/m own saved',
      'one/m platform key of one',
      'two/m platform key of two',
    ])
    expect(attempts(asking('m', { upstreamKey: 'sent', provider: 'two' }, { org: withKey('two', { alwaysUse: true }) }), world())).toEqual(['two/m own sent'])
  })
})

describe('the models that saved keys serve', () => {
  test('the list looks at each model once, and the size of cached settings counts every id', () => {
    let looks = 0
    const ids = Array.from({ length: 2_000 }, (_, index) => `model-${index}`)
    const models: string[] = Object.assign([...ids, 'm'], {
      includes(id: string) {
        looks++
        return ids.includes(id)
      },
    })
    const org = withKey('away', { models })
    const found = discoveredModels(org, world().catalog)
    expect([found.length, found[0]?.id, found.at(-1)?.id, looks]).toEqual([2_001, 'away/model-0', 'away/m', 0])
    expect(bytesOfRouting(org)).toBeGreaterThan(2_000 * 2 * 'model-0'.length)
    expect(bytesOfRouting(withKey('away'))).toBeLessThan(10_000)
  })
})

describe('an id of the form provider/model-id', () => {
  const org = withKey('away', { models: ['plain', 'deep/er:7b', 'm', 'vectors'] })

  test("a provider/model-id runs on the saved key, with the part after the first slash as the provider's model", () => {
    for (const listed of ['plain', 'deep/er:7b']) {
      const plan = resolve(asking(`away/${listed}`, {}, { org }), world())
      expect(plan.model.id).toBe(`away/${listed}`)
      const [{ route, byok, credential }] = plan.attempts as [(typeof plan.attempts)[0]]
      expect([route.modelId, route.upstreamModel, byok, credential?.reveal()]).toEqual([`away/${listed}`, listed, true, 'saved'])
    }
  })

  test('a provider/model-id has the price and properties of that model at that provider in the catalog, or none', () => {
    const known = resolve(asking('away/m', {}, { org }), world())
    expect(known.attempts[0]?.route.price).toEqual(m.routes[2]?.price)
    expect(known.model.contextLength).toBe(8000)
    expect(known.attempts.map(attempt => stateKeyOf(attempt.route))).toEqual(['away/m'])
    const unknown = resolve(asking('away/plain', {}, { org }), world())
    expect([unknown.attempts[0]?.route.price.inputUinrPerMtok, unknown.model.contextLength]).toEqual([0n, null])
  })

  test('a provider/model-id is unknown when the saved key does not list it, and has no route without a key. With a key in the request it is always accepted', () => {
    expect(errorOf(asking('away/other', {}, { org }), world())).toBe('404 model_not_found')
    expect(errorOf(asking('one/other', {}, { org }), world())).toBe('400 no_route')
    expect(errorOf(asking('away/', {}, { org }), world())).toBe('404 model_not_found')
    expect(attempts(asking('one/other', { upstreamKey: 'sent' }, { org }), world())).toEqual(['one/one/other own sent'])
    expect(attempts(asking('away/other', { upstreamKey: 'sent' }, { org }), world())).toEqual(['away/away/other own sent'])
  })

  test('a provider/model-id has the kind that the catalog states, and obeys the hard constraints', () => {
    const listed = withKey('one', { models: ['vectors', 'gated', 'free'] })
    expect(errorOf(asking('one/vectors', {}, { org: listed }), world())).toBe('400 no_route')
    expect(attempts(asking('one/vectors', {}, { org: listed, kind: 'embedding' }), world())).toEqual(['one/one/vectors own saved'])
    expect(errorOf(asking('one/gated', {}, { org: listed }), world())).toBe('403 model_gated')
    expect(errorOf(asking('one/free', { indiaOnly: true }, { org: listed }), world())).toBe('422 no_route_residency')
    expect(errorOf(asking('one/free', { exclude: ['one'] }, { org: listed }), world())).toBe('422 no_route_residency')
    expect(errorOf(asking('one/free', { provider: 'two' }, { org: listed }), world())).toBe('400 no_route')
  })

  test('a provider/model-id may be a step of a chain', () => {
    const chain = {
      fallbacks: [
        { model: 'away/other', provider: null },
        { model: 'away/plain', provider: null },
        { model: 'm', provider: 'two' },
      ],
    }
    expect(attempts(asking('m', chain, { org }), world())).toEqual(['away/away/plain own saved', 'two/m platform key of two'])
  })
})

describe("an organisation's own server", () => {
  const custom = (slug: string, over: Partial<CustomRoute> = {}): CustomRoute => ({
    slug,
    modelId: 'm',
    provider: provider(`byoe:${slug}`, { userGiven: true, residency: 'global', platformKey: new Secret('server key') }),
    upstreamModel: 'theirs',
    stateKey: `byoe#${slug}`,
    ...over,
  })
  const org = (...servers: readonly CustomRoute[]) => orgRouting({ customRoutes: new Map(servers.map(server => [server.provider.id, server])) })

  test('an own server serves only when a pin or a step names it', () => {
    expect(attempts(asking('m', {}, { org: org(custom('box')) }), world())).toEqual(['one/m platform key of one', 'two/m platform key of two'])
    expect(attempts(asking('m', { provider: 'byoe:box' }, { org: org(custom('box')) }), world())).toEqual(['byoe:box/m own server key'])
    const chain = {
      fallbacks: [
        { model: 'm', provider: 'byoe:box' },
        { model: 'm', provider: 'two' },
      ],
    }
    expect(attempts(asking('m', chain, { org: org(custom('box')) }), world())).toEqual(['byoe:box/m own server key', 'two/m platform key of two'])
    expect(attempts(asking('auto:cheapest', { provider: 'byoe:box' }, { org: org(custom('box')) }), world())).toEqual(['byoe:box/m own server key'])
  })

  test('an own server costs nothing and has a state of its own', () => {
    const [attempt] = resolve(asking('m', { provider: 'byoe:box' }, { org: org(custom('box')) }), world()).attempts
    expect([attempt?.route.price.inputUinrPerMtok, attempt?.byok, attempt && stateKeyOf(attempt.route)]).toEqual([0n, true, 'byoe#box'])
  })

  test('an own server that does not serve the model, or belongs to another organisation, gives no_route. Residency and exclude apply to it', () => {
    const ours = org(custom('box'), custom('other', { modelId: 'vectors' }))
    for (const pinned of ['byoe:other', 'byoe:none', 'byoe:'])
      expect(errorOf(asking('m', { provider: pinned }, { org: ours }), world()), pinned).toBe('400 no_route')
    expect(errorOf(asking('m', { provider: 'byoe:box', indiaOnly: true }, { org: ours }), world())).toBe('422 no_route_residency')
    expect(errorOf(asking('m', { provider: 'byoe:box', exclude: ['byoe:box'] }, { org: ours }), world())).toBe('422 no_route_residency')
    const indian = custom('box', { provider: provider('byoe:box', { userGiven: true, residency: 'india', platformKey: null, auth: 'none' }) })
    expect(attempts(asking('m', { provider: 'byoe:box', indiaOnly: true }, { org: org(indian) }), world())).toEqual(['byoe:box/m own no key'])
  })

  test('an own server gets a key of the caller only when it is pinned', () => {
    expect(attempts(asking('m', { provider: 'byoe:box', upstreamKey: 'sent' }, { org: org(custom('box')) }), world())).toEqual(['byoe:box/m own sent'])
    const chain = { upstreamKey: 'sent', fallbacks: [{ model: 'm', provider: 'byoe:box' }] }
    expect(errorOf(asking('m', chain, { org: org(custom('box')) }), world())).toBe('400 no_route')
  })
})

describe('a saved chain', () => {
  const chained = (steps: readonly (readonly [string, string?])[]) =>
    orgRouting({ chains: new Map([['m', steps.map(([id, on]) => ({ model: id, provider: on ?? null }))]]) })

  test('a saved chain replaces the default routing, and a pin and fallbacks take precedence over it', () => {
    const org = chained([['m', 'two']])
    expect(attempts(asking('m', {}, { org }), world())).toEqual(['two/m platform key of two'])
    expect(attempts(asking('m', { provider: 'one' }, { org }), world())).toEqual(['one/m platform key of one'])
    expect(attempts(asking('m', { fallbacks: [{ model: 'm', provider: null }] }, { org }), world())).toHaveLength(2)
  })

  test('a saved chain that only the hard constraints make empty gives 422, even when a preset is a step', () => {
    const org = chained([['auto:cheapest'], ['nope']])
    expect(attempts(asking('m', { indiaOnly: true }, { org }), world())).toEqual(['two/m platform key of two'])
    expect(errorOf(asking('m', { exclude: ['one', 'two', 'away'] }, { org }), world())).toBe('422 no_route_residency')
    expect(errorOf(asking('m', { exclude: ['one'] }, { org: chained([['nope']]) }), world())).toBe('400 no_route')
  })

  test('a saved chain does not open a gated model', () => {
    const org = orgRouting({ chains: new Map([['gated', [{ model: 'm', provider: null }]]]) })
    expect(errorOf(asking('gated', {}, { org }), world())).toBe('403 model_gated')
    expect(errorOf(asking('m', {}, { org: chained([['gated']]) }), world())).toBe('400 no_route')
  })
})
