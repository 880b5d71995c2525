import { appendFileSync, cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { journalFolder, segmentsOf } from '../../../src/gateway/limits/journal/journal.ts'
import { type JournalDisk, machineDisk } from '../../../src/gateway/limits/journal/journal-disk.ts'
import { readJournal } from '../../../src/gateway/limits/journal/journal-reader.ts'
import { usageEventCodec } from '../../../src/gateway/usage/events/record-bytes.ts'
import { DatabaseUnavailableError, type Db, statement } from '../../../src/platform/db/db.ts'
import { startApp, until } from '../../harness/app.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { callOnce, eventOf, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const events = statement<[], { id: string; outcome: string; valueUinr: bigint }>(
  'test.disk_events',
  `select id as "id", outcome as "outcome", value_uinr as "valueUinr" from usage_events order by at, id`,
)
const leased = statement<[], { sum: bigint }>('test.disk_leased', `select coalesce(sum(amount), 0)::bigint as "sum" from leases`)
const stateOf = statement<[id: bigint], { state: string }>('test.disk_state', `select state as "state" from processes where id = $1::bigint`)
const ageBeat = statement<[id: bigint]>('test.disk_age_beat', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)

/** A disk that can be full. It then writes half of the bytes and reports this. */
class FullDisk implements JournalDisk {
  readonly segmentBytes: number
  isFull = false
  syncs = 0
  constructor(segmentBytes = machineDisk.segmentBytes) {
    this.segmentBytes = segmentBytes
  }
  #refuse(): void {
    if (this.isFull) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  }
  open(path: string): number {
    this.#refuse()
    return machineDisk.open(path)
  }
  append(fd: number, bytes: Uint8Array): number {
    if (this.isFull) machineDisk.append(fd, bytes.subarray(0, bytes.length >> 1))
    this.#refuse()
    return machineDisk.append(fd, bytes)
  }
  sync(fd: number, folder: string): Promise<void> {
    this.syncs++
    return machineDisk.sync(fd, folder)
  }
}

/** Intervals that are longer than a test, so that no timer fires by itself. */
const still = { JOURNAL_FLUSH_MS: '600000', BEAT_MS: '600000', JANITOR_MS: '600000' }

let database: TestDatabase
beforeEach(async () => {
  database = await testDatabase()
})
afterEach(async () => {
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})

