import { cpSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { journalFolder, segmentsOf } from '../../../src/gateway/limits/journal/journal.ts'
import { statement } from '../../../src/platform/db/db.ts'
import type { Log } from '../../../src/platform/observe/log.ts'
import { until } from '../../harness/app.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, eventOf, request, startEngine } from './engine.ts'

const events = statement<[], { count: number; value: bigint }>(
  'test.thread_events',
  `select count(*)::int as "count", coalesce(sum(value_uinr), 0)::bigint as "value" from usage_events`,
)
const ageBeat = statement<[id: bigint]>('test.thread_age_beat', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)
const one = statement<[], { n: number }>('test.thread_one', `select 1 as "n"`)
const parked = statement<[], { count: number }>('test.thread_parked', `select count(*)::int as "count" from parked_records`)

let database: TestDatabase
/** The threads that this process started during the test. */
let threads: Worker[]
const onWorker = (worker: Worker): void => void threads.push(worker)

beforeEach(async () => {
  database = await testDatabase()
  threads = []
  process.on('worker', onWorker)
})
afterEach(async () => {
  process.off('worker', onWorker)
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})

function notingLog(): Log & { readonly names: string[] } {
  const names: string[] = []
  const note = (name: string): void => void names.push(name)
  return { names, info: note, warn: note, error: note }
}

const isLinux = process.platform === 'linux'
/** The main thread sends a few messages for each 2,000 records. If it did the work, its share would be a third with the embedded database, and nearly all without. */
const mainShareMax = 0.25

/** Returns a function that tells which part of the processor time of this process the main thread has used since. Load of the machine does not change it. */
function mainShare(): () => number {
  const ticksOf = (path: string): number => {
    const stat = readFileSync(`/proc/self/${path}`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(fields[11]) + Number(fields[12])
  }
  const read = (): [number, number] => [ticksOf(`task/${process.pid}/stat`), ticksOf('stat')]
  const [mainBefore, allBefore] = read()
  return () => {
    const [main, all] = read()
    return (main - mainBefore) / (all - allBefore)
  }
}

it('a thread of its own flushes the usage, and a settle with SETTLE=postgres resolves when that thread has committed', async () => {
  const engine = await startEngine(database.db, { flushThread: true, env: { SETTLE: 'postgres' } })
  await engine.limits.budgets.set(1, 'key', '7', 1_000_000n)
  await callOnce(engine, request(100n), 70n)
  expect(threads).toHaveLength(1)
  expect(await database.db.one(events)).toEqual({ count: 1, value: 70n })
  // A record that the database never takes is parked in the thread as well.
  const asked = request(100n)
  const permit = await engine.limits.admit(asked)
  await permit.open(eventOf(asked, 0n))
  await permit.settle(eventOf(asked, 10n, { status: 3e9 }))
  expect(await database.db.one(parked)).toEqual({ count: 1 })
  expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 70n, heldUinr: 0n })
  await engine.stop()
})

it('a flush thread that ends at any moment is reported and replaced, and no record is lost or counted twice', async () => {
  const log = notingLog()
  const engine = await startEngine(database.db, { flushThread: true, log, env: { JOURNAL_FLUSH_MS: '1' } })
  await engine.limits.budgets.set(1, 'key', '7', 1_000_000_000n)
  const kills = 8
  for (let kill = 1; kill <= kills; kill++) {
    for (let i = 0; i < 40; i++) await callOnce(engine, request(100n), 10n)
    await until(() => threads.length === kill)
    // At different times after a flush has begun: while the thread starts, reads, writes or has just committed.
    const flushing = engine.limits.flushNow().catch(() => undefined)
    await new Promise(resolve => setTimeout(resolve, kill * 3))
    await threads[kill - 1]?.terminate()
    await flushing
  }
  await until(() =>
    engine.limits.flushNow().then(
      () => true,
      () => false,
    ),
  )
  expect(await database.db.one(events)).toEqual({ count: kills * 40, value: BigInt(kills * 400) })
  expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: BigInt(kills * 400) })
  expect(log.names.filter(name => name === 'flush_thread_lost')).toHaveLength(kills)
  await engine.stop()
})

it.runIf(isLinux)('the main thread does next to nothing while a thread adopts a dead process with thousands of calls', async () => {
  const still = { JOURNAL_FLUSH_MS: '3600000', BEAT_MS: '3600000', JANITOR_MS: '3600000' }
  const dead = await startEngine(database.db, { flushThread: true, env: still })
  await dead.limits.budgets.set(1, 'key', '7', 1_000_000_000n)
  const callMany = (count: number) => Promise.all(Array.from({ length: count }, () => callOnce(dead, request(100n), 10n)))
  for (let i = 0; i < 46; i++) await callMany(200)
  await dead.limits.flushNow()
  // These are too few for a flush before its time.
  for (let i = 0; i < 4; i++) await callMany(200)
  const running = request(100n)
  await (await dead.limits.admit(running)).open(eventOf(running, 40n))
  const { processId } = dead.limits
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-thread-'))
  for (const { path, start } of segmentsOf(journalFolder(dead.dataDir), processId)) cpSync(path, join(journalFolder(dataDir), `${processId}.${start}`))
  const survivor = await startEngine(database.db, { flushThread: true, env: still })
  await database.db.exec(ageBeat, processId)
  const share = mainShare()
  const adopter = await startEngine(database.db, { flushThread: true, dataDir, env: still })
  expect(share()).toBeLessThan(mainShareMax)
  expect(await database.db.one(events)).toEqual({ count: 10_001, value: 100_040n })
  expect(await survivor.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 100_040n, heldUinr: 0n, inDoubtUinr: 0n })
  for (const engine of [adopter, survivor, dead]) await engine.stop()
  expect(await database.db.one(events)).toEqual({ count: 10_001, value: 100_040n })
})

it.runIf(isLinux)('the main thread does next to nothing while a thread flushes thousands of calls', async () => {
  const engine = await startEngine(database.db, { flushThread: true, env: { JOURNAL_FLUSH_MS: '3600000' } })
  const principal = caller()
  for (let i = 0; i < 50; i++) await Promise.all(Array.from({ length: 200 }, () => callOnce(engine, request(100n, { principal }), 10n)))
  const share = mainShare()
  await engine.limits.flushNow()
  expect(share()).toBeLessThan(mainShareMax)
  expect(await database.db.one(events)).toEqual({ count: 10_000, value: 100_000n })
  await engine.stop()
})

it('the database stays usable when the thread ends while its transaction waits for the session', async () => {
  const engine = await startEngine(database.db, { flushThread: true, env: { JOURNAL_FLUSH_MS: '600000', BEAT_MS: '600000', JANITOR_MS: '600000' } })
  await callOnce(engine, request(100n), 10n)
  await engine.limits.flushNow()
  await callOnce(engine, request(100n), 10n)
  let free = (): void => {}
  const held = database.db.tx(
    () =>
      new Promise<void>(resolve => {
        free = resolve
      }),
  )
  const flushing = engine.limits.flushNow().catch(() => undefined)
  // The thread now asks for its transaction.
  await new Promise(resolve => setTimeout(resolve, 200))
  await threads[0]?.terminate()
  free()
  await held
  expect(await database.db.tx(async tx => (await tx.one(one)).n)).toBe(1)
  await flushing
  await engine.limits.flushNow()
  expect(await database.db.one(events)).toMatchObject({ count: 2, value: 20n })
  await engine.stop()
})
