/** What only a PostgreSQL server can do to its clients: end connections, time out, and become unavailable. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { DatabaseUnavailableError, type Db, statement } from '../../src/platform/db/db.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../harness/database.ts'
import { until } from '../harness/until.ts'

const script = fileURLToPath(new URL('../../scripts/postgres.mjs', import.meta.url))
const backendPid = statement<[], { pid: number }>('test.backend_pid', 'select pg_backend_pid() as "pid"')
const terminate = statement<[pid: number]>('test.terminate', 'select pg_terminate_backend($1::int)')
const terminateListener = statement<[]>(
  'test.terminate_listener',
  `select pg_terminate_backend(pid) from pg_stat_activity
   where datname = current_database() and pid <> pg_backend_pid() and query ~* '^(listen|select 1$)'`,
)
const limit = statement<[ms: string], { set: string }>('test.limit', `select set_config('statement_timeout', $1::text, true) as "set"`)
const sleepFor = statement<[seconds: number]>('test.sleep_for', 'select pg_sleep($1::float8)')
const limits = statement<[], { statement: string; idle: string }>(
  'test.limits',
  `select current_setting('statement_timeout') as "statement", current_setting('idle_in_transaction_session_timeout') as "idle"`,
)

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    error => error,
  )

describe.runIf(onPostgres)('PostgreSQL', () => {
  let database: TestDatabase
  const opened: Db[] = []
  const servers: string[] = []
  beforeAll(async () => {
    database = await testDatabase()
  })
  afterEach(async () => {
    for (const db of opened.splice(0)) await db.close()
  })
  afterAll(async () => {
    for (const folder of servers) if (existsSync(folder)) execFileSync(process.execPath, [script, 'stop', folder])
    await database.dispose()
  })

  async function open(poolMax: number, url = database.url ?? ''): Promise<Db> {
    const db = await openPostgres(new Secret(url), { poolMax, clock: systemClock, log: silentLog })
    opened.push(db)
    return db
  }

  test('after the server ends the listening connection, the client listens again, reports the gap, and receives later notifications', async () => {
    const db = await open(2)
    const heard: string[] = []
    let reconnects = 0
    await db.listen(
      'lost',
      payload => heard.push(payload),
      () => reconnects++,
    )
    await db.notify('lost', 'before')
    await until(() => heard.length === 1, 'the first notification')
    for (let round = 1; round <= 2; round++) {
      await database.db.many(terminateListener)
      await until(() => reconnects === round, 'a new listening connection')
      await db.notify('lost', `after ${round}`)
      await until(() => heard.includes(`after ${round}`), 'a notification on the new connection')
    }
    expect(heard).toEqual(['before', 'after 1', 'after 2'])
  })

  test('after the server ends an idle connection, queries use a new connection', async () => {
    const db = await open(1)
    const { pid } = await db.one(backendPid)
    await database.db.many(terminate, pid)
    // The pool may notice the end only after the next query took the connection. That query fails, and the one after it does not.
    await until(async () => (await db.one(backendPid).catch(() => ({ pid }))).pid !== pid, 'a new connection')
    expect((await db.one(backendPid)).pid).not.toBe(pid)
  })

  test('when the server ends a connection inside a transaction, the transaction fails as unavailable and the next one is served', async () => {
    const db = await open(1)
    const work = db.tx(async tx => {
      const { pid } = await tx.one(backendPid)
      await database.db.many(terminate, pid)
      await tx.many(sleepFor, 5)
    })
    expect(await errorOf(work)).toBeInstanceOf(DatabaseUnavailableError)
    expect(await db.tx(tx => tx.one(limits))).toMatchObject({ statement: '30s' })
  })

  test('a statement ends at its time limit, and the connection stays usable', async () => {
    const db = await open(1)
    const { pid } = await db.one(backendPid)
    const work = db.tx(async tx => {
      await tx.one(limit, '50')
      await tx.many(sleepFor, 20)
    })
    expect(await errorOf(work)).toBeInstanceOf(DatabaseUnavailableError)
    expect(await db.one(backendPid)).toEqual({ pid })
  })

  test('statements and idle transactions have time limits, and scripts have none', async () => {
    const db = await open(1)
    expect(await db.one(limits)).toEqual({ statement: '30s', idle: '10s' })
    await db.script(`do $$ begin if current_setting('statement_timeout') <> '0' then raise exception 'a limit'; end if; end $$`)
  })

  test('a caller waits for a busy pool only for a limited time', async () => {
    const db = await open(1)
    const waited = await db.tx(() => errorOf(db.one(backendPid)))
    expect(waited).toBeInstanceOf(DatabaseUnavailableError)
    expect(await db.one(limits)).toMatchObject({ statement: '30s' })
  })

  test('a server that does not listen is reported as unavailable', async () => {
    expect(await errorOf(open(1, 'postgres://postgres@127.0.0.1:1/postgres'))).toBeInstanceOf(DatabaseUnavailableError)
  })

  test('after the server stops, running and later calls fail as unavailable, and a close resolves', async () => {
    const printed = execFileSync(process.execPath, [script, 'start'], { encoding: 'utf8' })
    const [url = '', folder = ''] = ['TEST_POSTGRES_URL', 'POSTGRES_FOLDER'].map(name => new RegExp(`^${name}=(.*)$`, 'm').exec(printed)?.[1])
    servers.push(folder)
    const db = await open(3, url)
    await db.listen('gone', () => {})
    const running = errorOf(db.many(sleepFor, 60))
    const inTx = errorOf(db.tx(tx => tx.many(sleepFor, 60)))
    await until(async () => (await db.one(statementsAsleep)).count === 2n, 'the running statements')
    execFileSync(process.execPath, [script, 'stop', folder])
    expect(await running).toBeInstanceOf(DatabaseUnavailableError)
    expect(await inTx).toBeInstanceOf(DatabaseUnavailableError)
    expect(await errorOf(db.one(backendPid))).toBeInstanceOf(DatabaseUnavailableError)
    expect(await errorOf(db.tx(tx => tx.one(backendPid)))).toBeInstanceOf(DatabaseUnavailableError)
    expect(await errorOf(db.script('select 1'))).toBeInstanceOf(DatabaseUnavailableError)
    expect(await errorOf(db.listen('other', () => {}))).toBeInstanceOf(DatabaseUnavailableError)
    await db.close()
    expect(await errorOf(db.one(backendPid))).toBeInstanceOf(DatabaseUnavailableError)
  })
})

const statementsAsleep = statement<[], { count: bigint }>(
  'test.asleep',
  `select count(*) as "count" from pg_stat_activity where state = 'active' and wait_event = 'PgSleep'`,
)
