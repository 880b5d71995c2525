import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { RouteHealth } from '../../../src/gateway/routing/circuits/route-health.ts'
import { Maintenance } from '../../../src/gateway/routing/outages/maintenance.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { movableClock } from '../../harness/clock.ts'
import { testDatabase } from '../../harness/database.ts'
import { catalog, model, provider } from './world.ts'

const { db, dispose } = await testDatabase()
afterAll(dispose)
const deleteAll = statement<[]>('test.delete_maintenance', 'delete from route_maintenance')
const addRow = statement<[route: string, since: Date, until: Date]>(
  'test.add_maintenance',
  `insert into route_maintenance (route, set_by, reason, strikes, since, until) values ($1::text, 'gateway', 'test', 0, $2::timestamptz, $3::timestamptz)`,
)

const minuteMs = 60_000

describe('quarantines by several processes', () => {
  const snapshot = catalog([model('m', [{ of: provider('one') }, { of: provider('two') }])])
  beforeEach(() => db.exec(deleteAll))

  /** Creates the quarantines of one process: with its own clock and log, on the shared database. */
  function member() {
    const clock = movableClock()
    const health = new RouteHealth(clock)
    const controlLog = new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: 60_000 })
    return { clock, health, maintenance: new Maintenance({ db, clock, log: silentLog, controlLog, health, catalog: () => snapshot }) }
  }

  test('two processes that quarantine concurrently leave the model one route', async () => {
    for (let round = 0; round < 5; round++) {
      await db.exec(deleteAll)
      const [here, there] = [member(), member()]
      const done = await Promise.all([
        here.maintenance.withholdFailing('one/m', 'sick', ['two/m']),
        there.maintenance.withholdFailing('two/m', 'sick', ['one/m']),
      ])
      expect(done.filter(made => made !== null)).toHaveLength(1)
      expect(await here.maintenance.list()).toHaveLength(1)
    }
  })

  test('a concurrent decision of the operator takes precedence', async () => {
    for (let round = 0; round < 5; round++) {
      await db.exec(deleteAll)
      const [here, there] = [member(), member()]
      await Promise.all([
        here.maintenance.withhold('one/m', 60 * minuteMs, 'set by the operator'),
        there.maintenance.withholdFailing('one/m', 'sick', ['two/m']),
      ])
      expect(await here.maintenance.list()).toMatchObject([{ route: 'one/m', setBy: 'operator' }])
    }
  })

  test('a process with a slow clock does not quarantine a route for longer than intended, even if it reads the row repeatedly', async () => {
    const [here, slow] = [member(), member()]
    slow.clock.advance(-60 * minuteMs)
    await here.maintenance.withholdFailing('one/m', 'sick', ['two/m'])
    await slow.maintenance.start()
    expect(slow.health.inMaintenance('one/m')).toBe(true)
    slow.clock.advance(minuteMs)
    await slow.maintenance.tidy()
    expect(slow.health.inMaintenance('one/m')).toBe(true)
    slow.clock.advance(minuteMs + 1000)
    await slow.maintenance.tidy()
    expect(slow.health.inMaintenance('one/m')).toBe(false)
  })

  test('after lost events, the next cleanup makes changes by other processes known', async () => {
    const [here, there] = [member(), member()]
    await there.maintenance.start()
    await here.maintenance.withhold('one/m', 60 * minuteMs, 'set by the operator')
    expect(there.health.inMaintenance('one/m')).toBe(false)
    await there.maintenance.tidy()
    expect(there.health.inMaintenance('one/m')).toBe(true)
    await here.maintenance.clear('one/m')
    await there.maintenance.tidy()
    expect(there.health.inMaintenance('one/m')).toBe(false)
  })

  test('rows that have ended, or that name an unknown route, have no effect, and rows that ended long ago are deleted', async () => {
    const { clock, health, maintenance } = member()
    const at = (minutes: number): Date => new Date(clock.nowMs() + minutes * minuteMs)
    await db.exec(addRow, 'one/m', at(-10), at(-1))
    await db.exec(addRow, 'two/m', at(-300), at(-200))
    await db.exec(addRow, 'gone/model', at(-1), at(5))
    await maintenance.start()
    expect([health.inMaintenance('one/m'), health.inMaintenance('two/m')]).toEqual([false, false])
    expect((await maintenance.list()).map(({ route }) => route)).toEqual(['gone/model'])
    await maintenance.clear('gone/model')
    await maintenance.tidy()
    // The quarantine that ended a minute ago makes the next one follow it, so the next one is twice as long.
    const made = await maintenance.withholdFailing('one/m', 'sick', ['two/m'])
    expect(made && made.until.getTime() - made.since.getTime()).toBe(4 * minuteMs)
    const anew = await maintenance.withholdFailing('two/m', 'sick', ['three/m'])
    expect(anew && anew.until.getTime() - anew.since.getTime()).toBe(2 * minuteMs)
  })
})
