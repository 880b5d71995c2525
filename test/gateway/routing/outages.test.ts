import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Circuits } from '../../../src/gateway/routing/circuits/circuit.ts'
import { Outages } from '../../../src/gateway/routing/outages/outages.ts'
import { DatabaseUnavailableError, type Db, statement } from '../../../src/platform/db/db.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { movableClock } from '../../harness/clock.ts'
import { testDatabase } from '../../harness/database.ts'
import { until } from '../../harness/until.ts'
import { catalog, model, provider } from './world.ts'

const database = await testDatabase()
afterAll(() => database.dispose())

const addOrg = statement<[name: string], { id: number }>(
  'test.outages_add_org',
  `insert into orgs (name, kind, created_at) values ($1::text, 'team', now()) returning id`,
)
const addEndpoint = statement<[orgId: number, types: readonly string[], enabled: boolean]>(
  'test.outages_add_endpoint',
  `insert into webhook_endpoints (org_id, url, subscribe_all, event_types, secret_sealed, enabled, disabled_reason, created_at)
   values ($1::int, 'https://receiver.test', cardinality($2::text[]) = 0, $2::text[], '', $3::boolean, case when not $3::boolean then 'manual' end, now())`,
)
const told = statement<[], { orgId: number; type: string; data: { readonly retry_at: number }; deliveries: bigint }>(
  'test.outages_told',
  `select e.org_id as "orgId", e.type, e.data, (select count(*) from webhook_deliveries d where d.event_id = e.id) as "deliveries"
   from webhook_events e order by e.org_id, e.seq`,
)
const clean = statement<[]>('test.outages_clean', 'with events as (delete from webhook_events) delete from circuit_outages')

const alpha = provider('alpha')
const snapshot = catalog([model('org/m', [{ of: alpha }])])
const openMs = 30_000
const orgs: number[] = []

beforeAll(async () => {
  for (const name of ['all', 'some', 'other', 'off', 'none']) orgs.push((await database.db.one(addOrg, name)).id)
  const [all = 0, some = 0, other = 0, off = 0] = orgs
  await database.db.exec(addEndpoint, all, [], true)
  await database.db.exec(addEndpoint, all, [], true)
  await database.db.exec(addEndpoint, some, ['provider.circuit_open', 'key.created'], true)
  await database.db.exec(addEndpoint, other, ['key.created'], true)
  await database.db.exec(addEndpoint, off, [], false)
})
beforeEach(() => database.db.exec(clean))

/** Creates processes on one database. `link.isAway` makes the database unavailable for all of them. */
function fleet() {
  const movable = movableClock(Date.UTC(2026, 10, 21, 9, 0, 0))
  // Pauses between attempts take seconds in the product and milliseconds here.
  const clock = { ...movable, after: (ms: number, fn: () => void) => movable.after(ms / 100, fn) }
  const link = { isAway: false, failed: 0 }
  const db: Db = {
    ...database.db,
    tx: fn => (link.isAway ? refuse() : database.db.tx(fn)),
    exec: (...asked) => (link.isAway ? refuse() : database.db.exec(...asked)),
    many: (...asked) => database.db.many(...asked),
  }
  const refuse = (): Promise<never> => {
    link.failed++
    return Promise.reject(new DatabaseUnavailableError('away'))
  }
  const member = () => {
    const circuits: Circuits = new Circuits({
      clock,
      rule: { failuresToOpen: 2, openMs },
      onChange: (route, change, state) => outages.notify(route, change, state),
    })
    const outages: Outages = new Outages({
      db,
      clock,
      ids: systemIds,
      log: silentLog,
      circuits: () => circuits,
      catalog: () => snapshot,
      findServerOwner: async id => (id === 7 ? { orgId: orgs[1] ?? 0, slug: 'ours', modelId: 'org/m' } : null),
    })
    const open = (route: string) => {
      for (let count = 0; count < 2; count++) circuits.failure(route)
    }
    return { circuits, outages, open }
  }
  return { clock, link, member }
}

