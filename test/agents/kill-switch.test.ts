import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { CallCutError } from '../../src/platform/loop/inflight.ts'
import { testDatabase } from '../harness/database.ts'
import { newCaller, type Process, startProcess, thrownBy, until } from './setup.ts'

const database = await testDatabase()
const onPostgres = database.kind === 'postgres'
let process: Process

beforeEach(async () => {
  process = await startProcess(database.db)
})
afterEach(() => process.stop())
afterAll(() => database.dispose())

const revoked = { errorName: 'invalid_api_key', options: { extra: { reason: 'agent_revoked' } } }
const setParent = statement<[childId: number, parentId: number]>('test.set_parent_of', 'update agents set parent_id = $2::int where id = $1::int')
const revokeSilently = statement<[agentId: number]>(
  'test.revoke_silently',
  `update agents set status = 'revoked', revoked_at = clock_timestamp(), epoch = epoch + 1, epoch_at = clock_timestamp() where id = $1::int`,
)
const insertNewsSilently = statement<[ref: string, epoch: number]>(
  'test.insert_revoke_silently',
  `insert into control_log (kind, ref, epoch) values ('agent_revoked', $1::text, $2::int)`,
)

async function newToken(on: Process = process) {
  const caller = await newCaller(on)
  const { agent } = await on.agents.createOrReuse(caller.principal, 'worker')
  const { token } = await on.agents.tokens.mint(caller.principal, agent.id)
  return { ...caller, agentId: agent.id, token }
}

function running(on: Process, agentId: number, keyId: number): AbortController {
  const controller = new AbortController()
  on.inflight.register({ agentIds: [agentId], keyId }, controller)
  return controller
}

test('when a revocation returns, it has already cut the running calls and the next call is refused', async () => {
  const { token, agentId, keyId, orgId } = await newToken()
  const principal = await process.agents.tokens.principalOf(token)
  const call = running(process, agentId, keyId)
  await process.agents.revoke(orgId, agentId, 'operator')
  expect(call.signal.reason).toEqual(new CallCutError('agent_revoked'))
  expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(revoked)
  expect(await thrownBy(() => process.agents.tokens.recheck(principal))).toMatchObject(revoked)
})

test('the revocation of a key cuts the calls of its agents', async () => {
  const { agentId, keyId, orgId } = await newToken()
  const call = running(process, agentId, keyId)
  await process.keys.revoke(orgId, keyId)
  expect(call.signal.reason).toEqual(new CallCutError('key_revoked'))
})

test("a child's token ends when its parent is revoked", async () => {
  const caller = await newCaller(process)
  const { agent: parent } = await process.agents.createOrReuse(caller.principal, 'parent')
  const { agent: child } = await process.agents.createOrReuse(caller.principal, 'child')
  await process.db.exec(setParent, child.id, parent.id)
  const { token } = await process.agents.tokens.mint(caller.principal, child.id)
  expect(await process.agents.tokens.principalOf(token)).toMatchObject({ ancestorIds: [parent.id] })
  await process.agents.revoke(caller.orgId, parent.id, 'operator')
  expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(revoked)
})

test('events that arrive late, twice or in the wrong order have no effect', async () => {
  const { agentId } = await newToken()
  process.agents.killSwitch.check(agentId, 1, [])
  let heard = 0
  process.controlLog.on(() => heard++)
  for (const epoch of [3, 2, 3]) await process.db.exec(insertNewsSilently, String(agentId), epoch)
  await until(() => heard >= 3, 'the three rows by poll')
  expect(await thrownBy(() => process.agents.killSwitch.check(agentId, 2, []))).toMatchObject(revoked)
  process.agents.killSwitch.check(agentId, 3, [])
})

test('a process that starts after the revocation knows it without an event', async () => {
  const { token, agentId } = await newToken()
  await process.db.exec(revokeSilently, agentId)
  const late = await startProcess(database.db, { pollMs: 3_600_000 })
  try {
    expect(await thrownBy(() => late.agents.tokens.principalOf(token))).toMatchObject(revoked)
  } finally {
    await late.stop()
  }
})

test('a process that has not read the control log for too long refuses agent tokens and cuts their calls. Both work again after the next read', async () => {
  await process.stop()
  process = await startProcess(database.db, { pollMs: 3_600_000 })
  const { token, agentId, keyId } = await newToken()
  await process.agents.tokens.principalOf(token)
  process.clock.advance(29_000)
  await process.agents.tokens.principalOf(token)
  const [agentCall, keyCall] = [running(process, agentId, keyId), new AbortController()]
  process.inflight.register({ agentIds: [], keyId }, keyCall)
  process.clock.advance(10_000)
  expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject({ errorName: 'database_unavailable', status: 503 })
  await until(() => agentCall.signal.aborted, 'the watch that cuts stale calls')
  expect(agentCall.signal.reason).toEqual(new CallCutError('agent_stale'))
  expect(keyCall.signal.aborted).toBe(false)
  await process.controlLog.change(async () => ({ value: null, news: [{ kind: 'wake', ref: '1' }] }))
  await until(() => !process.agents.killSwitch.isStale(), 'a fresh read after the notification')
  expect(await process.agents.tokens.principalOf(token)).toMatchObject({ agentId })
})

test.runIf(onPostgres)('another process refuses a revoked agent and cuts its calls', async () => {
  const otherDb = await database.open()
  const other = await startProcess(otherDb, { pollMs: 3_600_000 })
  try {
    const { token, agentId, keyId, orgId } = await newToken()
    expect(await other.agents.tokens.principalOf(token)).toMatchObject({ agentId })
    const call = running(other, agentId, keyId)
    await process.agents.revoke(orgId, agentId, 'operator')
    await until(() => call.signal.aborted, 'the cut in the other process')
    expect(await thrownBy(() => other.agents.tokens.principalOf(token))).toMatchObject(revoked)
  } finally {
    await other.stop()
    await otherDb.close()
  }
})

test.runIf(onPostgres)('another process whose notifications are lost reads a revocation with its next poll', async () => {
  const otherDb = await database.open()
  const deafDb: Db = {
    kind: otherDb.kind,
    many: otherDb.many.bind(otherDb),
    maybe: otherDb.maybe.bind(otherDb),
    one: otherDb.one.bind(otherDb),
    exec: otherDb.exec.bind(otherDb),
    tx: fn => otherDb.tx(fn),
    listen: async () => async () => {},
    notify: (channel, payload) => otherDb.notify(channel, payload),
    script: sql => otherDb.script(sql),
    roundTrips: 0,
    close: () => otherDb.close(),
  }
  const other = await startProcess(deafDb, { pollMs: 50 })
  try {
    const { agentId, keyId, orgId } = await newToken()
    const call = running(other, agentId, keyId)
    await process.agents.revoke(orgId, agentId, 'operator')
    await until(() => call.signal.aborted, 'the cut by poll')
  } finally {
    await other.stop()
    await otherDb.close()
  }
})
