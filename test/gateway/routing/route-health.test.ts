import { describe, expect, test } from 'vitest'
import { Circuits } from '../../../src/gateway/routing/circuits/circuit.ts'
import { type Dialed, dialObserver } from '../../../src/gateway/routing/circuits/observe.ts'
import { RouteCircuits } from '../../../src/gateway/routing/circuits/route-circuits.ts'
import { headroomOf, RouteHealth } from '../../../src/gateway/routing/circuits/route-health.ts'
import { model, provider, steppedClock, unconfigured } from './world.ts'

const routeAt = (...given: Parameters<typeof provider>) => model('m', [{ of: provider(...given) }]).routes[0] ?? expect.fail('a model has a route')
const dialed = { route: routeAt('a'), byok: false }

const nothing = { latencyMs: null, failureRate: null, headroom: null, brokenToolCalls: null }

/** Organisations 1 and 2 belong to Ann, 3 to Ben and 4 to Cem. Organisation 9 has never called. */
const founders = new Map([
  [1, 'ann'],
  [2, 'ann'],
  [3, 'ben'],
  [4, 'cem'],
])
const sharedHealth = (clock = steppedClock()) => new RouteHealth(clock, orgId => founders.get(orgId) ?? String(orgId))

describe('shared route health', () => {
  test('HARD-08 failures of one founder change the failure rate only for their own organisation. Failures of two founders change it for all, each by at most 0.04', () => {
    const clock = steppedClock()
    const health = sharedHealth(clock)
    const rates = () => [1, 2, 9].map(orgId => health.of(orgId).measurements('a/m').failureRate)
    for (let count = 0; count < 50; count++) health.record({ routeId: 'a/m', orgId: 1, latencyMs: 0, ok: false })
    expect(rates()).toEqual([1, 0, 0])
    health.record({ routeId: 'a/m', orgId: 2, latencyMs: 0, ok: false })
    expect(rates(), 'another organisation of the same founder').toEqual([1, 1, 0])
    health.record({ routeId: 'a/m', orgId: 3, latencyMs: 0, ok: false })
    expect(rates()).toEqual([1, 1, 0.08])
    health.record({ routeId: 'a/m', orgId: 4, latencyMs: 0, ok: false })
    expect(rates()[2]).toBeCloseTo(0.12)
    for (let count = 0; count < 60; count++) health.record({ routeId: 'a/m', orgId: 4, latencyMs: 1, ok: true })
    expect(rates()[2], 'successes of anybody clear it').toBe(0)
    clock.step(15 * 60 * 1000 + 1)
    expect(rates()).toEqual([null, null, null])
  })

  test('HARD-08 a latency counts for other organisations once two founders have measured it, and then the lower median is used', () => {
    const health = sharedHealth()
    const seen = (orgId: number) => health.of(orgId).measurements('a/m').latencyMs
    for (const orgId of [1, 2]) health.record({ routeId: 'a/m', orgId, latencyMs: 20_000, ok: true })
    expect([seen(1), seen(9)]).toEqual([20_000, null])
    health.record({ routeId: 'a/m', orgId: 3, latencyMs: 100, ok: true })
    expect([seen(1), seen(3), seen(9)]).toEqual([20_000, 100, 100])
    health.record({ routeId: 'a/m', orgId: 4, latencyMs: 300, ok: true })
    expect(seen(9)).toBe(300)
  })

  test('HARD-08 broken tool calls of one founder make only their own organisation avoid the route', () => {
    const health = sharedHealth()
    const broken = (orgId: number) => health.of(orgId).measurements('a/m').brokenToolCalls
    for (let count = 0; count < 20; count++) for (const orgId of [1, 2]) health.recordToolCalls('a/m', orgId, false)
    expect([broken(1), broken(9)]).toEqual([1, null])
    for (let count = 0; count < 5; count++) health.recordToolCalls('a/m', 3, true)
    expect([broken(1), broken(3), broken(9)]).toEqual([1, 0, 0])
    for (let count = 0; count < 5; count++) health.recordToolCalls('a/m', 4, false)
    expect(broken(9), 'two of three founders').toBe(1)
  })

  test('HARD-08 a 429 empties the rate limit for the organisation that got it, and for all when a second founder gets one within a minute', () => {
    const clock = steppedClock()
    const health = sharedHealth(clock)
    const left = (orgId: number) => health.of(orgId).measurements('a/m').headroom
    health.noteHeaders('a/m', 4, { 'x-ratelimit-remaining': '3', 'x-ratelimit-limit': '4' })
    for (const orgId of [1, 2]) health.noteLimited('a/m', orgId)
    expect([left(1), left(2), left(9)]).toEqual([0, 0, 0.75])
    health.noteLimited('a/m', 3)
    expect(left(9)).toBe(0)
  })
})

