import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, chat, type Fleet, fleetAnswer, startFleet, tokenUinr } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

const newestProcess = statement<[], { id: bigint }>('test.doubt_newest_process', `select max(id) as "id" from processes`)
const stateOf = statement<[id: bigint], { state: string }>('test.doubt_state', `select state as "state" from processes where id = $1::bigint`)
const ageBeat = statement<[id: bigint]>('test.doubt_age_beat', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)
const leasedBy = statement<[processId: bigint, metric: string, scopeId: string], { amount: bigint }>(
  'test.doubt_leased_by',
  `select coalesce(sum(l.amount), 0)::bigint as "amount" from leases l join counters c on c.id = l.counter_id
   where l.process_id = $1::bigint and c.metric = $2::text and c.scope = 'key' and c.scope_id = $3::text`,
)
const acts = statement<[], { act: string; actor: string; target: string | null; outcome: string | null }>(
  'test.doubt_acts',
  `select act as "act", actor_kind as "actor", target as "target", outcome as "outcome" from audit_log where org_id is null order by id`,
)
const inr = (tokens: number): number => (tokens * Number(tokenUinr)) / 1e6

describe.runIf(onPostgres)('a disk that is gone', () => {
  let fleet: Fleet
  let survivor: GatewayProcess
  beforeAll(async () => {
    fleet = await startFleet()
    survivor = await fleet.start()
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })

  interface Dead {
    readonly id: bigint
    /** The present place of its journal, where no process reads. */
    readonly journal: string
  }

  /** Starts a process that serves `use`, kills it, and removes its disk, as if this had happened an hour ago. */
  async function loseOne(env: Readonly<Record<string, string>>, use: (process: GatewayProcess) => Promise<void>): Promise<Dead> {
    const folder = fleet.newFolder()
    const process = await fleet.start(env, folder)
    const { id } = await fleet.db.one(newestProcess)
    await use(process)
    await process.kill()
    const journal = join(fleet.newFolder(), 'away')
    renameSync(join(folder, 'journal'), journal)
    mkdirSync(join(folder, 'journal'))
    await fleet.db.exec(ageBeat, id)
    return { id, journal }
  }

  /** Brings the journal back under a new path, without the socket of its owner, and starts a process there that reads it. */
  async function bringBack({ id, journal }: Dead): Promise<void> {
    const folder = fleet.newFolder()
    for (const name of readdirSync(journal)) if (name.endsWith('.sock')) rmSync(join(journal, name))
    renameSync(journal, join(folder, 'journal'))
    const heir = await fleet.start({}, folder)
    await until(async () => (await fleet.db.one(stateOf, id)).state === 'closed')
    await heir.kill()
  }

  /** Returns how many calls of one key are admitted until calls are refused, all with `code`. */
  async function servedUntil(key: string, code: string): Promise<number> {
    for (let served = 0; ; ) {
      const replies = await Promise.all(Array.from({ length: 8 }, () => chat(survivor, key, 1)))
      const refused = replies.filter(reply => reply.status !== 200)
      served += replies.length - refused.length
      for (const reply of refused) expect(reply.json?.error?.code).toBe(code)
      if (refused.length === replies.length) return served
    }
  }

  test('leased requests of a daily limit stay unused until the journal of the lost disk is read, and then the limit is exact', {
    timeout: 90_000,
  }, async () => {
    const { id: keyId, key } = await fleet.newKey({ daily: 90 })
    const dead = await loseOne({ JOURNAL_FLUSH_MS: '60000' }, async process => {
      for (let i = 0; i < 3; i++) expect((await chat(process, key, 1)).status).toBe(200)
    })
    const { amount } = await fleet.db.one(leasedBy, dead.id, 'daily', String(keyId))
    expect(amount).toBeGreaterThan(3n)
    const before = await servedUntil(key, 'daily_limit_reached')
    expect(before).toBe(90 - Number(amount))
    expect(await fleet.violations()).toEqual([])
    await bringBack(dead)
    expect(await servedUntil(key, 'daily_limit_reached')).toBe(90 - 3 - before)
    expect((await fleet.usage()).filter(row => row.keyId === keyId)).toHaveLength(90)
    expect(await fleet.violations()).toEqual([])
  })

  test('leased requests of a minute of a process with a lost disk stay unused', { timeout: 90_000 }, async () => {
    for (;;) {
      const minute = Math.floor(Date.now() / 60_000)
      const { id: keyId, key } = await fleet.newKey({ rpm: 90 })
      const dead = await loseOne({}, async process => {
        for (let i = 0; i < 3; i++) expect((await chat(process, key, 1)).status).toBe(200)
      })
      const { amount } = await fleet.db.one(leasedBy, dead.id, 'rpm', String(keyId))
      const served = await servedUntil(key, 'rate_limit_exceeded')
      if (Math.floor(Date.now() / 60_000) !== minute) continue
      expect(amount).toBeGreaterThan(0n)
      expect(served).toBeLessThanOrEqual(90 - Number(amount))
      expect(served).toBeGreaterThanOrEqual(90 - Number(amount) - 3)
      break
    }
    expect(await fleet.violations()).toEqual([])
  })

  test('brigade doctor reports a process with a lost disk, --release gives up its leases, and a journal that appears later is counted once', {
    timeout: 90_000,
  }, async () => {
    const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(3000) })
    const budget = async () => (await call(survivor, key, 'GET', '/v1/me/budgets')).json.budgets[0]
    const dead = await loseOne({ JOURNAL_FLUSH_MS: '60000' }, async process => {
      for (let i = 0; i < 3; i++) expect((await chat(process, key, 50)).status).toBe(200)
    })
    const { in_doubt_inr } = await budget()
    expect(in_doubt_inr).toBeGreaterThan(0)
    const report = await fleet.command('doctor')
    expect(report.out).toContain(`warning process ${dead.id}: was last seen 3`)
    expect(report.out).toContain(`₹${in_doubt_inr} of one`)
    expect(report.out).toContain(`brigade doctor --release ${dead.id}`)

    const { id: alive } = await fleet.db.one(newestProcess)
    expect(await fleet.command('doctor', '--release', '999999')).toMatchObject({ code: 1, err: expect.stringContaining('there is no process 999999') })
    const living = (
      await fleet.db.many(statement<[], { id: bigint }>('test.doubt_living', `select id as "id" from processes where state = 'live' order by id limit 1`))
    )[0]
    expect(alive).toBeGreaterThan(living?.id ?? 0n)
    expect(await fleet.command('doctor', '--release', String(living?.id))).toMatchObject({ code: 1, err: expect.stringContaining('it may still serve') })

    const released = await fleet.command('doctor', '--release', String(dead.id), '--json')
    expect([released.code, JSON.parse(released.out)]).toEqual([0, { process: Number(dead.id), released: expect.any(Number) }])
    expect((await fleet.db.many(acts)).filter(line => line.target === `process=${dead.id}`)).toEqual([
      { act: 'releaseProcess', actor: 'operator', target: `process=${dead.id}`, outcome: 'ok' },
    ])
    expect(await budget()).toMatchObject({ spent_inr: 0, held_inr: 0, in_doubt_inr: 0, remaining_inr: inr(3000) })
    expect((await fleet.command('doctor')).out).not.toContain(`process ${dead.id}:`)

    // Now the whole amount can be spent.
    for (let i = 0; i < 3; i++) expect((await chat(survivor, key, 1000)).status).toBe(200)
    expect((await chat(survivor, key, 1)).json.error.code).toBe('budget_exceeded')
    await bringBack(dead)
    const rows = (await fleet.usage()).filter(row => row.keyId === keyId)
    expect(rows).toHaveLength(6)
    expect(await budget()).toMatchObject({ spent_inr: inr(3150), held_inr: 0, in_doubt_inr: 0, remaining_inr: 0 })
    expect(await fleet.violations()).toEqual([])
  })
})
