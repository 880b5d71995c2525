import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { journalFolder, segmentsOf } from '../../../src/gateway/limits/journal/journal.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp } from '../../harness/app.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, eventOf, request, startEngine } from './engine.ts'

const events = statement<[], { id: string; outcome: string; valueUinr: bigint }>(
  'test.parked_events',
  `select id as "id", outcome as "outcome", value_uinr as "valueUinr" from usage_events order by at, id`,
)
const parked = statement<[], { eventId: string; kind: string; valueUinr: string; reason: string; record: Buffer }>(
  'test.parked',
  `select event_id as "eventId", kind as "kind", value_uinr as "valueUinr", reason as "reason", record as "record" from parked_records order by id`,
)
const leased = statement<[], { sum: bigint }>('test.parked_leased', `select coalesce(sum(amount), 0)::bigint as "sum" from leases`)
const daySpent = statement<[], { spent: bigint }>('test.parked_day', `select spent as "spent" from counters where metric = 'daily'`)
const ageBeat = statement<[id: bigint]>('test.parked_age_beat', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)

const still = { JOURNAL_FLUSH_MS: '600000', BEAT_MS: '600000', JANITOR_MS: '600000' }
/** Values that no column accepts: a NUL in a text, an amount above 64 bits, a negative amount, a number above 32 bits. */
const refused = [{ requestId: 'req\u0000' }, { valueUinr: 2n ** 70n }, { valueUinr: -5n }, { status: 3e9 }] as const

let database: TestDatabase
beforeEach(async () => {
  database = await testDatabase()
})
afterEach(async () => {
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})

const principal = caller({ limits: { rpmLimit: null, dailyLimit: 1000 } })

it('a record that the database refuses is parked with its amount, gives its lease back, and does not delay other records', async () => {
  const engine = await startEngine(database.db, { env: still })
  await engine.limits.budgets.set(1, 'key', '7', 1_000_000n)
  const bad: string[] = []
  for (let i = 0; i < 60; i++) {
    const asked = request(100n, { principal })
    const permit = await engine.limits.admit(asked)
    await permit.open(eventOf(asked, 0n))
    const over = i % 15 === 7 ? refused[(i / 15) | 0] : undefined
    if (over !== undefined) bad.push(asked.eventId)
    await permit.settle({ ...eventOf(asked, 10n), ...over })
  }
  await engine.limits.flushNow()
  const rows = await database.db.many(parked)
  expect(rows.map(row => row.eventId)).toEqual(bad)
  expect(rows.map(row => row.valueUinr)).toEqual(['10', String(2n ** 70n), '-5', '10'])
  expect(rows.map(row => row.reason.slice(0, 5))).toEqual(['22021', '22003', '23514', '22003'])
  expect(JSON.parse(rows[0]?.record.toString() ?? '')).toMatchObject({ kind: 'settle', event: { id: bad[0], requestId: 'req\u0000' } })
  expect(await database.db.many(events)).toHaveLength(56)
  expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 560n, heldUinr: 0n })
  // The daily count includes the requests, because they were made.
  expect(await database.db.one(daySpent)).toEqual({ spent: 60n })
  expect(await engine.limits.recovery.parked()).toMatchObject({ records: 4, valueUinr: 2n ** 70n + 15n })
  await callOnce(engine, request(100n, { principal }), 10n)
  await engine.stop()
  expect(await database.db.many(events)).toHaveLength(57)
  expect(await database.db.one(leased)).toEqual({ sum: 0n })
})

it('a process that adopts a dead one parks refused records, also of a running call, and still closes the dead process', async () => {
  const dead = await startEngine(database.db, { env: still })
  await dead.limits.budgets.set(1, 'key', '7', 1_000_000n)
  for (let i = 0; i < 30; i++) {
    const asked = request(100n, { principal })
    const permit = await dead.limits.admit(asked)
    await permit.open(eventOf(asked, 0n))
    await permit.settle({ ...eventOf(asked, 10n), ...(i === 11 ? refused[0] : {}) })
  }
  const [fine, bad] = [request(100n, { principal }), request(100n, { principal })]
  for (const asked of [fine, bad]) await (await dead.limits.admit(asked)).open({ ...eventOf(asked, 3n), ...(asked === bad ? refused[3] : {}) })
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-parked-'))
  for (const { path, start } of segmentsOf(journalFolder(dead.dataDir), dead.limits.processId))
    cpSync(path, join(journalFolder(dataDir), `${dead.limits.processId}.${start}`))
  await database.db.exec(ageBeat, dead.limits.processId)
  const survivor = await startEngine(database.db, { dataDir })
  expect((await database.db.many(events)).filter(row => row.outcome === 'interrupted')).toMatchObject([{ id: fine.eventId, valueUinr: 3n }])
  expect((await database.db.many(parked)).map(row => row.eventId)).toContain(bad.eventId)
  expect(await survivor.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 293n, heldUinr: 0n, inDoubtUinr: 0n })
  expect(await database.db.one(daySpent)).toEqual({ spent: 32n })
  await survivor.stop()
  expect(await database.db.one(leased)).toEqual({ sum: 0n })
  await dead.stop()
})

it('the doctor reports the number and amount of parked records', async () => {
  const app = await startApp()
  const asked = request(100n, { principal: caller({ orgId: app.orgId, keyId: app.keyId, userId: app.userId }) })
  const { limits } = app.gateway.app
  const permit = await limits.admit(asked)
  await permit.open(eventOf(asked, 0n))
  await permit.settle({ ...eventOf(asked, 2_500_000n), status: 3e9 })
  await limits.flushNow()
  const finding = (await app.gateway.app.doctor()).find(({ what }) => what === 'usage records')
  expect(finding).toMatchObject({ state: 'wrong' })
  expect(finding?.detail).toContain('1 record was refused')
  expect(finding?.detail).toContain('₹2.5')
  await app.stop()
})