describe('an outage of a route', () => {
  test('an outage is reported once to every subscribed organisation, with the ids of the catalog', async () => {
    const { clock, member } = fleet()
    const { outages, open } = member()
    open('alpha/org/m')
    const retryAt = Math.ceil((clock.nowMs() + openMs) / 1000)
    await outages.stop()
    const rows = await database.db.many(told)
    expect(rows.map(row => [row.orgId, row.type, row.deliveries])).toEqual([
      [orgs[0], 'provider.circuit_open', 2n],
      [orgs[1], 'provider.circuit_open', 1n],
    ])
    for (const { data } of rows) expect(data).toEqual({ provider: 'alpha', model: 'org/m', failures: 2, retry_at: expect.any(Number) })
    expect(Math.abs(Number(rows[0]?.data.retry_at) - retryAt)).toBeLessThanOrEqual(1)
  })

  test('an outage is one outage, however many processes see it and however many probes fail. The next one is reported again', async () => {
    const { clock, member } = fleet()
    const [here, there] = [member(), member()]
    for (const { open } of [here, there]) open('alpha/org/m')
    for (let probes = 0; probes < 3; probes++) {
      clock.advance(openMs + 1000)
      here.circuits.failure('alpha/org/m')
    }
    clock.advance(openMs + 1000)
    there.circuits.failure('alpha/org/m')
    await there.outages.stop()
    clock.advance(openMs + 1000)
    here.circuits.success('alpha/org/m')
    await here.outages.stop()
    // The failed probe of the other process is written late, after the outage has ended.
    there.outages.notify('alpha/org/m', 'reopened', { failures: 9, openUntilMs: clock.nowMs() })
    await there.outages.stop()
    expect(await database.db.many(told)).toHaveLength(2)
    const again = member()
    again.open('alpha/org/m')
    await again.outages.stop()
    expect(await database.db.many(told)).toHaveLength(4)
  })

  test('a process that starts during an outage knows it: a failure there continues the outage, and a success ends it', async () => {
    const { clock, member } = fleet()
    const first = member()
    first.open('alpha/org/m')
    await first.outages.stop()
    const second = member()
    await second.outages.start()
    expect([second.circuits.available('alpha/org/m'), second.circuits.available('alpha/other')]).toEqual([false, true])
    clock.advance(openMs + 1000)
    const third = member()
    await third.outages.start()
    // The circuit is half-open there, so one failure is a failed probe.
    expect(third.circuits.available('alpha/org/m')).toBe(true)
    third.circuits.failure('alpha/org/m')
    expect(third.circuits.available('alpha/org/m')).toBe(false)
    await third.outages.stop()
    expect(await database.db.many(told)).toHaveLength(2)
    second.circuits.success('alpha/org/m')
    await second.outages.stop()
    const fourth = member()
    await fourth.outages.start()
    fourth.open('alpha/org/m')
    await fourth.outages.stop()
    expect(await database.db.many(told)).toHaveLength(4)
  })

  test('an outage without a report for an hour is over', async () => {
    const { clock, member } = fleet()
    const first = member()
    first.open('alpha/org/m')
    await first.outages.stop()
    clock.advance(61 * 60_000)
    const second = member()
    await second.outages.start()
    second.circuits.failure('alpha/org/m')
    expect(second.circuits.available('alpha/org/m')).toBe(true)
    second.circuits.failure('alpha/org/m')
    await second.outages.stop()
    expect(await database.db.many(told)).toHaveLength(4)
  })

  test("an outage of an organisation's own server is reported to that organisation only. Outages of deleted servers and of routes for own keys only are not reported", async () => {
    const { member } = fleet()
    const { outages, open } = member()
    for (const route of ['byoe#7', 'byoe#8', 'alpha/*', 'alpha/unlisted', 'byoe#x']) open(route)
    await outages.stop()
    expect(await database.db.many(told)).toEqual([
      {
        orgId: orgs[1],
        type: 'provider.circuit_open',
        data: { provider: 'byoe:ours', model: 'org/m', failures: 2, retry_at: expect.any(Number) },
        deliveries: 1n,
      },
    ])
  })

  test('an outage that begins while the database is unavailable does not stop calls. It is reported later, unless it is too old', async () => {
    const { clock, link, member } = fleet()
    const { circuits, outages, open } = member()
    link.isAway = true
    open('alpha/org/m')
    await until(() => link.failed > 0, 'a write has failed')
    expect(circuits.available('alpha/org/m')).toBe(false)
    link.isAway = false
    await until(async () => (await database.db.many(told)).length === 2, 'the second attempt')
    link.isAway = true
    circuits.success('alpha/org/m')
    open('alpha/org/m')
    clock.advance(16 * 60_000)
    await outages.stop()
    link.isAway = false
    await outages.stop()
    expect(await database.db.many(told)).toHaveLength(2)
  })
})
