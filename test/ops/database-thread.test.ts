import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { checkInvariants } from '../../src/gateway/limits/invariants.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { statement } from '../../src/platform/db/db.ts'
import { openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, fleetAnswer, tokenUinr } from '../harness/fleet.ts'
import { fixedCostConfig, type GatewayProcess, startProcess } from '../harness/process.ts'
import { until } from '../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

const preload = fileURLToPath(new URL('../harness/kill-database-thread.mjs', import.meta.url))
const callTokens = 10
const sums = statement<[], { events: bigint; valueUinr: string }>(
  'test.thread_sums',
  `select count(*) as "events", coalesce(sum(value_uinr), 0)::text as "valueUinr" from usage_events`,
)
const setAgentBudget = { monthly_budget_inr: 100 }

// These tests are about the thread of the embedded database, so they run only with that database.
describe.skipIf(onPostgres)('the thread of the embedded database', () => {
  let upstream: UpstreamServer
  let folder: string
  let gateway: GatewayProcess
  let key: string
  let answered = 0
  const start = async (): Promise<void> => {
    gateway = await startProcess({ CONFIG_FILE: fixedCostConfig(upstream.url), JOURNAL_FLUSH_MS: '50' }, folder, undefined, preload)
  }
  beforeAll(async () => {
    upstream = await startUpstream()
    upstream.script(fleetAnswer)
  })
  afterAll(() => upstream?.close())
  afterEach(async () => {
    await gateway?.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const begin = async (): Promise<void> => {
    folder = mkdtempSync(join(tmpdir(), 'brigade-thread-'))
    answered = 0
    await start()
    key = /API key +(\S+)/.exec(gateway.output())?.[1] ?? ''
  }
  /** Makes a call that costs ten tokens. Returns whether it was answered. */
  const charge = async (token: string): Promise<boolean> => {
    const reply = await chat(gateway, token, callTokens).catch(() => null)
    if (reply?.status === 200) answered++
    return reply?.status === 200
  }
  /** Returns whether a request that needs the database is answered. */
  const isDatabaseThere = async (): Promise<boolean> => (await call(gateway, key, 'GET', '/v1/me/agents').catch(() => null))?.status === 200

  /** Stops the gateway and compares the spend in the database with the answered calls. */
  const expectExact = async (): Promise<void> => {
    expect(await gateway.terminate()).toBe(0)
    const db = await openEmbedded(join(folder, 'db'), { clock: systemClock, log: silentLog })
    try {
      expect(await db.one(sums)).toEqual({ events: BigInt(answered), valueUinr: String(BigInt(answered * callTokens) * tokenUinr) })
      expect(await checkInvariants(db)).toEqual([])
    } finally {
      await db.close()
    }
  }

  test('EDGE-21 when the thread dies under load, calls continue without help on the same folder, and every call is charged once', async () => {
    await begin()
    const made = await call(gateway, key, 'POST', '/v1/me/agents', { name: 'spender' })
    await call(gateway, key, 'POST', `/v1/me/agents/${made.json.id}/budget`, setAgentBudget)
    const token = String((await call(gateway, key, 'POST', `/v1/me/agents/${made.json.id}/token`, {})).json.access_token)
    let isOver = false
    const callers = Array.from({ length: 6 }, async () => {
      while (!isOver) await charge(token)
    })
    for (let losses = 1; losses <= 3; losses++) {
      const target = answered + 20
      await until(() => answered >= target, `calls before loss ${losses}`)
      gateway.child.kill('SIGUSR2')
      await until(() => gateway.output().split('embedded_database_lost').length > losses, `loss ${losses}`)
      await until(isDatabaseThere, `the database after loss ${losses}`)
    }
    const target = answered + 20
    await until(() => answered >= target, 'calls after the last loss')
    isOver = true
    await Promise.all(callers)
    expect(gateway.output().split('embedded_database_replaced').length - 1).toBe(3)
    await expectExact()
  })

  test('EDGE-21 when the thread dies repeatedly, the process ends and says why, and the next start has every charge', async () => {
    await begin()
    const exited = new Promise<number | null>(done => gateway.child.once('exit', done))
    const isOver = (): boolean => gateway.child.exitCode !== null
    for (let losses = 1; losses <= 6; losses++) {
      await until(async () => isOver() || ((await charge(key)) && (await isDatabaseThere())), `a call before loss ${losses}`)
      gateway.child.kill('SIGUSR2')
      await until(() => isOver() || gateway.output().split('embedded_database_lost').length > losses, `loss ${losses}`)
    }
    expect(await exited).toBe(1)
    expect(gateway.output()).toContain('brigade: the embedded database cannot go on')
    expect(gateway.output()).toContain('more than 5 times within 60 s')
    await start()
    expect(await charge(key)).toBe(true)
    await expectExact()
  })
})
