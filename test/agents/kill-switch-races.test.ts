import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { KillSwitch } from '../../src/agents/kill-switch.ts'
import { statement } from '../../src/platform/db/db.ts'
import { Inflight } from '../../src/platform/loop/inflight.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { onPostgres, testDatabase } from '../harness/database.ts'
import { movableClock, newCaller, type Process, startProcess, thrownBy, until } from './setup.ts'

const revoked = { errorName: 'invalid_api_key', options: { extra: { reason: 'agent_revoked' } } }
const minuteMs = 60_000

describe('a revocation during a mint, a start, and the passing of time', () => {
  let database: Awaited<ReturnType<typeof testDatabase>>
  let process: Process
  beforeAll(async () => {
    database = await testDatabase()
  })
  beforeEach(async () => {
    process = await startProcess(database.db)
  })
  afterEach(() => process.stop())
  afterAll(() => database.dispose())

  const newAgent = async () => {
    const caller = await newCaller(process)
    const { agent } = await process.agents.createOrReuse(caller.principal, 'worker')
    return { ...caller, agentId: agent.id }
  }

  test('a token that is minted during the revocation of its agent never works, on this process or on a process that starts later', async () => {
    const { principal, orgId, agentId } = await newAgent()
    const { signingKeys, tokens } = process.agents
    const current = signingKeys.current.bind(signingKeys)
    // The revocation runs after the look-up of the agent and before the signature.
    signingKeys.current = async () => {
      signingKeys.current = current
      await process.agents.revoke(orgId, agentId, 'operator')
      return current()
    }
    const { token } = await tokens.mint(principal, agentId)
    expect(await thrownBy(() => tokens.principalOf(token))).toMatchObject(revoked)
    const late = await startProcess(database.db, { pollMs: 3_600_000 })
    expect(await thrownBy(() => late.agents.tokens.principalOf(token))).toMatchObject(revoked)
    await late.stop()
  })

  test('a hundred mints run during a revocation, and afterwards none of their tokens works', async () => {
    const { principal, orgId, agentId } = await newAgent()
    const { tokens } = process.agents
    const mints = Array.from({ length: 100 }, () => tokens.mint(principal, agentId).catch((error: unknown) => error))
    await process.agents.revoke(orgId, agentId, 'operator')
    for (const minted of await Promise.all(mints)) {
      if (minted instanceof Error) {
        expect(minted).toMatchObject({ errorName: 'agent_revoked', status: 409 })
      } else expect(await thrownBy(() => tokens.principalOf((minted as { token: string }).token))).toMatchObject(revoked)
    }
    expect(await thrownBy(() => tokens.mint(principal, agentId))).toMatchObject({ errorName: 'agent_revoked', status: 409 })
  })

  test('a process remembers a revocation until every token of the agent has expired, and then forgets it', async () => {
    const { principal, orgId, agentId } = await newAgent()
    const { tokens } = process.agents
    const { token } = await tokens.mint(principal, agentId)
    const clock = movableClock()
    const watches: (() => void)[] = []
    const watched = {
      ...clock,
      every(_everyMs: number, fn: () => void) {
        watches.push(fn)
        return () => {}
      },
    }
    const killSwitch = new KillSwitch({
      db: database.db,
      clock: watched,
      log: silentLog,
      controlLog: process.controlLog,
      inflight: new Inflight(),
      staleMs: Number.POSITIVE_INFINITY,
      tokenTtlMs: 15 * minuteMs,
    })
    await killSwitch.start()
    await process.agents.revoke(orgId, agentId, 'operator')
    const passed = (minutes: number): void => {
      clock.advance(minutes * minuteMs)
      process.clock.advance(minutes * minuteMs)
      for (const watch of watches) watch()
    }
    const stands = () => killSwitch.stands({ id: agentId, epoch: 1, ancestorIds: [] })
    const standsAsAncestor = () => killSwitch.stands({ id: agentId + 1000, epoch: 1, ancestorIds: [agentId] })
    for (const minutes of [0, 14, 5]) {
      passed(minutes)
      expect([stands(), standsAsAncestor()]).toEqual([false, false])
    }
    // The token itself has expired by now.
    expect(await thrownBy(() => tokens.verify(token))).toMatchObject({ options: { extra: { reason: 'token_expired' } } })
    passed(2)
    expect([stands(), standsAsAncestor()]).toEqual([true, true])
    // Nobody can mint tokens for the agent any more, so the revocation need not be remembered.
    expect(await thrownBy(() => tokens.mint(principal, agentId))).toMatchObject({ errorName: 'agent_revoked' })
    killSwitch.stop()
  })

  test.runIf(onPostgres)('a revocation that commits after a starting process has read the epochs still reaches that process', async () => {
    const { principal, agentId } = await newAgent()
    const { token } = await process.agents.tokens.mint(principal, agentId)
    const otherDb = await database.open()
    let commit = (): void => undefined
    const started = new Promise<void>(resolve => {
      commit = resolve
    })
    const revoking = process.controlLog.change(async tx => {
      const { epoch } = await tx.one(revokeOne, agentId)
      await started
      return { value: null, news: [{ kind: 'agent_revoked', ref: String(agentId), epoch }] }
    })
    const late = await startProcess(otherDb, { pollMs: 3_600_000 })
    try {
      expect(await late.agents.tokens.principalOf(token)).toMatchObject({ agentId })
      const call = new AbortController()
      late.inflight.register({ agentIds: [agentId], keyId: null }, call)
      commit()
      await revoking
      await until(() => call.signal.aborted, 'the cut')
      expect(await thrownBy(() => late.agents.tokens.principalOf(token))).toMatchObject(revoked)
    } finally {
      await late.stop()
      await otherDb.close()
    }
  })
})

