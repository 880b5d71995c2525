import { appendFileSync, cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { journalFolder, journalsIn, segmentsOf } from '../../../src/gateway/limits/journal/journal.ts'
import { machineDisk } from '../../../src/gateway/limits/journal/journal-disk.ts'
import { readJournal } from '../../../src/gateway/limits/journal/journal-reader.ts'
import { usageEventCodec } from '../../../src/gateway/usage/events/record-bytes.ts'
import { DatabaseUnavailableError, type Db, statement } from '../../../src/platform/db/db.ts'
import { startApp } from '../../harness/app.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { callOnce, eventOf, outcomeOf, request, startEngine } from './engine.ts'

const outbox = statement<[], { type: string; threshold: number }>(
  'test.durability_outbox',
  `select type as "type", (data->>'threshold')::int as "threshold" from webhook_events order by seq`,
)
const events = statement<[], { id: string; outcome: string; valueUinr: bigint }>(
  'test.events',
  `select id as "id", outcome as "outcome", value_uinr as "valueUinr" from usage_events order by at, id`,
)
const fence = statement<[id: bigint]>('test.fence', `update processes set state = 'lost' where id = $1::bigint`)
const leased = statement<[], { sum: bigint }>('test.leased', `select coalesce(sum(amount), 0)::bigint as "sum" from leases`)

let database: TestDatabase

beforeEach(async () => {
  database = await testDatabase()
})
afterEach(async () => {
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})

/** Wraps a database. Its transactions fail as if the connection broke before the work or after the commit. */
function flaky(db: Db, plan: ('before' | 'after')[]): Db {
  return new Proxy(db, {
    get(target, name) {
      // A thread that flushes must use this database, too.
      if (name === 'address') return undefined
      if (name !== 'tx') {
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      }
      return async (fn: Parameters<Db['tx']>[0]) => {
        const fault = plan.shift()
        if (fault === 'before') throw new DatabaseUnavailableError('broken before the work')
        const value = await target.tx(fn)
        if (fault === 'after') throw new DatabaseUnavailableError('broken after the commit')
        return value
      }
    },
  })
}

it('a budget sends one warning at 80 % and one block at 100 % in a month, in that order', async () => {
  const engine = await startEngine(database.db)
  await engine.limits.budgets.set(1, 'key', '7', 1000n)
  await callOnce(engine, request(100n), 790n)
  await engine.limits.flushNow()
  expect(await database.db.many(outbox)).toEqual([])
  await callOnce(engine, request(100n), 210n)
  await engine.limits.flushNow()
  await engine.limits.budgets.set(1, 'key', '7', 2000n)
  await callOnce(engine, request(100n), 1000n)
  await engine.limits.stop()
  expect(await database.db.many(outbox)).toEqual([
    { type: 'budget.warn', threshold: 80 },
    { type: 'usage.threshold', threshold: 80 },
    { type: 'budget.block', threshold: 100 },
    { type: 'usage.threshold', threshold: 100 },
  ])
})

it('a flush is counted once, even if its connection breaks before the work or after the commit', async () => {
  const plan: ('before' | 'after')[] = []
  const engine = await startEngine(flaky(database.db, plan))
  await engine.limits.budgets.set(1, 'key', '7', 100_000n)
  for (const fault of ['before', 'after', 'after', 'before'] as const) {
    await engine.limits.flushNow()
    plan.push(fault)
    await callOnce(engine, request(100n), 70n)
    await engine.limits.flushNow().catch(() => undefined)
    await expect
      .poll(() =>
        engine.limits.flushNow().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
  }
  expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 280n })
  await engine.limits.stop()
  expect(await database.db.one(leased)).toEqual({ sum: 0n })
  expect(await database.db.many(events)).toHaveLength(4)
})

