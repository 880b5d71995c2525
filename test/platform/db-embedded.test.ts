import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { ConfigError } from '../../src/platform/config.ts'
import { DatabaseUnavailableError, statement } from '../../src/platform/db/db.ts'
import { type EmbeddedDb, openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { Turns } from '../../src/platform/db/embedded/db-embedded-turns.ts'
import { lockFolder } from '../../src/platform/db/embedded/folder-lock.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { onPostgres } from '../harness/database.ts'
import { until } from '../harness/until.ts'
import { compileDriver, type Driver, startDriver } from './compiled-driver.ts'

// Each of these tests starts databases, and some of them start processes. On a busy machine that takes long.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const createNotes = 'create table notes (text text not null)'
const insertNote = statement<[text: string]>('test.insert_note', 'insert into notes (text) values ($1::text)')
const listNotes = statement<[], { text: string }>('test.list_notes', 'select text from notes order by text')
const selectOne = statement<[], { one: number }>('test.select_one', 'select 1 as "one"')
const longQuery = statement<[rows: number], { count: bigint }>(
  'test.long_query',
  'select count(*) as "count" from generate_series(1, $1::int) a, generate_series(1, 1000) b',
)
const writtenPairs = statement<[], { pair: number; halves: number }>(
  'test.written_pairs',
  'select pair as "pair", count(*)::int as "halves" from written group by pair order by pair',
)

const parent = mkdtempSync(join(tmpdir(), 'brigade-embedded-'))
const opened = new Set<EmbeddedDb>()
const drivers = new Set<Driver>()
let driverFile = ''
let folders = 0

const emptyFolder = (): string => join(parent, `folder-${++folders}`)

/** Returns a copy of a folder that was opened and closed before. Creating the files of a new database would take seconds. */
function newFolder(): string {
  const folder = emptyFolder()
  cpSync(join(parent, 'template', 'postgres'), join(folder, 'postgres'), { recursive: true })
  return folder
}

async function open(folder: string): Promise<EmbeddedDb> {
  const db = await openEmbedded(folder, { clock: systemClock, log: silentLog })
  opened.add(db)
  return db
}

function start(...args: readonly string[]): Driver {
  const driver = startDriver(driverFile, args)
  drivers.add(driver)
  return driver
}

const texts = async (db: EmbeddedDb): Promise<string[]> => (await db.many(listNotes)).map(row => row.text)
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    error => error,
  )