const revokeOne = statement<[agentId: number], { epoch: number }>(
  'test.revoke_one',
  `update agents set status = 'revoked', revoked_at = clock_timestamp(), epoch = epoch + 1, epoch_at = clock_timestamp() where id = $1::int returning epoch`,
)

describe('a revocation between the steps of a call', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const countEvents = statement<[agentId: number], { count: bigint }>(
    'test.count_events',
    'select count(*) as count from usage_events where agent_id = $1::int',
  )
  const chat = (token: string) => app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }] }, { token })
  const revoke = async (id: number) => expect((await app.call('POST', `/v1/me/agents/${id}/revoke`, {})).status).toBe(200)
  const expectNothing = async (id: number, reply: Awaited<ReturnType<typeof chat>>): Promise<void> => {
    expect([reply.status, reply.json.error.code, reply.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
    expect(app.alpha.requests).toHaveLength(0)
    await app.gateway.app.limits.flushNow()
    expect(Number((await app.db.one(countEvents, id)).count)).toBe(0)
  }

  test('a revocation between token check and admission, or between admission and dial, refuses the call. No provider is dialed, and nothing is charged', async () => {
    const { limits } = app.gateway.app
    for (const moment of ['before', 'behind']) {
      const { id, token } = await app.newAgent(`revoked ${moment} the admission`)
      const admit = limits.admit.bind(limits)
      limits.admit = async request => {
        limits.admit = admit
        if (moment === 'before') await revoke(id)
        const permit = await admit(request)
        if (moment === 'behind') await revoke(id)
        return permit
      }
      await expectNothing(id, await chat(token))
    }
  })

  test('a call whose key is revoked during its admission is refused too', async () => {
    const { key, keyId } = await app.newKey()
    const { limits, keys } = app.gateway.app
    const admit = limits.admit.bind(limits)
    limits.admit = async request => {
      limits.admit = admit
      const permit = await admit(request)
      await keys.revoke(app.orgId, keyId)
      return permit
    }
    const reply = await chat(key)
    expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
    expect(app.alpha.requests.every(({ aborted }) => aborted)).toBe(true)
  })
})
