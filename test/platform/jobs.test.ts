import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { DatabaseUnavailableError, type Db, statement } from '../../src/platform/db/db.ts'
import { claimDue, Jobs } from '../../src/platform/db/jobs.ts'
import type { Log } from '../../src/platform/observe/log.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { onPostgres, testDatabase } from '../harness/database.ts'
import { until } from '../harness/until.ts'

const database = await testDatabase()
const { db } = database

interface HandClock extends Clock {
  /** Returns the pauses of the waiting timers, in the order in which they were set. */
  pauses(): number[]
  /** Fires every waiting one-time timer. */
  fire(): void
  /** Fires every repeating timer once. */
  beat(): void
}

function handClock(): HandClock {
  const timers = new Set<{ ms: number; fn: () => void }>()
  const beats = new Set<() => void>()
  return {
    ...systemClock,
    after(ms, fn) {
      const timer = { ms, fn }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    every(_ms, fn) {
      beats.add(fn)
      return () => void beats.delete(fn)
    },
    pauses: () => [...timers].map(timer => timer.ms),
    fire() {
      const due = [...timers]
      timers.clear()
      for (const timer of due) timer.fn()
    },
    beat() {
      for (const fn of beats) fn()
    },
  }
}

interface Process {
  readonly jobs: Jobs
  readonly clock: HandClock
  /** The names of the jobs whose failure was logged. */
  readonly failed: string[]
}

const started: Jobs[] = []

function makeProcess(on: Db = db, random = 0.5): Process {
  const clock = handClock()
  const failed: string[] = []
  const log: Log = { info() {}, warn() {}, error: (_event, fields) => void failed.push(fields?.job ?? '') }
  const jobs = new Jobs({ db: on, clock, ids: { ...systemIds, random: () => random }, log })
  started.push(jobs)
  return { jobs, clock, failed }
}

/** Returns a promise and the function that resolves it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>(done => (open = done))
  return { opened, open: () => open() }
}

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    error => error,
  )

afterEach(async () => {
  for (const jobs of started.splice(0)) await jobs.stop()
})
afterAll(() => database.dispose())

describe('a job', () => {
  test('a job runs repeatedly, and each pause begins at the end of the previous run', async () => {
    const { jobs, clock } = makeProcess()
    const gates = [gate(), gate()]
    let runs = 0
    jobs.every('sweep', 1000, () => gates[runs++]?.opened ?? Promise.resolve())
    expect(clock.pauses()).toEqual([1000])
    clock.fire()
    await until(() => runs === 1, 'the first run')
    expect(clock.pauses()).toEqual([])
    gates[0]?.open()
    await until(() => clock.pauses().length === 1, 'the next pause')
    clock.fire()
    await until(() => runs === 2, 'the second run')
    gates[1]?.open()
  })

  test('the pauses of a job are up to a tenth shorter or longer, at random', () => {
    const shortest = makeProcess(db, 0)
    const longest = makeProcess(db, 1)
    for (const { jobs } of [shortest, longest]) jobs.every('sweep', 1000, async () => {})
    expect(shortest.clock.pauses()).toEqual([900])
    expect(longest.clock.pauses()).toEqual([1100])
  })

  test('a job that fails is logged and runs again', async () => {
    const { jobs, clock, failed } = makeProcess()
    let runs = 0
    jobs.every('broken', 1000, async () => {
      runs++
      throw new Error('broken')
    })
    clock.fire()
    await until(() => clock.pauses().length === 1, 'the pause after the failure')
    expect(failed).toEqual(['broken'])
    clock.fire()
    await until(() => runs === 2, 'the second run')
    await until(() => clock.pauses().length === 1, 'the second pause')
  })

  test('a job that is run by hand throws its error to the caller, and joins a run that is in progress', async () => {
    const { jobs, failed } = makeProcess()
    const go = gate()
    let runs = 0
    jobs.every('sweep', 1000, async () => {
      runs++
      await go.opened
    })
    jobs.every('broken', 1000, () => Promise.reject(new Error('broken')))
    const both = [jobs.runOnce('sweep'), jobs.runOnce('sweep')]
    go.open()
    expect(await Promise.all(both)).toEqual([true, true])
    expect(runs).toBe(1)
    await expect(jobs.runOnce('broken')).rejects.toThrow('broken')
    expect(failed).toEqual([])
    await expect(jobs.runOnce('unheard of')).rejects.toThrow('unheard of')
    expect(() => jobs.every('sweep', 1, async () => {})).toThrow('sweep')
  })

  test('a job waits until the other jobs of its queue have ended, so that many jobs need only one connection', async () => {
    const { jobs } = makeProcess()
    let running = 0
    let mostRunning = 0
    const names = Array.from({ length: 12 }, (_, i) => `job ${i}`)
    for (const name of names) {
      jobs.every(name, 1000, async () => {
        mostRunning = Math.max(mostRunning, ++running)
        await db.one(selectOne)
        running--
      })
    }
    expect(await Promise.all(names.map(name => jobs.runOnce(name)))).toEqual(names.map(() => true))
    expect(mostRunning).toBe(1)
  })

  test('a job in the queue of stores that does not end blocks the next job of that queue, and no other job', async () => {
    const { jobs } = makeProcess()
    const go = gate()
    const events: string[] = []
    jobs.every('slow store', 1000, () => go.opened, 'stores')
    jobs.every('next store', 1000, async () => void events.push('next store'), 'stores')
    jobs.every('sweep', 1000, async () => void events.push('sweep'))
    const stores = [jobs.runOnce('slow store'), jobs.runOnce('next store')]
    expect(await jobs.runOnce('sweep')).toBe(true)
    expect(events).toEqual(['sweep'])
    go.open()
    expect(await Promise.all(stores)).toEqual([true, true])
    expect(events).toEqual(['sweep', 'next store'])
  })

  test('a stop aborts the running job, waits for its end, and starts no other job', async () => {
    const { jobs, clock, failed } = makeProcess()
    const events: string[] = []
    jobs.every('long', 1000, async signal => {
      events.push('begins')
      await new Promise<void>(done => signal.addEventListener('abort', () => done(), { once: true }))
      await db.one(selectOne)
      events.push('ends')
    })
    jobs.every('next', 1000, async () => void events.push('next'))
    clock.fire()
    const long = jobs.runOnce('long')
    const next = errorOf(jobs.runOnce('next'))
    await until(() => events.length === 1, 'the run')
    await jobs.stop()
    expect(events).toEqual(['begins', 'ends'])
    expect(await long).toBe(true)
    expect(await next).toBeInstanceOf(DatabaseUnavailableError)
    expect(failed).toEqual([])
    expect(clock.pauses()).toEqual([])
    expect(await errorOf(jobs.runOnce('long'))).toBeInstanceOf(DatabaseUnavailableError)
  })
})

describe('a job with a stored last run', () => {
  const hourMs = 3600_000
  const setAge = statement<[name: string, hours: number]>(
    'test.jobs_set_age',
    `update job_runs set ran_at = clock_timestamp() - $2::float8 * interval '1 hour' where name = $1::text`,
  )
  let made = 0
  /** Creates a process in which an hourly job counts its runs. */
  const started = async (name: string, run: () => Promise<void> = async () => {}) => {
    const process = makeProcess()
    const counts = { runs: 0 }
    process.jobs.every(name, hourMs, async () => {
      counts.runs++
      await run()
    })
    await process.jobs.start()
    return { ...process, counts }
  }

  test('a job is due one interval after the first start that knows it, and keeps its schedule over restarts', async () => {
    const name = `kept ${made++}`
    const first = await started(name)
    first.clock.fire()
    await until(() => String(first.clock.pauses()) === '600000', 'the next look')
    expect(first.counts.runs).toBe(0)
    await first.jobs.stop()
    await db.exec(setAge, name, 0.95)
    const second = await started(name)
    expect(second.clock.pauses()[0]).toBeGreaterThan(170_000)
    expect(second.clock.pauses()[0]).toBeLessThan(181_000)
    await second.jobs.stop()
    await db.exec(setAge, name, 1.01)
    const third = await started(name)
    expect(third.clock.pauses()).toEqual([2500])
    third.clock.fire()
    await until(() => third.counts.runs === 1, 'the run that is due')
    await until(() => third.clock.pauses().length === 1, 'the next look')
    third.clock.fire()
    await until(() => third.clock.pauses().length === 1, 'a look behind the run')
    expect(third.counts.runs).toBe(1)
  })

  test('a job that failed or was stopped stays due, and is tried again after ten minutes', async () => {
    const name = `kept ${made++}`
    await (await started(name)).jobs.stop()
    await db.exec(setAge, name, 2)
    const broken = await started(name, () => Promise.reject(new Error('broken')))
    broken.clock.fire()
    await until(() => broken.failed.length === 1, 'the failure')
    await until(() => broken.clock.pauses().length === 1, 'the next try')
    expect(broken.clock.pauses()).toEqual([600_000])
    await broken.jobs.stop()
    expect((await started(name)).clock.pauses()).toEqual([2500])
  })

  test('a job is due when the clock of the database was set back', async () => {
    const name = `kept ${made++}`
    await (await started(name)).jobs.stop()
    await db.exec(setAge, name, -24 * 365)
    expect((await started(name)).clock.pauses()).toEqual([2500])
  })

  test('a job can be run by hand when it is not due', async () => {
    const name = `kept ${made++}`
    const { jobs, counts } = await started(name)
    expect(await jobs.runOnce(name)).toBe(true)
    expect(counts.runs).toBe(1)
  })

  test.runIf(onPostgres)('when several processes find a job due, one of them runs it', async () => {
    const name = `kept ${made++}`
    await (await started(name)).jobs.stop()
    await db.exec(setAge, name, 2)
    const processes = await Promise.all([started(name), started(name), started(name)])
    for (const { clock } of processes) clock.fire()
    await until(() => processes.every(({ clock }) => clock.pauses().length === 1), 'the looks of all')
    expect(processes.reduce((sum, { counts }) => sum + counts.runs, 0)).toBe(1)
  })
})