// These tests create their own databases, so they run only once, together with the embedded database.
describe.skipIf(onPostgres)('the embedded database', () => {
  beforeAll(async () => {
    driverFile = compileDriver('test/platform/folder-driver')
    await (await open(join(parent, 'template'))).close()
  })
  afterEach(async () => {
    for (const driver of drivers) await driver.kill()
    for (const db of opened) await db.close()
    drivers.clear()
    opened.clear()
  })
  afterAll(() => rmSync(parent, { recursive: true, force: true }))

  test('a closed folder opens again with its data', async () => {
    const folder = emptyFolder()
    const first = await open(folder)
    await first.script(createNotes)
    await first.exec(insertNote, 'kept')
    await first.close()
    const second = await open(folder)
    expect(await texts(second)).toEqual(['kept'])
    await second.exec(insertNote, 'later')
    await second.close()
    expect(await texts(await open(folder))).toEqual(['kept', 'later'])
  })

  test('a copy of the data folder opens elsewhere with the state at the time of the copy', async () => {
    const original = await open('memory')
    await original.script(createNotes)
    await original.exec(insertNote, 'before')
    const copy = await original.dump()
    await original.exec(insertNote, 'after')
    const db = await openEmbedded(emptyFolder(), { clock: systemClock, log: silentLog, load: copy })
    opened.add(db)
    expect(await texts(db)).toEqual(['before'])
  })

  test('a second open in the same process is refused, and the error names the process', async () => {
    const folder = newFolder()
    const db = await open(folder)
    const refusal = await errorOf(open(folder))
    expect(refusal).toBeInstanceOf(ConfigError)
    expect(refusal).toMatchObject({ message: expect.stringContaining(`process ${process.pid}`) })
    expect(await db.one(selectOne)).toEqual({ one: 1 })
  })

  test('an open in another process is refused, and the error names the process that has the folder', async () => {
    const folder = newFolder()
    const holder = start('hold', folder)
    await until(() => holder.lines().includes('ready'), 'the holder')
    const late = start('hold', folder)
    expect(await late.closed).toBe(1)
    expect(late.lines().join()).toContain('ConfigError')
    expect(late.lines().join()).toContain(`process ${holder.child.pid}`)
  })

  test('the folder of a suspended process stays locked', async () => {
    const folder = newFolder()
    const holder = start('hold', folder)
    await until(() => holder.lines().includes('ready'), 'the holder')
    holder.child.kill('SIGSTOP')
    expect(await errorOf(open(folder))).toBeInstanceOf(ConfigError)
    holder.child.kill('SIGCONT')
  })

  test('another process can lock the folder of a killed process, and only the new lock file remains', async () => {
    const folder = newFolder()
    for (let round = 0; round < 2; round++) {
      const holder = start('hold', folder)
      await until(() => holder.lines().includes('ready'), 'the holder')
      await holder.kill()
    }
    const db = await open(folder)
    expect(await db.one(selectOne)).toEqual({ one: 1 })
    const names = readdirSync(folder)
    expect(names.filter(name => name.startsWith('brigade.lock.'))).toHaveLength(1)
    expect(names.filter(name => name.endsWith('.sock'))).toHaveLength(1)
  })

  test('when many processes concurrently try to lock the folder of a killed process, exactly one succeeds', async () => {
    const folder = newFolder()
    const dead = start('hold', folder)
    await until(() => dead.lines().includes('ready'), 'the first holder')
    await dead.kill()
    const racers = Array.from({ length: 5 }, () => start('hold', folder))
    await until(() => racers.every(racer => racer.lines().length === 1), 'an answer of every process')
    const lines = racers.flatMap(racer => racer.lines())
    expect(lines.filter(line => line === 'ready')).toHaveLength(1)
    expect(lines.filter(line => line.startsWith('ConfigError: '))).toHaveLength(4)
  })

  test.each([
    { rounds: 5, count: 1 },
    { rounds: 3, count: 2 },
  ])('kill -9 loses no acknowledged transaction and keeps no part of another one, $rounds times with $count open concurrently', async ({ rounds, count }) => {
    const all = Array.from({ length: count }, newFolder)
    const acknowledged = all.map(() => new Set<number>())
    for (let round = 0; round < rounds; round++) {
      const writer = start('write', ...all)
      const least = 20 + round * 37
      await until(() => writer.lines().length > least, 'acknowledged writes')
      await writer.kill()
      for (const line of writer.lines().slice(1)) {
        const [index = 0, pair = 0] = line.split(' ').map(Number)
        acknowledged[index]?.add(pair)
      }
      for (const [index, folder] of all.entries()) {
        const db = await open(folder)
        const pairs = await db.many(writtenPairs)
        expect(pairs.filter(row => row.halves !== 2)).toEqual([])
        const stored = new Set(pairs.map(row => row.pair))
        expect([...(acknowledged[index] ?? [])].filter(pair => !stored.has(pair))).toEqual([])
        await db.close()
        opened.delete(db)
      }
    }
    expect(Math.min(...acknowledged.map(pairs => pairs.size))).toBeGreaterThan(50)
  })

  test('timers of the process fire while a long query runs', async () => {
    const db = await open(newFolder())
    let fired = 0
    const stop = systemClock.every(1, () => fired++)
    try {
      expect(await db.one(longQuery, 2000)).toEqual({ count: 2_000_000n })
      expect(fired).toBeGreaterThan(0)
    } finally {
      stop()
    }
  })

  test('a close refuses waiting callers, lets the running transaction end, and resolves', async () => {
    const folder = newFolder()
    const db = await open(folder)
    await db.script(createNotes)
    let finish = (): void => {}
    const mayFinish = new Promise<void>(done => (finish = done))
    const running = db.tx(async tx => {
      await tx.exec(insertNote, 'running')
      await mayFinish
      await tx.exec(insertNote, 'ran')
    })
    const waiting = Array.from({ length: 50 }, (_, i) => errorOf(db.exec(insertNote, `waiting ${i}`)))
    const closed = db.close()
    expect(await Promise.all(waiting)).toSatisfy((errors: unknown[]) => errors.every(error => error instanceof DatabaseUnavailableError))
    expect(await errorOf(db.one(selectOne))).toBeInstanceOf(DatabaseUnavailableError)
    finish()
    await running
    await closed
    await db.close()
    expect(await texts(await open(folder))).toEqual(['ran', 'running'])
  })

  /** Returns the database threads that this process starts from now on, in order. */
  const threadsFromNow = (): Worker[] => {
    const threads: Worker[] = []
    const add = (worker: Worker): void => void threads.push(worker)
    process.on('worker', add)
    stopWatching.push(() => process.off('worker', add))
    return threads
  }
  const stopWatching: (() => void)[] = []
  afterEach(() => {
    for (const stop of stopWatching.splice(0)) stop()
  })

  test('when its thread dies, running queries fail, waiting ones continue, and listeners are notified of the gap. No acknowledged data is lost', async () => {
    const threads = threadsFromNow()
    // Waiting callers have no timeout here, because a thread may take long to start on a busy machine.
    const clock: Clock = { ...systemClock, after: () => () => {} }
    const db = await openEmbedded(newFolder(), { clock, log: silentLog })
    opened.add(db)
    await db.script(createNotes)
    await db.exec(insertNote, 'stored')
    const heard: string[] = []
    await db.listen(
      'news',
      payload => heard.push(payload),
      () => heard.push('gap'),
    )
    const running = errorOf(db.one(longQuery, 1_000_000))
    const waiting = db.one(selectOne)
    await threads[0]?.terminate()
    expect(await running).toBeInstanceOf(DatabaseUnavailableError)
    expect(await waiting).toEqual({ one: 1 })
    const half = errorOf(
      db.tx(async tx => {
        await tx.exec(insertNote, 'half')
        await threads[1]?.terminate()
        await tx.exec(insertNote, 'other half')
      }),
    )
    expect(await half).toBeInstanceOf(DatabaseUnavailableError)
    expect(await texts(db)).toEqual(['stored'])
    await db.notify('news', 'after')
    await until(() => heard.includes('after'), 'news after the loss')
    expect(heard).toEqual(['gap', 'gap', 'after'])
    expect(threads).toHaveLength(3)
  })

  test('when the thread dies repeatedly, the database gives up with an error that says why', async () => {
    const threads = threadsFromNow()
    const folder = newFolder()
    const givenUp: Error[] = []
    const db = await openEmbedded(folder, { clock: systemClock, log: silentLog, onGivenUp: error => givenUp.push(error) })
    opened.add(db)
    await db.script(createNotes)
    for (let losses = 1; losses <= 6; losses++) {
      await until(
        () =>
          db
            .one(selectOne)
            .then(() => true)
            .catch(() => false),
        `the database before loss ${losses}`,
      )
      await threads.at(-1)?.terminate()
    }
    await until(() => givenUp.length === 1, 'the end')
    expect(givenUp[0]?.message).toContain('more than 5 times within 60 s')
    expect(await errorOf(db.one(selectOne))).toBe(givenUp[0])
    await db.close()
    expect(await texts(await open(folder))).toEqual([])
  })

  test('a database in memory is lost with its thread, and the error says so', async () => {
    const threads = threadsFromNow()
    const db = await open('memory')
    await threads[0]?.terminate()
    expect(await errorOf(db.one(selectOne))).toMatchObject({ message: expect.stringContaining('in memory is lost') })
    expect(await errorOf(db.dump())).toBeInstanceOf(DatabaseUnavailableError)
  })

  test('a folder whose database cannot start releases its lock', async () => {
    const folder = emptyFolder()
    const load = new Uint8Array([1, 2, 3])
    expect(await errorOf(openEmbedded(folder, { clock: systemClock, log: silentLog, load }))).toBeInstanceOf(Error)
    rmSync(join(folder, 'postgres'), { recursive: true, force: true })
    expect(await (await open(folder)).one(selectOne)).toEqual({ one: 1 })
  })
})