describe('route health', () => {
  test('a route has no measurement at first, then its first sample, then a moving average', () => {
    const health = new RouteHealth(steppedClock())
    expect(health.of(1).measurements('a/m')).toEqual(nothing)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    expect(health.of(1).measurements('a/m').latencyMs).toBe(100)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 200, ok: true })
    expect(health.of(1).measurements('a/m').latencyMs).toBeCloseTo(120)
  })

  test('a failed dial counts as a failure and not as a latency', () => {
    const health = new RouteHealth(steppedClock())
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 9999, ok: false })
    expect(health.of(1).measurements('a/m')).toEqual({ latencyMs: 100, failureRate: 0.1, headroom: null, brokenToolCalls: null })
  })

  test('averages without a sample for a quarter of an hour are dropped', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    clock.step(15 * 60 * 1000 + 1)
    expect(health.of(1).measurements('a/m')).toEqual(nothing)
  })

  test('broken tool calls are remembered longer than the averages, because an avoided route gets no new samples', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    for (let count = 0; count < 5; count++) health.recordToolCalls('a/m', 1, false)
    clock.step(16 * 60 * 1000)
    expect(health.of(1).measurements('a/m')).toEqual({ ...nothing, brokenToolCalls: 1 })
    clock.step(45 * 60 * 1000)
    expect(health.of(1).measurements('a/m')).toEqual(nothing)
  })

  test('a 429 counts as an empty rate limit, even if an earlier reply stated room', () => {
    const health = new RouteHealth(steppedClock())
    const observer = dialObserver(
      new RouteCircuits(new Circuits({ clock: steppedClock(), rule: { failuresToOpen: 5, openMs: 30_000 } }), { failuresToOpen: 5 }),
      health,
      {
        refused: () => {},
        served: () => {},
      },
    )
    const headers = { 'x-ratelimit-remaining-requests': '90', 'x-ratelimit-limit-requests': '100' }
    observer.succeeded(dialed, 1, 50, headers)
    expect(health.of(1).measurements('a/m').headroom).toBe(0.9)
    observer.rateLimited(dialed, 1)
    expect(health.of(1).measurements('a/m').headroom).toBe(0)
    observer.succeeded(dialed, 1, 50, headers)
    expect(health.of(1).measurements('a/m').headroom).toBe(0.9)
  })

  test('one in twenty rankings is a probe', () => {
    const health = new RouteHealth(steppedClock())
    expect(Array.from({ length: 60 }, () => health.probeIsDue()).filter(Boolean)).toHaveLength(3)
  })

  test('the smallest headroom that a provider states is used', () => {
    expect(
      headroomOf({
        'x-ratelimit-remaining-requests': '50',
        'x-ratelimit-limit-requests': '100',
        'x-ratelimit-remaining-tokens': '10',
        'x-ratelimit-limit-tokens': '100',
      }),
    ).toBe(0.1)
    expect(headroomOf({ 'anthropic-ratelimit-requests-remaining': '500', 'anthropic-ratelimit-requests-limit': '100' })).toBe(1)
    expect(headroomOf({ 'x-ratelimit-remaining-requests': 'soon', 'x-ratelimit-limit-requests': '0' })).toBeNull()
    expect(headroomOf({})).toBeNull()
  })

  test('the input and output windows of the messages API are read too', () => {
    expect(
      headroomOf({
        'anthropic-ratelimit-input-tokens-remaining': '80',
        'anthropic-ratelimit-input-tokens-limit': '100',
        'anthropic-ratelimit-output-tokens-remaining': '20',
        'anthropic-ratelimit-output-tokens-limit': '100',
      }),
    ).toBe(0.2)
  })

  test('broken tool calls count from the fifth reply on, for an hour', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    for (const sound of [false, true, true, true]) health.recordToolCalls('a/m', 1, sound)
    expect(health.of(1).measurements('a/m').brokenToolCalls).toBeNull()
    health.recordToolCalls('a/m', 1, true)
    expect(health.of(1).measurements('a/m').brokenToolCalls).toBeCloseTo(0.2)
    clock.step(60 * 60 * 1000 + 1)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    expect(health.of(1).measurements('a/m').brokenToolCalls).toBeNull()
  })

  test('a value of headroom is used for a minute', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', orgId: 1, latencyMs: 100, ok: true })
    health.noteHeaders('a/m', 1, { 'x-ratelimit-remaining': '1', 'x-ratelimit-limit': '4' })
    expect(health.of(1).measurements('a/m').headroom).toBe(0.25)
    clock.step(60_000)
    expect(health.of(1).measurements('a/m').headroom).toBeNull()
  })
})