/** Wraps the database. Its transactions fail while `away` is set. */
function interrupted(db: Db): { db: Db; away(is: boolean): void } {
  let isAway = false
  const wrapped = new Proxy(db, {
    get(target, name) {
      // A thread that flushes must use this database, too.
      if (name === 'address') return undefined
      const value: unknown = Reflect.get(target, name, target)
      if (name === 'tx') return (fn: Parameters<Db['tx']>[0]) => (isAway ? Promise.reject(new DatabaseUnavailableError('away')) : target.tx(fn))
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    db: wrapped,
    away(is) {
      isAway = is
    },
  }
}

/** Copies the journal of `engine` into a folder without an open socket, as a dead process would leave it. */
async function copyOfJournal(engine: TestEngine): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-copy-'))
  const folder = journalFolder(dataDir)
  for (const { path, start } of segmentsOf(journalFolder(engine.dataDir), engine.limits.processId))
    cpSync(path, join(folder, `${engine.limits.processId}.${start}`))
  await database.db.exec(ageBeat, engine.limits.processId)
  return dataDir
}

describe('a journal in segments', () => {
  it('a journal continues over many segments, deletes flushed ones, and keeps its running calls in the remaining segments', async () => {
    const engine = await startEngine(database.db, { disk: new FullDisk(4096), env: { ...still, JOURNAL_KEEP_MS: '0' } })
    await engine.limits.budgets.set(1, 'key', '7', 1_000_000n)
    const long = request(500n)
    const permit = await engine.limits.admit(long)
    await permit.open(eventOf(long, 40n))
    for (let i = 0; i < 60; i++) await callOnce(engine, request(100n), 10n)
    const folder = journalFolder(engine.dataDir)
    const before = segmentsOf(folder, engine.limits.processId)
    expect(before.length).toBeGreaterThan(5)
    await engine.limits.flushNow()
    await engine.limits.beat()
    await until(() => segmentsOf(folder, engine.limits.processId).length < before.length)
    expect(segmentsOf(folder, engine.limits.processId)[0]?.start).toBeGreaterThan(0)
    expect(
      [...readJournal(folder, engine.limits.processId, 0, usageEventCodec)].some(({ record }) => 'event' in record && record.event.id === long.eventId),
    ).toBe(true)
    // The records that are not flushed yet are in two segments.
    for (let i = 0; i < 12; i++) await callOnce(engine, request(100n), 10n)
    const survivor = await startEngine(database.db, { dataDir: await copyOfJournal(engine) })
    const rows = await database.db.many(events)
    expect(rows.filter(row => row.outcome === 'ok')).toHaveLength(72)
    expect(rows.filter(row => row.outcome === 'interrupted')).toMatchObject([{ id: long.eventId, valueUinr: 40n }])
    expect(await survivor.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 760n, heldUinr: 0n })
    await survivor.stop()
    await engine.stop()
  })

  it('a journal can record more running calls than fit into one segment', async () => {
    const engine = await startEngine(database.db, { disk: new FullDisk(2048), env: still })
    const asked = Array.from({ length: 40 }, () => request(100n))
    const permits = await Promise.all(asked.map(one => engine.limits.admit(one)))
    for (const [i, permit] of permits.entries()) await permit.open(eventOf(asked[i] ?? request(1n), 0n))
    for (const [i, permit] of permits.entries()) await permit.settle(eventOf(asked[i] ?? request(1n), 7n))
    await engine.stop()
    expect((await database.db.many(events)).map(row => row.valueUinr)).toEqual(asked.map(() => 7n))
  })

  it('a journal with new records is synced to the disk every JOURNAL_FSYNC_MS', async () => {
    const disk = new FullDisk(4096)
    const engine = await startEngine(database.db, { disk, env: { JOURNAL_FSYNC_MS: '5' } })
    await callOnce(engine, request(100n), 10n)
    await until(() => disk.syncs > 0)
    for (let i = 0; i < 30; i++) await callOnce(engine, request(100n), 10n)
    await engine.stop()
    expect(await database.db.many(events)).toHaveLength(31)
    const quiet = new FullDisk()
    const other = await startEngine(database.db, { disk: quiet })
    await callOnce(other, request(100n), 10n)
    await other.stop()
    expect(quiet.syncs).toBe(0)
  })
})