describe.skipIf(onPostgres)('the lock of a folder', () => {
  test('the lock of a folder is given to one of many concurrent processes', async () => {
    const folder = emptyFolder()
    const answers = await Promise.allSettled(Array.from({ length: 12 }, () => lockFolder(folder)))
    const held = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []))
    expect(held).toHaveLength(1)
    await held[0]?.release()
    await (await lockFolder(folder)).release()
  })

  test('the lock works in a folder whose path is too long for a socket', async () => {
    const folder = join(emptyFolder(), 'a'.repeat(90), 'b'.repeat(90))
    mkdirSync(folder, { recursive: true })
    const lock = await lockFolder(folder)
    expect(await errorOf(lockFolder(folder))).toBeInstanceOf(ConfigError)
    await lock.release()
    await (await lockFolder(folder)).release()
  })
})

/** A clock whose timers fire only when the test says so. */
function handClock(): Clock & { fire(): void } {
  const timers = new Set<() => void>()
  return {
    ...systemClock,
    after(_ms, fn) {
      timers.add(fn)
      return () => void timers.delete(fn)
    },
    fire() {
      for (const timer of timers) timer()
    },
  }
}

describe('the queue of the one session', () => {
  test('the queue serves callers one at a time in the order of arrival', async () => {
    const turns = new Turns(systemClock)
    const order: string[] = []
    const work = (name: string) => async (): Promise<void> => {
      order.push(`${name} begins`)
      await systemClock.sleep(1)
      order.push(`${name} ends`)
      if (name === 'b') throw new Error('b fails')
    }
    const all = await Promise.allSettled(['a', 'b', 'c'].map(name => turns.run(work(name))))
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
    expect(all.map(one => one.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('the queue accepts ten thousand waiting callers and refuses the next one', async () => {
    const turns = new Turns(handClock())
    let finish = (): void => {}
    const running = turns.run(() => new Promise<void>(done => (finish = done)))
    const waiting = Array.from({ length: 10_000 }, () => turns.run(async () => 'served'))
    expect(await errorOf(turns.run(async () => 'too many'))).toBeInstanceOf(DatabaseUnavailableError)
    finish()
    await running
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['served']))
  })

  test('the queue refuses a caller whose turn does not come in time, and serves later ones', async () => {
    const clock = handClock()
    const turns = new Turns(clock)
    let finish = (): void => {}
    const running = turns.run(() => new Promise<void>(done => (finish = done)))
    const late = errorOf(turns.run(async () => 'never'))
    clock.fire()
    expect(await late).toBeInstanceOf(DatabaseUnavailableError)
    const next = turns.run(async () => 'served')
    finish()
    await running
    expect(await next).toBe('served')
  })
})
