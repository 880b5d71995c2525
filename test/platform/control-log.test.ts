import { afterAll, afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { ControlLog, type News } from '../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { movableClock, until } from '../agents/setup.ts'
import { testDatabase } from '../harness/database.ts'

const database = await testDatabase()
const { db } = database
const logs: ControlLog[] = []
const onPostgres = database.kind === 'postgres'

afterEach(async () => {
  for (const log of logs.splice(0)) await log.stop()
})
afterAll(() => database.dispose())

/** Longer than any test, so only a notification can have brought an event. */
const neverMs = 3_600_000

async function started(on: Db, pollMs: number): Promise<{ log: ControlLog; news: News[]; others: string[] }> {
  const log = new ControlLog({ db: on, clock: systemClock, log: silentLog, pollMs })
  const news: News[] = []
  const others: string[] = []
  log.on(row => news.push(row))
  log.onOther(payload => others.push(payload))
  logs.push(log)
  await log.start()
  return { log, news, others }
}

const refs = (news: readonly News[], kind: string): string[] => news.filter(row => row.kind === kind).map(row => row.ref)

test('the event of a committed change reaches its own process before the change returns', async () => {
  const { log, news } = await started(db, neverMs)
  const value = await log.change(async () => ({ value: 'done', news: [{ kind: 'own', ref: '1', epoch: 7 }] }))
  expect(value).toBe('done')
  expect(news.filter(row => row.kind === 'own')).toMatchObject([{ ref: '1', epoch: 7 }])
})

test('a change that rolls back produces no event', async () => {
  const { log, news } = await started(db, 20)
  const failing = log.change(async tx => {
    await log.append(tx, [{ kind: 'undone', ref: '1' }])
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  await log.change(async () => ({ value: null, news: [{ kind: 'after', ref: '1' }] }))
  await until(() => refs(news, 'after').length > 0, 'the later news')
  expect(refs(news, 'undone')).toEqual([])
})

test("a notification brings another writer's event without waiting for the poll", async () => {
  const { news } = await started(db, neverMs)
  const writer = new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: neverMs })
  await writer.change(async () => ({ value: null, news: [{ kind: 'told', ref: '5' }] }))
  await until(() => refs(news, 'told').length === 1, 'the news by notification')
})

test('the poll brings an event whose notification was lost', async () => {
  const { news } = await started(db, 20)
  const insertSilently = statement<[kind: string, ref: string]>('test.insert_news_silently', 'insert into control_log (kind, ref) values ($1::text, $2::text)')
  await db.exec(insertSilently, 'unheard', '9')
  await until(() => refs(news, 'unheard').length > 0, 'the news by poll')
})

test('every row is delivered once, even when it is read several times', async () => {
  const { log, news } = await started(db, 10)
  await log.change(async () => ({
    value: null,
    news: [
      { kind: 'once', ref: 'a' },
      { kind: 'once', ref: 'b' },
    ],
  }))
  await log.change(async () => ({ value: null, news: [{ kind: 'sentinel', ref: '1' }] }))
  for (let i = 0; i < 5; i++) await log.change(async () => ({ value: null, news: [{ kind: 'tick', ref: String(i) }] }))
  await until(() => refs(news, 'tick').length >= 5, 'the ticks')
  expect(refs(news, 'once').sort()).toEqual(['a', 'b'])
})

test('a subscriber that throws does not keep events from others', async () => {
  const log = new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: neverMs })
  const heard: string[] = []
  log.on(() => {
    throw new Error('broken subscriber')
  })
  log.on(row => heard.push(row.ref))
  await log.change(async () => ({ value: null, news: [{ kind: 'x', ref: 'heard' }] }))
  expect(heard).toEqual(['heard'])
})

test('notifications with another prefix go to their own listeners', async () => {
  const { others } = await started(db, neverMs)
  await db.notify('br', 'recall:1,2,3')
  await until(() => others.includes('recall:1,2,3'), 'the other notification')
})

test('the age of the control log counts from the last successful read', async () => {
  const clock = movableClock()
  const log = new ControlLog({ db, clock, log: silentLog, pollMs: 20 })
  logs.push(log)
  await log.start()
  clock.advance(60_000)
  expect(log.lastSyncAgeMs()).toBeGreaterThanOrEqual(59_000)
  await until(() => log.lastSyncAgeMs() < 30_000, 'a fresh read')
})

test('rows older than an hour are deleted, and younger rows stay', async () => {
  const insertOld = statement<[age: string, ref: string]>(
    'test.insert_old_news',
    `insert into control_log (at, kind, ref) values (clock_timestamp() - $1::interval, 'old', $2::text)`,
  )
  const left = statement<[], { ref: string }>('test.old_news', `select ref from control_log where kind = 'old' order by ref`)
  await db.exec(insertOld, '61 minutes', 'gone')
  await db.exec(insertOld, '59 minutes', 'kept')
  const log = new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: neverMs })
  expect(await log.prune()).toBe(1)
  expect((await db.many(left)).map(row => row.ref)).toEqual(['kept'])
})

test.runIf(onPostgres)('two processes notify each other, even of rows that commit out of order', async () => {
  const otherDb = await database.open()
  try {
    const a = await started(db, neverMs)
    const b = await started(otherDb, neverMs)
    let finishFirst: () => void = () => {}
    const held = new Promise<void>(resolve => {
      finishFirst = resolve
    })
    let firstIsWritten: () => void = () => {}
    const written = new Promise<void>(resolve => {
      firstIsWritten = resolve
    })
    const first = db.tx(async tx => {
      await a.log.append(tx, [{ kind: 'ordered', ref: 'first' }])
      firstIsWritten()
      await held
    })
    await written
    await b.log.change(async () => ({ value: null, news: [{ kind: 'ordered', ref: 'second' }] }))
    await until(() => refs(a.news, 'ordered').includes('second'), 'the second row at the first process')
    finishFirst()
    await first
    await until(() => refs(b.news, 'ordered').includes('first'), 'the late first row at the second process')
    expect(refs(b.news, 'ordered').sort()).toEqual(['first', 'second'])
  } finally {
    for (const log of logs.splice(0)) await log.stop()
    await otherDb.close()
  }
})

test('however many notifications arrive, the log rests after each read for as long as the read took', async () => {
  const readMs = 40
  const reads: { startMs: number; endMs: number }[] = []
  let notify = (_payload: string): void => {}
  const slow = {
    listen: async (_channel: string, onPayload: (payload: string) => void) => {
      notify = onPayload
      return async () => {}
    },
    many: async () => {
      const startMs = performance.now()
      await systemClock.sleep(readMs)
      reads.push({ startMs, endMs: performance.now() })
      return [{ now: new Date(), seq: null, kind: null, ref: null, epoch: null }]
    },
  } as unknown as Db
  await started(slow, neverMs)
  const flood = setInterval(() => notify('c:1'), 1)
  await until(() => reads.length >= 6, 'six reads')
  clearInterval(flood)
  // The read at the start is not followed by a rest.
  const rests = reads.slice(2).map(({ startMs }, at) => startMs - (reads[at + 1]?.endMs ?? 0))
  for (const restMs of rests) expect(restMs).toBeGreaterThan(readMs / 2)
})