describe('a journal of a dead process', () => {
  /** Makes three settled calls and a running one. Returns their process, and a folder with a copy of its journal that ends with these bytes. */
  async function deadWith(tail: Buffer) {
    const engine = await startEngine(database.db, { env: still })
    await engine.limits.budgets.set(1, 'key', '7', 1_000_000n)
    for (let i = 0; i < 3; i++) await callOnce(engine, request(100n), 70n)
    const running = request(500n)
    await (await engine.limits.admit(running)).open(eventOf(running, 10n))
    const dataDir = await copyOfJournal(engine)
    for (const { path } of segmentsOf(journalFolder(dataDir), engine.limits.processId)) appendFileSync(path, tail)
    return { engine, dataDir }
  }

  const charges = async (): Promise<string[]> => (await database.db.many(events)).map(({ outcome, valueUinr }) => `${outcome} ${valueUinr}`).sort()

  // After a power cut a file can have its new length, and zeros where the bytes were not on the disk yet.
  it.each([3, 8, 4096])('is adopted when it ends with %i zero bytes', async count => {
    const { engine, dataDir } = await deadWith(Buffer.alloc(count))
    const survivor = await startEngine(database.db, { dataDir, env: still })
    expect(await charges()).toEqual(['interrupted 10', 'ok 70', 'ok 70', 'ok 70'])
    expect(await database.db.one(stateOf, engine.limits.processId)).toEqual({ state: 'closed' })
    expect(await survivor.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 220n, heldUinr: 0n })
    await survivor.stop()
    await engine.stop()
  })

  it('is charged up to a record that this version cannot read, and keeps its leases', async () => {
    const payload = Buffer.from([77])
    const header = Buffer.alloc(8)
    header.writeUInt32LE(payload.length)
    header.writeUInt32LE(crc32(payload), 4)
    const { engine, dataDir } = await deadWith(Buffer.concat([header, payload]))
    const survivor = await startEngine(database.db, { dataDir, env: still })
    for (let round = 0; round < 2; round++) {
      await survivor.limits.janitor.runOnce()
      expect(await charges()).toEqual(['ok 70', 'ok 70', 'ok 70'])
      expect(await database.db.one(stateOf, engine.limits.processId)).toEqual({ state: 'lost' })
    }
    expect((await database.db.one(leased)).sum).toBeGreaterThan(0n)
    await survivor.stop()
    await engine.stop()
  })

  it('is refused by brigade doctor --release when it can be read, and gives up its leases when this version cannot read it', async () => {
    const payload = Buffer.from([77])
    const header = Buffer.alloc(8)
    header.writeUInt32LE(payload.length)
    header.writeUInt32LE(crc32(payload), 4)
    for (const tail of [Buffer.alloc(0), Buffer.concat([header, payload])]) {
      const isUnread = tail.length > 0
      const { engine, dataDir } = await deadWith(tail)
      const { processId } = engine.limits
      const survivor = await startEngine(database.db, { dataDir, env: still })
      const release = () => survivor.limits.recovery.release(processId)
      if (isUnread) {
        expect((await database.db.one(leased)).sum).toBeGreaterThan(0n)
        // The charges before the unreadable record count as a sign of life.
        expect(await outcomeOf(release())).toContain('it may still serve')
        await database.db.exec(ageBeat, processId)
        expect(await release()).toBeGreaterThan(0)
        expect(await database.db.one(leased)).toEqual({ sum: 0n })
        // The journal stays for a version that can read it. The janitor of this version still charges only what is before.
        await survivor.limits.janitor.runOnce()
        expect(await charges()).toEqual(['interrupted 10', 'ok 70', 'ok 70', 'ok 70', 'ok 70', 'ok 70', 'ok 70'])
        expect(await database.db.one(stateOf, processId)).toEqual({ state: 'lost' })
      } else expect(await outcomeOf(release())).toContain('is read by itself within seconds')
      await survivor.stop()
      await engine.stop()
    }
  })
})

