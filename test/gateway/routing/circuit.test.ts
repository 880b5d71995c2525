import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { afterFailure, afterSuccess, type CircuitState, Circuits, closedCircuit, isCircuitOpen } from '../../../src/gateway/routing/circuits/circuit.ts'
import { steppedClock } from './world.ts'

const rule = { failuresToOpen: 5, openMs: 30_000 }

function circuits() {
  const clock = steppedClock()
  const opened: string[] = []
  const changes: string[] = []
  return {
    clock,
    opened,
    circuits: new Circuits({ clock, rule, onChange: (id, change) => (change === 'opened' ? opened.push(id) : changes.push(`${change} ${id}`)) }),
    changes,
  }
}

describe('a circuit', () => {
  test('a circuit opens on the fifth consecutive failure and reports it once', () => {
    const at = circuits()
    for (let count = 0; count < 4; count++) at.circuits.failure('a/m')
    expect(at.circuits.available('a/m')).toBe(true)
    at.circuits.failure('a/m')
    expect(at.circuits.available('a/m')).toBe(false)
    at.circuits.failure('a/m')
    expect(at.opened).toEqual(['a/m'])
    expect(at.circuits.openRoutes()).toEqual(['a/m'])
    expect(at.circuits.available('b/m')).toBe(true)
  })

  test('a circuit forgets its failures on a success', () => {
    const at = circuits()
    for (let count = 0; count < 4; count++) at.circuits.failure('a/m')
    at.circuits.success('a/m')
    for (let count = 0; count < 4; count++) at.circuits.failure('a/m')
    expect(at.circuits.available('a/m')).toBe(true)
  })

  test('after its open time a circuit is available again. One failure then opens it again without a report, and one success closes it', () => {
    const at = circuits()
    for (let count = 0; count < 5; count++) at.circuits.failure('a/m')
    at.clock.step(29_999)
    expect(at.circuits.available('a/m')).toBe(false)
    at.clock.step(1)
    expect(at.circuits.available('a/m')).toBe(true)
    at.circuits.failure('a/m')
    expect(at.circuits.available('a/m')).toBe(false)
    at.clock.step(30_000)
    at.circuits.success('a/m')
    at.circuits.failure('a/m')
    expect(at.circuits.available('a/m')).toBe(true)
    expect(at.opened).toEqual(['a/m'])
  })

  test('failures of dials that were made while the circuit was open do not keep it open longer', () => {
    const at = circuits()
    for (let count = 0; count < 5; count++) at.circuits.failure('a/m')
    at.clock.step(20_000)
    at.circuits.failure('a/m')
    at.clock.step(10_000)
    expect(at.circuits.available('a/m')).toBe(true)
  })

  test('a half-open circuit lets one probe through, and is open for all others until the probe reports', () => {
    const at = circuits()
    for (let count = 0; count < 5; count++) at.circuits.failure('a/m')
    expect([at.circuits.begins('a/m'), at.circuits.begins('a/m')]).toEqual([true, true])
    at.clock.step(30_000)
    expect(at.circuits.isOpen('a/m', at.clock.nowMs())).toBe(false)
    expect([at.circuits.begins('a/m'), at.circuits.begins('a/m')]).toEqual([true, false])
    expect(at.circuits.isOpen('a/m', at.clock.nowMs())).toBe(true)
    expect(at.circuits.available('a/m')).toBe(true)
    at.circuits.success('a/m')
    expect([at.circuits.begins('a/m'), at.circuits.begins('a/m'), at.circuits.isOpen('a/m', at.clock.nowMs())]).toEqual([true, true, false])
    expect(at.changes).toEqual(['closed a/m'])
  })

  test('when a probe reports nothing or never returns, the next call becomes the probe', () => {
    const at = circuits()
    for (let count = 0; count < 5; count++) at.circuits.failure('a/m')
    at.clock.step(30_000)
    at.circuits.begins('a/m')
    at.circuits.undecided('a/m')
    expect([at.circuits.begins('a/m'), at.circuits.begins('a/m')]).toEqual([true, false])
    at.clock.step(30_000)
    expect([at.circuits.begins('a/m'), at.circuits.begins('a/m')]).toEqual([true, false])
    at.circuits.failure('a/m')
    expect(at.circuits.available('a/m')).toBe(false)
    expect(at.changes).toEqual(['reopened a/m'])
  })

  test('a circuit follows the reports of other processes and does not pass them on', () => {
    const at = circuits()
    at.circuits.openedElsewhere('a/m', 10_000)
    expect(at.circuits.available('a/m')).toBe(false)
    at.circuits.openedElsewhere('a/m', 5_000)
    at.clock.step(9_999)
    expect(at.circuits.available('a/m')).toBe(false)
    at.clock.step(1)
    expect(at.circuits.available('a/m')).toBe(true)
    at.circuits.openedElsewhere('a/m', 999_999_999)
    expect(at.circuits.remainingMs('a/m')).toBe(30_000)
    // The success was seen before the circuit opened, so it is ignored.
    at.circuits.closedElsewhere('a/m')
    expect(at.circuits.available('a/m')).toBe(false)
    at.clock.step(2_000)
    at.circuits.closedElsewhere('a/m')
    expect(at.circuits.available('a/m')).toBe(true)
    expect([at.opened, at.changes]).toEqual([[], []])
  })

  test('a single 429 does not count as a failure, and from the second in a row on, every 429 does', () => {
    const at = circuits()
    for (let count = 0; count < 5; count++) at.circuits.rateLimited('a/m')
    expect(at.circuits.available('a/m')).toBe(true)
    at.circuits.rateLimited('a/m')
    expect(at.circuits.available('a/m')).toBe(false)
  })

  test('a circuit is open exactly when five failures in a row occurred and the last opening is less than the open time ago', () => {
    const step = fc.record({ ok: fc.boolean(), afterMs: fc.integer({ min: 0, max: 40_000 }) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        let state: CircuitState = closedCircuit
        let nowMs = 0
        let row = 0
        let openedAtMs: number | null = null
        for (const { ok, afterMs } of steps) {
          nowMs += afterMs
          const wasOpen = isCircuitOpen(state, nowMs)
          state = ok ? afterSuccess() : afterFailure(state, nowMs, rule)
          row = ok ? 0 : row + 1
          if (ok) openedAtMs = null
          else if (row >= 5 && !wasOpen) openedAtMs = nowMs
          expect(isCircuitOpen(state, nowMs)).toBe(openedAtMs !== null && nowMs < openedAtMs + rule.openMs)
        }
      }),
    )
  })
})