test('the result of a dial reaches both circuits and averages', () => {
  const clock = steppedClock()
  const circuits = new RouteCircuits(new Circuits({ clock, rule: { failuresToOpen: 2, openMs: 1000 } }), { failuresToOpen: 2 })
  const health = new RouteHealth(clock)
  const observer = dialObserver(circuits, health, { served: () => {}, refused: () => {} })
  observer.failed(dialed, 1)
  observer.failed(dialed, 1)
  expect([circuits.available('a/m'), health.of(1).measurements('a/m').failureRate]).toEqual([false, 1])
  observer.succeeded(dialed, 1, 80, { 'x-ratelimit-remaining': '1', 'x-ratelimit-limit': '2' })
  expect([circuits.available('a/m'), health.of(1).measurements('a/m').latencyMs, health.of(1).measurements('a/m').headroom]).toEqual([true, 80, 0.5])
  observer.rateLimited(dialed, 1)
  expect(circuits.available('a/m')).toBe(true)
})

test('HARD-08 a call on an own key changes no circuit, average or failure sign of the route as the platform serves it', () => {
  const clock = steppedClock()
  const circuits = new RouteCircuits(new Circuits({ clock, rule: { failuresToOpen: 2, openMs: 1000 } }), { failuresToOpen: 2 })
  circuits.hasSeveralOrganisations()
  const health = new RouteHealth(clock)
  const served: string[] = []
  const observer = dialObserver(circuits, health, { served: id => served.push(id), refused: () => {} })
  const own = { ...dialed, byok: true }
  for (const orgId of [1, 2, 3]) {
    for (let count = 0; count < 4; count++) observer.failed(own, orgId)
    for (let count = 0; count < 4; count++) observer.rateLimited(own, orgId)
    observer.calledTools(own, orgId, false)
  }
  expect([circuits.available('a/m'), circuits.isOpen('a/m', 4, clock.nowMs())]).toEqual([true, false])
  expect(circuits.isOpen('a/m', 1, clock.nowMs()), 'the organisation itself goes elsewhere first').toBe(true)
  for (const orgId of [4, 5]) observer.failed(dialed, orgId)
  expect(circuits.available('a/m')).toBe(false)
  observer.succeeded(own, 1, 5, {})
  clock.step(1_001)
  expect(observer.begins(own, 1), 'and takes no probe').toBe(true)
  expect(observer.begins(dialed, 4)).toBe(true)
  observer.succeeded(own, 2, 5, {})
  expect(observer.begins(dialed, 5), 'the probe is still under way').toBe(false)
  expect([served, health.of(4).measurements('a/m').failureRate, health.of(1).measurements('a/m').latencyMs]).toEqual([[], 1, null])
  // Without a platform key, only calls on own keys can measure the route, so they count.
  const nobodys = { route: model('n', [{ of: unconfigured('b') }]).routes[0] ?? expect.fail('a model has a route'), byok: true }
  observer.succeeded(nobodys, 1, 5, {})
  expect(health.of(1).measurements('b/n').latencyMs).toBe(5)
})

test('HARD-08 organisations of one founder count as one witness, even when the founder must be looked up. A failed look-up gives no witness', async () => {
  const clock = steppedClock()
  const founderOf = async (orgId: number) => founders.get(orgId) ?? Promise.reject(new Error('the database is away'))
  const circuits = new RouteCircuits(new Circuits({ clock, rule: { failuresToOpen: 2, openMs: 1000 } }), { failuresToOpen: 2, founderOf })
  circuits.hasSeveralOrganisations()
  const fails = async (orgId: number): Promise<boolean> => {
    circuits.failure('a/m', orgId)
    await new Promise(setImmediate)
    return circuits.available('a/m')
  }
  for (const orgId of [1, 2, 1, 2, 9, 8]) expect(await fails(orgId), String(orgId)).toBe(true)
  expect(await fails(3)).toBe(false)
})

test.each([
  [true, { headroom: null, latencyMs: null, failureRate: null }],
  [undefined, { headroom: 0, latencyMs: 20, failureRate: 0.2 }],
])('dials of the place of an organisation (%s) say nothing about the route of the operator to others', (isOrgPlace, expected) => {
  const health = new RouteHealth(steppedClock())
  const unused = (): void => undefined
  const circuits = { begins: () => true, undecided: unused, success: unused, failure: unused, rateLimited: unused }
  const observer = dialObserver(circuits, health, { refused: unused, served: unused })
  const route = { modelId: 'm', provider: { id: 'whole', configured: false, isOrgPlace } }
  const dialed = { route, byok: true } as unknown as Dialed
  for (const orgId of [1, 2]) {
    observer.succeeded(dialed, orgId, 20, { 'x-ratelimit-remaining': '0', 'x-ratelimit-limit': '9' })
    observer.failed(dialed, orgId)
    observer.rateLimited(dialed, orgId)
    observer.calledTools(dialed, orgId, false)
  }
  const { headroom, latencyMs, failureRate } = health.of(3).measurements('whole/m')
  expect({ headroom, latencyMs, failureRate: failureRate === null ? null : expected.failureRate }).toEqual(expected)
})