describe('a disk that is full', () => {
  it('on a full disk, new calls are refused, running ones are charged directly in the database, and the journal later continues after the gap', async () => {
    const disk = new FullDisk(4096)
    const engine = await startEngine(database.db, { disk, env: still })
    await engine.limits.budgets.set(1, 'key', '7', 100_000n)
    const [settled, given] = [request(500n), request(500n)]
    const running = await engine.limits.admit(settled)
    await running.open(eventOf(settled, 0n))
    const idle = await engine.limits.admit(given)
    await idle.open(eventOf(given, 0n))
    disk.isFull = true
    const refused = await engine.limits.admit(request(100n))
    expect(await outcomeOf(refused.open(eventOf(settled, 0n)))).toBe('journal_full')
    refused.release()
    running.progress(eventOf(settled, 10n))
    await running.settle(eventOf(settled, 70n))
    expect(await database.db.many(events)).toMatchObject([{ id: settled.eventId, valueUinr: 70n }])
    idle.release()
    disk.isFull = false
    for (let i = 0; i < 20; i++) await callOnce(engine, request(100n), 10n)
    const records = [...readJournal(journalFolder(engine.dataDir), engine.limits.processId, 0, usageEventCodec)]
    expect(records.filter(({ record }) => record.kind === 'settle')).toHaveLength(20)
    await engine.limits.flushNow()
    expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 270n })
    await engine.stop()
    // A call that began and was abandoned while the disk was full left an `open` record without an end. The next process settles it.
    const heir = await startEngine(database.db, { dataDir: engine.dataDir, env: still })
    await heir.limits.janitor.runOnce()
    await heir.stop()
    expect(await database.db.one(leased)).toEqual({ sum: 0n })
    expect((await database.db.many(events)).filter(row => row.id === settled.eventId)).toHaveLength(1)
  })

  it('a call that is settled without the journal is counted once, even if the process then dies', async () => {
    const disk = new FullDisk()
    const engine = await startEngine(database.db, { disk, env: still })
    const asked = request(500n)
    const permit = await engine.limits.admit(asked)
    await permit.open(eventOf(asked, 5n))
    disk.isFull = true
    await permit.settle(eventOf(asked, 70n))
    const survivor = await startEngine(database.db, { dataDir: await copyOfJournal(engine) })
    expect(await database.db.many(events)).toMatchObject([{ id: asked.eventId, outcome: 'ok', valueUinr: 70n }])
    await survivor.stop()
    // The process still runs. It was fenced, and continues under a new registration when there is room for a journal.
    expect(await outcomeOf(engine.limits.beat())).toContain('ENOSPC')
    disk.isFull = false
    await callOnce(engine, request(100n), 10n)
    await engine.stop()
    expect(await database.db.many(events)).toHaveLength(2)
  })

  it('when neither disk nor database accepts a charge, the caller gets an error, and the charge is written when the database is back', async () => {
    const { db, away } = interrupted(database.db)
    const disk = new FullDisk()
    const engine = await startEngine(db, { disk, env: { ...still, JOURNAL_FLUSH_MS: '20' } })
    await engine.limits.budgets.set(1, 'key', '7', 100_000n)
    const asked = [request(500n), request(500n)]
    const permits = await Promise.all(asked.map(one => engine.limits.admit(one)))
    for (const [i, permit] of permits.entries()) await permit.open(eventOf(asked[i] ?? request(1n), 0n))
    disk.isFull = true
    away(true)
    for (const [i, permit] of permits.entries()) expect(await outcomeOf(permit.settle(eventOf(asked[i] ?? request(1n), 70n)))).toContain('away')
    expect(await database.db.many(events)).toEqual([])
    away(false)
    await until(async () => (await database.db.many(events)).length === 2)
    disk.isFull = false
    await engine.limits.flushNow()
    expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 140n })
    await engine.stop()
    expect(await database.db.one(leased)).toEqual({ sum: 0n })
    expect((await database.db.many(events)).map(row => row.valueUinr)).toEqual([70n, 70n])
  })

  it('when the journal exceeds its bound, new calls are refused until it is flushed to the database', async () => {
    const { db, away } = interrupted(database.db)
    const engine = await startEngine(db, { env: { ...still, JOURNAL_MAX_BYTES: '4000' } })
    away(true)
    let served = 0
    let outcome = 'ok'
    while (outcome === 'ok' && served < 50) {
      outcome = await outcomeOf(callOnce(engine, request(100n), 10n))
      if (outcome === 'ok') served++
    }
    expect([outcome, served > 2]).toEqual(['journal_full', true])
    away(false)
    await engine.limits.flushNow()
    expect(await outcomeOf(callOnce(engine, request(100n), 10n))).toBe('ok')
    await engine.stop()
    expect(await database.db.many(events)).toHaveLength(served + 1)
  })
})

it('over HTTP, new calls on a full disk are 503, and running ones end and are charged', async () => {
  const disk = new FullDisk()
  const app = await startApp({ journalDisk: disk })
  const { key, keyId } = await app.newKey({ budgetInr: 100 })
  const chat = (body: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'hi' }], ...body }, { token: key })
  app.alpha.script([{ hold: true }, { holdAfterChunks: 2 }])
  const plain = chat()
  await app.alpha.arrived(1)
  const stream = chat({ stream: true })
  await app.alpha.arrived(2)
  disk.isFull = true
  const refused = await chat()
  expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([503, 'database_unavailable', expect.stringContaining('journal')])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  app.alpha.release()
  expect((await plain).status).toBe(200)
  expect((await stream).text.endsWith('data: [DONE]\n\n')).toBe(true)
  expect((await app.db.many(events)).map(row => row.outcome)).toEqual(['ok', 'ok'])
  disk.isFull = false
  expect((await chat()).status).toBe(200)
  await app.gateway.app.limits.flushNow()
  const total = (await app.db.many(events)).reduce((sum, row) => sum + row.valueUinr, 0n)
  expect(await app.gateway.app.limits.budgets.get(app.orgId, 'key', String(keyId))).toMatchObject({ spentUinr: total })
  await app.stop()
})