describe.runIf(onPostgres)('a job of several processes', () => {
  test('a job runs in one process at a time, and in the other when the first run is done', async () => {
    const [a, b] = [makeProcess(await database.open()), makeProcess(await database.open())]
    const go = gate()
    const events: string[] = []
    a.jobs.every('shared', 1000, async () => {
      events.push('a')
      await go.opened
    })
    b.jobs.every('shared', 1000, async () => void events.push('b'))
    b.jobs.every('other', 1000, async () => void events.push('other'))
    const first = a.jobs.runOnce('shared')
    await until(() => events.length === 1, 'the run of the first process')
    expect(await b.jobs.runOnce('shared')).toBe(false)
    expect(await b.jobs.runOnce('other')).toBe(true)
    go.open()
    expect(await first).toBe(true)
    expect(await b.jobs.runOnce('shared')).toBe(true)
    expect(events).toEqual(['a', 'other', 'b'])
  })

  test('a job that fails releases its lock', async () => {
    const [a, b] = [makeProcess(await database.open()), makeProcess(await database.open())]
    a.jobs.every('shared', 1000, () => Promise.reject(new Error('broken')))
    b.jobs.every('shared', 1000, async () => {})
    await expect(a.jobs.runOnce('shared')).rejects.toThrow('broken')
    expect(await b.jobs.runOnce('shared')).toBe(true)
  })

  test('a job whose process lost the connection of the lock is aborted, and may run in another process', async () => {
    const [a, b] = [makeProcess(await database.open()), makeProcess(await database.open())]
    let isTold = false
    let isRunning = false
    a.jobs.every('lost', 1000, async signal => {
      isRunning = true
      await new Promise<void>(done => signal.addEventListener('abort', () => done(), { once: true }))
      isTold = true
    })
    b.jobs.every('lost', 1000, async () => {})
    const run = errorOf(a.jobs.runOnce('lost'))
    await until(() => isRunning, 'the run')
    await db.many(terminateLockHolder)
    await until(() => b.jobs.runOnce('lost'), 'the run elsewhere')
    a.clock.beat()
    expect(await run).toBeInstanceOf(DatabaseUnavailableError)
    expect(isTold).toBe(true)
  })
})

