import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { onPostgres } from '../harness/database.ts'
import { call, startFleet } from '../harness/fleet.ts'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { ask, parsed } from '../harness/prometheus.ts'
import { until } from '../harness/until.ts'

// The tests need a long timeout, because each of them starts processes.
vi.setConfig({ testTimeout: 240_000 })

const job = 'keys.inactivity'
const token = 'figures-token-of-the-sweeps'
const settings = { METRICS_TOKEN: token }

/** Sets when every regular job last ran, by the clock of the database. */
const setAges = statement<[minutes: number]>('test.sweeps_set_ages', `update job_runs set ran_at = now() - $1::float8 * interval '1 minute'`)
const readAge = statement<[name: string], { minutes: number }>(
  'test.sweeps_age',
  `select (extract(epoch from now() - ran_at) / 60)::float8 as "minutes" from job_runs where name = $1::text`,
)
/** Makes all keys unused for 200 days, with a notice that is 20 days old. */
const neglectKeys = statement<[]>(
  'test.sweeps_neglect_keys',
  `update api_keys set created_at = now() - interval '200 days', last_used_at = now() - interval '200 days', inactivity_notice_at = now() - interval '20 days'`,
)

/** Returns how often the sweep of idle keys ran in a process. */
async function runsIn(process: GatewayProcess): Promise<number> {
  const { text } = await ask(`${process.baseUrl}/metrics`, { authorization: `Bearer ${token}` })
  return parsed(text).get(`brigade_job_runs_total{job="${job}",outcome="ok"}`) ?? Number.NaN
}

const ends: (() => Promise<unknown> | undefined)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

describe.runIf(!onPostgres)('processes that live for less than the period of a sweep', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-sweeps-'))
  const start = async (): Promise<GatewayProcess> => {
    const process = await startProcess(settings, folder)
    ends.push(() => process.kill())
    return process
  }
  const inDatabase = async <T>(work: (db: Db) => Promise<T>): Promise<T> => {
    const db = await openEmbedded(join(folder, 'db'), { clock: systemClock, log: silentLog })
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  }
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  test('EDGE-18 the hourly sweep of idle keys runs although no process of the gateway lives for an hour', async () => {
    const first = await start()
    const key = /API key +(\S+)/.exec(first.output())?.[1] ?? ''
    expect((await call(first, key, 'GET', '/v1/usage')).status).toBe(200)
    await first.terminate()
    // The first start has recorded when the period begins. The process ended before an hour was over.
    await inDatabase(async db => {
      expect((await db.one(readAge, job)).minutes).toBeLessThan(10)
      await db.exec(neglectKeys)
      await db.exec(setAges, 61)
    })
    const second = await start()
    await until(async () => (await runsIn(second)) === 1, 'the sweep that is due')
    const refused = await call(second, key, 'GET', '/v1/usage')
    expect([refused.status, refused.json.error.code]).toEqual([401, 'key_disabled_inactive'])
    await second.terminate()
    await inDatabase(async db => expect((await db.one(readAge, job)).minutes).toBeLessThan(10))
  })
})

describe.runIf(onPostgres)('a sweep in several processes', () => {
  test('EDGE-18 when three processes find a sweep due, only one of them runs it', async () => {
    const fleet = await startFleet(settings)
    ends.push(() => fleet.stop())
    await (await fleet.start()).terminate()
    await fleet.db.exec(setAges, 7 * 60)
    const processes = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    const startedMs = systemClock.monotonicMs()
    const runs = async (): Promise<number> => (await Promise.all(processes.map(runsIn))).reduce((sum, count) => sum + count, 0)
    await until(async () => (await runs()) >= 1, 'the sweep that is due')
    // Each process looks for due sweeps within five seconds of its start.
    await until(() => systemClock.monotonicMs() - startedMs > 6000, 'the first look of each process')
    expect(await runs()).toBe(1)
  })
})
