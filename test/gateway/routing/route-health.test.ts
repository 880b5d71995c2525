import { describe, expect, test } from 'vitest'
import { Circuits } from '../../../src/gateway/routing/circuit.ts'
import { dialObserver } from '../../../src/gateway/routing/observe.ts'
import { headroomOf, RouteHealth } from '../../../src/gateway/routing/route-health.ts'
import { steppedClock } from './world.ts'

const nothing = { latencyMs: null, failureRate: null, headroom: null, brokenToolCalls: null }

describe('route health', () => {
  test('knows nothing of a route at first, then its first sample, then a moving average', () => {
    const health = new RouteHealth(steppedClock())
    expect(health.measurements('a/m')).toEqual(nothing)
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    expect(health.measurements('a/m').latencyMs).toBe(100)
    health.record({ routeId: 'a/m', latencyMs: 200, ok: true })
    expect(health.measurements('a/m').latencyMs).toBeCloseTo(120)
  })

  test('counts a failed dial as a failure and not as latency', () => {
    const health = new RouteHealth(steppedClock())
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    health.record({ routeId: 'a/m', latencyMs: 9999, ok: false })
    expect(health.measurements('a/m')).toEqual({ latencyMs: 100, failureRate: 0.1, headroom: null, brokenToolCalls: null })
  })

  test('forgets averages without a sample for a quarter of an hour', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    clock.step(15 * 60 * 1000 + 1)
    expect(health.measurements('a/m')).toEqual(nothing)
  })

  test('remembers broken tool calls when the averages have run out: a route that is avoided for them has no other samples', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    for (let count = 0; count < 5; count++) health.recordToolCalls('a/m', false)
    clock.step(16 * 60 * 1000)
    expect(health.measurements('a/m')).toEqual({ ...nothing, brokenToolCalls: 1 })
    clock.step(45 * 60 * 1000)
    expect(health.measurements('a/m')).toEqual(nothing)
  })

  test('takes a 429 for an empty rate limit, whatever an earlier reply said', () => {
    const health = new RouteHealth(steppedClock())
    const observer = dialObserver(new Circuits({ clock: steppedClock(), rule: { failuresToOpen: 5, openMs: 30_000 } }), health, {
      refused: () => {},
      served: () => {},
    })
    const headers = { 'x-ratelimit-remaining-requests': '90', 'x-ratelimit-limit-requests': '100' }
    observer.succeeded('a/m', 50, headers)
    expect(health.measurements('a/m').headroom).toBe(0.9)
    observer.rateLimited('a/m')
    expect(health.measurements('a/m').headroom).toBe(0)
    observer.succeeded('a/m', 50, headers)
    expect(health.measurements('a/m').headroom).toBe(0.9)
  })

  test('asks for a probe once in twenty rankings', () => {
    const health = new RouteHealth(steppedClock())
    expect(Array.from({ length: 60 }, () => health.probeIsDue()).filter(Boolean)).toHaveLength(3)
  })

  test('reads the tightest headroom that a provider states', () => {
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

  test('reads the input and output windows of the messages API too', () => {
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
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    for (const sound of [false, true, true, true]) health.recordToolCalls('a/m', sound)
    expect(health.measurements('a/m').brokenToolCalls).toBeNull()
    health.recordToolCalls('a/m', true)
    expect(health.measurements('a/m').brokenToolCalls).toBeCloseTo(0.2)
    clock.step(60 * 60 * 1000 + 1)
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    expect(health.measurements('a/m').brokenToolCalls).toBeNull()
  })

  test('headroom counts for a minute', () => {
    const clock = steppedClock()
    const health = new RouteHealth(clock)
    health.record({ routeId: 'a/m', latencyMs: 100, ok: true })
    health.noteHeaders('a/m', { 'x-ratelimit-remaining': '1', 'x-ratelimit-limit': '4' })
    expect(health.measurements('a/m').headroom).toBe(0.25)
    clock.step(60_000)
    expect(health.measurements('a/m').headroom).toBeNull()
  })
})

test('what a dial came to reaches circuits and averages alike', () => {
  const clock = steppedClock()
  const circuits = new Circuits({ clock, rule: { failuresToOpen: 2, openMs: 1000 } })
  const health = new RouteHealth(clock)
  const observer = dialObserver(circuits, health, { served: () => {}, refused: () => {} })
  observer.failed('a/m')
  observer.failed('a/m')
  expect([circuits.available('a/m'), health.measurements('a/m').failureRate]).toEqual([false, 1])
  observer.succeeded('a/m', 80, { 'x-ratelimit-remaining': '1', 'x-ratelimit-limit': '2' })
  expect([circuits.available('a/m'), health.measurements('a/m').latencyMs, health.measurements('a/m').headroom]).toEqual([true, 80, 0.5])
  observer.rateLimited('a/m')
  expect(circuits.available('a/m')).toBe(true)
})