const selectOne = statement<[], { one: number }>('test.jobs_one', 'select 1 as "one"')
const terminateLockHolder = statement<[]>(
  'test.jobs_terminate',
  `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and classid = 2
     and database = (select oid from pg_database where datname = current_database())`,
)

describe('due rows', () => {
  const put = statement<[count: number]>('test.due_put', 'insert into due (id, due_at) select n, now() from generate_series(1, $1::int) as n')
  const claim = statement<[limit: number], { id: number }>(
    'test.due_claim',
    `update due set due_at = now() + interval '1 hour'
     where id in (select id from due where due_at <= now() order by id for update skip locked limit $1::int) returning id`,
  )
  const left = statement<[], { id: number }>('test.due_left', 'select id from due where due_at <= now() order by id')
  const dueIds = async (): Promise<number[]> => (await db.many(left)).map(row => row.id)
  beforeAll(() => db.script('create table due (id int primary key, due_at timestamptz not null)'))
  afterEach(() => db.script('delete from due'))

  test('due rows are processed in rounds until none is due', async () => {
    await db.exec(put, 7)
    const worked: number[] = []
    expect(
      await claimDue(
        db,
        claim,
        () => [3],
        async row => void worked.push(row.id),
        10,
      ),
    ).toBe(7)
    expect(worked.sort()).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(
      await claimDue(
        db,
        claim,
        () => [3],
        async row => void worked.push(row.id),
        10,
      ),
    ).toBe(0)
  })

  test('rows that are due after the last round wait for the next run', async () => {
    await db.exec(put, 7)
    expect(
      await claimDue(
        db,
        claim,
        () => [2],
        async () => {},
        2,
      ),
    ).toBe(4)
    expect(await dueIds()).toHaveLength(3)
  })

  test('when a row of a round fails, the rows of that round wait for their new due time, and the error is thrown', async () => {
    await db.exec(put, 4)
    const work = claimDue(
      db,
      claim,
      () => [3],
      () => Promise.reject(new Error('broken')),
      10,
    )
    await expect(work).rejects.toThrow('broken')
    expect(await dueIds()).toHaveLength(1)
  })

  test('concurrent processes each claim different due rows', async () => {
    await db.exec(put, 60)
    const handles = onPostgres ? [db, await database.open(), await database.open()] : [db, db, db]
    const worked: number[] = []
    const counts = await Promise.all(
      handles.map(handle =>
        claimDue(
          handle,
          claim,
          () => [4],
          async row => void worked.push(row.id),
          100,
        ),
      ),
    )
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(60)
    expect(new Set(worked).size).toBe(60)
  })
})
