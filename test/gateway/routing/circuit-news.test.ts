import { afterAll, describe, expect, test } from 'vitest'
import { Circuits } from '../../../src/gateway/routing/circuits/circuit.ts'
import { CircuitNews } from '../../../src/gateway/routing/circuits/circuit-news.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { DatabaseUnavailableError } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { movableClock } from '../../harness/clock.ts'
import { testDatabase } from '../../harness/database.ts'
import { until } from '../../harness/until.ts'

const database = await testDatabase()
afterAll(() => database.dispose())

/** Creates the circuits of two processes with one control log between them. Its writes fail while `isAway` is true. */
function pair() {
  const clock = movableClock()
  const controlLog = new ControlLog({ db: database.db, clock: systemClock, log: silentLog, pollMs: 60_000 })
  const link = { isAway: false, writes: 0 }
  const log: Pick<ControlLog, 'on' | 'change'> = {
    on: fn => controlLog.on(fn),
    change(fn) {
      link.writes++
      return link.isAway ? Promise.reject(new DatabaseUnavailableError('away')) : controlLog.change(fn)
    },
  }
  const member = (processName: string) => {
    const circuits: Circuits = new Circuits({ clock, rule: { failuresToOpen: 2, openMs: 30_000 }, onChange: (id, change) => news.notify(id, change) })
    const heard: string[] = []
    const news = new CircuitNews(circuits, { clock: systemClock, log: silentLog, controlLog: log, processName, opened: id => heard.push(id) })
    return { circuits, news, heard }
  }
  return { clock, link, here: member('here'), there: member('there') }
}

const fail = (circuits: Circuits, id: string) => {
  for (let count = 0; count < 2; count++) circuits.failure(id)
}

describe('news of circuits', () => {
  test('each change of a circuit is sent to other processes once, and a dial that changes nothing is not sent', async () => {
    const { clock, link, here, there } = pair()
    for (let count = 0; count < 20; count++) here.circuits.success('a/m')
    fail(here.circuits, 'a/m')
    for (let count = 0; count < 20; count++) here.circuits.failure('a/m')
    await until(() => !there.circuits.available('a/m'), 'the opening is told')
    expect(link.writes).toBe(1)
    clock.advance(30_000)
    here.circuits.success('a/m')
    expect(here.circuits.available('a/m')).toBe(true)
    await until(() => link.writes === 2, 'the closing is told')
    // The other process knows that the circuit is closed, so one failure does not open it again.
    await until(() => {
      there.circuits.closedElsewhere('b/m')
      return there.circuits.remainingMs('a/m') === 0
    }, 'the other process has heard')
  })

  test('an opening on another process is reported once, and not when this process knew it already', async () => {
    const { clock, here, there } = pair()
    fail(here.circuits, 'a/m')
    await until(() => there.heard.length === 1, 'the opening is heard')
    fail(here.circuits, 'b/m')
    fail(there.circuits, 'b/m')
    // Events are delivered in order, so the arrival of these two shows that the earlier ones have arrived.
    fail(here.circuits, 'c/m')
    fail(there.circuits, 'd/m')
    await until(() => here.heard.includes('d/m') && there.heard.includes('c/m'), 'both have heard everything')
    clock.advance(30_000)
    here.circuits.failure('a/m')
    await until(() => there.heard.length >= 3, 'the failed probe is heard')
    expect([here.heard, there.heard]).toEqual([['d/m'], ['a/m', 'c/m', 'a/m']])
  })

  test('while the database is unavailable, circuits continue to work, and afterwards only their latest state is sent', async () => {
    const { link, here, there } = pair()
    link.isAway = true
    fail(here.circuits, 'a/m')
    fail(here.circuits, 'b/m')
    here.circuits.success('b/m')
    expect([here.circuits.available('a/m'), here.circuits.available('b/m')]).toEqual([false, true])
    await until(() => link.writes >= 1, 'the first try')
    link.isAway = false
    await until(() => !there.circuits.available('a/m'), 'it is told after all', 8_000)
    expect(there.circuits.available('b/m')).toBe(true)
    expect(link.writes).toBeLessThanOrEqual(3)
    for (const { news } of [here, there]) news.stop()
  })
})