it('when a dead process is adopted, finished calls are counted, each running call becomes one flagged event, and leases are returned', async () => {
  const dead = await startEngine(database.db, { env: { JOURNAL_FLUSH_MS: '600000', BEAT_MS: '600000', JANITOR_MS: '600000' } })
  await dead.limits.budgets.set(1, 'key', '7', 1_000_000n)
  await callOnce(dead, request(100n), 70n)
  const running = request(500n)
  const permit = await dead.limits.admit(running)
  void permit.open(eventOf(running, 10n))
  permit.progress(eventOf(running, 40n))
  // The journal writes both records at the end of this turn of the event loop.
  await new Promise(resolve => setImmediate(resolve))
  // The journal of a killed process, in a folder without an open socket, with an incomplete last record.
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-adopt-'))
  const folder = journalFolder(dataDir)
  for (const segment of segmentsOf(journalFolder(dead.dataDir), dead.limits.processId)) {
    cpSync(segment.path, join(folder, `${dead.limits.processId}.${segment.start}`))
    appendFileSync(join(folder, `${dead.limits.processId}.${segment.start}`), Buffer.from([200, 0, 0, 0, 1, 2, 3, 4, 123]))
  }
  // A journal in another folder may be a copy, so only a long silence proves that its owner is dead.
  const tooSoon = await startEngine(database.db, { dataDir, env: { JANITOR_MS: '600000' } })
  expect(await database.db.many(events)).toHaveLength(database.kind === 'embedded' ? 2 : 0)
  await tooSoon.stop()
  await database.db.exec(
    statement<[id: bigint]>('test.age_beat_of_dead', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`),
    dead.limits.processId,
  )
  const survivor = await startEngine(database.db, { dataDir })
  expect(journalsIn(folder)).toContain(survivor.limits.processId)
  expect((await database.db.many(events)).map(({ outcome, valueUinr }) => ({ outcome, valueUinr }))).toEqual([
    { outcome: 'ok', valueUinr: 70n },
    { outcome: 'interrupted', valueUinr: 40n },
  ])
  expect(await survivor.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 110n, heldUinr: 0n })
  await survivor.stop()
  expect(await database.db.one(leased)).toEqual({ sum: 0n })
  await dead.stop()
  expect(await database.db.many(events)).toHaveLength(2)
})

it('a fenced process registers again and loses nothing', async () => {
  const engine = await startEngine(database.db, { env: { JOURNAL_FLUSH_MS: '600000', BEAT_MS: '600000' } })
  await engine.limits.budgets.set(1, 'key', '7', 1_000_000n)
  await callOnce(engine, request(100n), 70n)
  const first = engine.limits.processId
  await database.db.exec(fence, first)
  await engine.limits.beat()
  expect(engine.limits.processId).not.toBe(first)
  await callOnce(engine, request(100n), 30n)
  await engine.limits.flushNow()
  expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 100n })
  await engine.limits.janitor.runOnce()
  expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 100n })
  await engine.stop()
  expect(await database.db.one(leased)).toEqual({ sum: 0n })
})

it('a journal is read up to its incomplete last record', async () => {
  const engine = await startEngine(database.db, { env: { JOURNAL_FLUSH_MS: '600000' } })
  const asked = request(100n)
  await callOnce(engine, asked, 70n)
  const folder = journalFolder(engine.dataDir)
  const records = [...readJournal(folder, engine.limits.processId, 0, usageEventCodec)].map(entry => entry.record)
  expect(records.map(record => record.kind)).toEqual(['open', 'settle'])
  expect(records[1]).toMatchObject({ event: { ...eventOf(asked, 70n), atMs: expect.any(Number) }, released: [] })
  await engine.stop()
})

it('with SETTLE=postgres, a settlement does not wait for the time of the next flush', async () => {
  const engine = await startEngine(database.db, { env: { SETTLE: 'postgres', JOURNAL_FLUSH_MS: '3600000' } })
  await Promise.all(Array.from({ length: 20 }, () => callOnce(engine, request(100n), 10n)))
  expect(await database.db.many(events)).toHaveLength(20)
  await engine.stop()
})

it('with SETTLE=postgres, a settlement resolves when the charge is committed', async () => {
  const engine = await startEngine(database.db, { env: { SETTLE: 'postgres' } })
  await callOnce(engine, request(100n), 70n)
  expect(await database.db.many(events)).toHaveLength(1)
  await engine.stop()
})

it('with SETTLE=postgres, settlements that wait while the process is fenced resolve when the new registration has committed them', async () => {
  let onOpen = (): void => {}
  const disk = {
    ...machineDisk,
    open(path: string): number {
      onOpen()
      return machineDisk.open(path)
    },
  }
  const env = { SETTLE: 'postgres', JOURNAL_FLUSH_MS: '600000', BEAT_MS: '600000', JANITOR_MS: '600000' }
  const engine = await startEngine(database.db, { env, disk })
  const asked = [request(100n), request(100n), request(100n)]
  const permits = await Promise.all(asked.map(one => engine.limits.admit(one)))
  for (const [i, permit] of permits.entries()) await permit.open(eventOf(asked[i] ?? request(1n), 0n))
  const outcomes: string[] = []
  const settle = (i: number): void => {
    const settled = permits[i]?.settle(eventOf(asked[i] ?? request(1n), 70n))
    void outcomeOf(settled).then(outcome => outcomes.push(outcome))
  }
  settle(0)
  // The journal writes the record at the end of this turn of the event loop.
  await new Promise(resolve => setImmediate(resolve))
  await database.db.exec(fence, engine.limits.processId)
  // This settlement comes in the turn of the event loop in which the process gets its new journal.
  onOpen = () => {
    onOpen = () => {}
    settle(1)
  }
  await engine.limits.beat()
  settle(2)
  await engine.limits.flushNow()
  await until(() => outcomes.length === 3, 'all settlements end')
  expect(outcomes).toEqual(['ok', 'ok', 'ok'])
  expect((await database.db.many(events)).map(row => row.valueUinr)).toEqual([70n, 70n, 70n])
  await engine.stop()
  expect(await database.db.one(leased)).toEqual({ sum: 0n })
})

it('with SETTLE=postgres, the caller of a call that settles while its process is fenced gets the reply, and the call is recorded once', async () => {
  const app = await startApp({ env: { SETTLE: 'postgres', JOURNAL_FLUSH_MS: '1500', BEAT_MS: '50' } })
  try {
    const { limits } = app.gateway.app
    const first = limits.processId
    const call = app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'x' }] })
    await until(() => limits.journal.unflushedBytes > 0 && app.alpha.requests.length === 1, 'the call is at its provider')
    await app.db.exec(fence, first)
    await until(() => limits.processId !== first, 'the process registers again')
    expect((await call).status).toBe(200)
    expect(await usageRows(app, 10)).toHaveLength(1)
  } finally {
    await app.stop()
  }
})
