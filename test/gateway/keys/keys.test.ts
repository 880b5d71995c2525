import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { createKeys } from '../../../src/gateway/keys/keys.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { hashKeyText } from '../../../src/platform/security/secrets.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { newCaller, type Process, startProcess, thrownBy, until } from '../../agents/setup.ts'
import { testDatabase } from '../../harness/database.ts'

const database = await testDatabase()
const onPostgres = database.kind === 'postgres'
let process: Process

beforeEach(async () => {
  process = await startProcess(database.db)
})
afterEach(() => process.stop())
afterAll(() => database.dispose())

const dayMs = 24 * 3600_000
const disableForInactivity = statement<[keyId: number]>(
  'test.keys_disable_for_inactivity',
  `update api_keys set enabled = false, disabled_reason = 'inactivity' where id = $1::int`,
)
const removeMember = statement<[orgId: number, userId: number]>(
  'test.remove_member',
  `update org_members set status = 'removed' where org_id = $1::int and user_id = $2::int`,
)
const setRole = statement<[orgId: number, userId: number, role: string]>(
  'test.set_role',
  `update org_members set role = $3::text where org_id = $1::int and user_id = $2::int`,
)
const lastUsed = statement<[keyId: number], { at: Date | null }>(
  'test.last_used',
  `select coalesce(idle_from, last_used_at) as "at" from api_keys where id = $1::int`,
)
const columnsOf = statement<[keyId: number], { all: string }>('test.key_row_as_text', `select row_to_json(k)::text as "all" from api_keys k where id = $1::int`)

test('a created key is found by its text, with its owner, limits and role', async () => {
  const { orgId, userId } = await newCaller(process)
  const created = await process.keys.create({ orgId, userId, workspaceId: null, name: '  ci  ', scope: 'inference', dailyLimit: 50 })
  expect(created).toMatchObject({
    name: 'ci',
    scope: 'inference',
    tier: 'standard',
    rpmLimit: 600,
    dailyLimit: 50,
    expiresAt: null,
    prefix: created.key.slice(0, 12),
  })
  expect(await process.keys.findForAuth(created.key)).toEqual({
    id: created.id,
    orgId,
    userId,
    role: 'owner',
    workspaceId: null,
    name: 'ci',
    scope: 'inference',
    limits: { rpmLimit: 600, dailyLimit: 50 },
    isTrial: false,
    capabilities: [],
    policies: [],
    state: 'active',
    expiresAtMs: null,
    secrets: { current: hashKeyText(created.key), previous: null },
  })
})

test('a key without a user has no role', async () => {
  const { orgId } = await newCaller(process)
  const { key } = await process.keys.create({ orgId, userId: null, workspaceId: null, name: 'robot', scope: 'full', rpmLimit: null })
  expect(await process.keys.findForAuth(key)).toMatchObject({ userId: null, role: null, state: 'active', limits: { rpmLimit: null, dailyLimit: null } })
})

test('the text of a key is not stored anywhere', async () => {
  const { key, keyId } = await newCaller(process)
  const { all } = await process.db.one(columnsOf, keyId)
  expect(all).not.toContain(key)
  expect(all).not.toContain(key.slice(13))
})

test('a key that was found before is found again without a database query, as the same object', async () => {
  const { key } = await newCaller(process)
  const first = await process.keys.findForAuth(key)
  const before = process.db.roundTrips
  expect(process.keys.findForAuth(key)).toBe(first)
  expect(process.db.roundTrips).toBe(before)
})

test('an unknown key, and a text that does not have the form of a key, are not found', async () => {
  expect(await process.keys.findForAuth('br-00000000000000000000000000000000')).toBeNull()
  expect(process.keys.findForAuth('nonsense')).toBeNull()
})

test('a revoked key is refused immediately and its calls are cut', async () => {
  const { key, keyId, orgId } = await newCaller(process)
  await process.keys.findForAuth(key)
  const running = new AbortController()
  process.inflight.register({ agentIds: [], keyId }, running)
  await process.keys.revoke(orgId, keyId)
  expect(running.signal.aborted).toBe(true)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'revoked' })
  await process.keys.revoke(orgId, keyId)
})

test('a key of another organisation cannot be changed', async () => {
  const [mine, theirs] = [await newCaller(process), await newCaller(process)]
  await expect(process.keys.revoke(mine.orgId, theirs.keyId)).rejects.toMatchObject({ errorName: 'not_found' })
  await expect(process.keys.setEnabled(mine.orgId, theirs.keyId, false)).rejects.toMatchObject({ errorName: 'not_found' })
  await expect(process.keys.setLimits(mine.orgId, theirs.keyId, { rpmLimit: 1, dailyLimit: null })).rejects.toMatchObject({ errorName: 'not_found' })
  expect(await process.keys.findForAuth(theirs.key)).toMatchObject({ state: 'active' })
})

test('a person can disable and enable a key', async () => {
  const { key, keyId, orgId } = await newCaller(process)
  await process.keys.findForAuth(key)
  await process.keys.setEnabled(orgId, keyId, false)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'disabled' })
  await process.keys.setEnabled(orgId, keyId, true)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'active' })
})

test('a key that was disabled for inactivity has its own state, and enabling it restarts its idle time', async () => {
  const { key, keyId, orgId } = await newCaller(process)
  await process.db.exec(disableForInactivity, keyId)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'disabled_inactive' })
  await process.keys.setEnabled(orgId, keyId, true)
  expect((await process.db.one(lastUsed, keyId)).at).not.toBeNull()
})

test('new limits apply from the next call on', async () => {
  const { key, keyId, orgId } = await newCaller(process)
  await process.keys.findForAuth(key)
  await process.keys.setLimits(orgId, keyId, { rpmLimit: 3, dailyLimit: null })
  expect(await process.keys.findForAuth(key)).toMatchObject({ limits: { rpmLimit: 3, dailyLimit: null } })
})

test('an expired key is refused exactly from its expiry on, even while its record is cached', async () => {
  const { orgId } = await newCaller(process)
  const { key } = await process.keys.create({ orgId, userId: null, workspaceId: null, name: 'short', scope: 'full', expiresDays: 1 })
  process.clock.advance(dayMs - 10_000)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'active' })
  process.clock.advance(10_000)
  expect(process.keys.findForAuth(key)).toMatchObject({ state: 'expired' })
})

test.each([0, 366, 1.5, Number.NaN])('a key life of %s days is refused', async expiresDays => {
  const { orgId } = await newCaller(process)
  await expect(process.keys.create({ orgId, userId: null, workspaceId: null, name: 'n', scope: 'full', expiresDays })).rejects.toMatchObject({
    errorName: 'bad_request',
  })
})

test.each([-1, 1.5, Number.NaN, 2 ** 31])('the limit %s is refused', async rpmLimit => {
  const { orgId } = await newCaller(process)
  await expect(process.keys.create({ orgId, userId: null, workspaceId: null, name: 'n', scope: 'full', rpmLimit })).rejects.toMatchObject({
    errorName: 'bad_request',
  })
})

test('two active keys cannot have the same name; the name of a revoked or expired key can be used again', async () => {
  const { orgId, keyId } = await newCaller(process)
  const again = (name: string, expiresDays?: number) =>
    process.keys.create({ orgId, userId: null, workspaceId: null, name, scope: 'full', ...(expiresDays === undefined ? {} : { expiresDays }) })
  await expect(again('main')).rejects.toMatchObject({ errorName: 'duplicate_key_name' })
  await process.keys.revoke(orgId, keyId)
  await again('main')
  await again('brief', 1)
  await expect(again('brief')).rejects.toMatchObject({ errorName: 'duplicate_key_name' })
  process.clock.advance(dayMs + 1)
  await again('brief')
})

test("when a member leaves, their keys are revoked; when a member's role changes, it changes for their keys too", async () => {
  const { key, orgId, userId } = await newCaller(process)
  await process.keys.findForAuth(key)
  await process.db.exec(setRole, orgId, userId, 'admin')
  await process.controlLog.change(async () => ({ value: null, news: [{ kind: 'member_changed', ref: `${orgId}:${userId}` }] }))
  expect(await process.keys.findForAuth(key)).toMatchObject({ role: 'admin', state: 'active' })
  await process.db.exec(removeMember, orgId, userId)
  await process.controlLog.change(async () => ({ value: null, news: [{ kind: 'member_changed', ref: `${orgId}:${userId}` }] }))
  expect(await process.keys.findForAuth(key)).toMatchObject({ role: null, state: 'revoked' })
})

test('when the news of a change is lost, the change is seen when the cached record expires', async () => {
  const { key, keyId } = await newCaller(process)
  await process.keys.findForAuth(key)
  await process.db.exec(disableForInactivity, keyId)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'active' })
  process.clock.advance(30_001)
  expect(await process.keys.findForAuth(key)).toMatchObject({ state: 'disabled_inactive' })
})

test('uses of keys are written in one batch, and the last use never moves back', async () => {
  const [a, b] = [await newCaller(process), await newCaller(process)]
  const recordA = await process.keys.findForAuth(a.key)
  const recordB = await process.keys.findForAuth(b.key)
  if (recordA === null || recordB === null) throw new Error('the keys exist')
  process.keys.touch(recordA)
  process.keys.touch(recordB)
  const before = process.db.roundTrips
  await process.keys.use.flush()
  expect(process.db.roundTrips).toBe(before + 1)
  const at = (await process.db.one(lastUsed, a.keyId)).at
  expect(at).not.toBeNull()
  expect((await process.db.one(lastUsed, b.keyId)).at).not.toBeNull()
  const stop = process.keys.use.start(silentLog)
  process.clock.advance(-60_000)
  process.keys.touch(recordA)
  await stop()
  expect((await process.db.one(lastUsed, a.keyId)).at).toEqual(at)
})

test.runIf(onPostgres)('another process refuses a revoked key and cuts its calls', async () => {
  const otherDb = await database.open()
  const other = await startProcess(otherDb)
  try {
    const { key, keyId, orgId } = await newCaller(process)
    expect(await other.keys.findForAuth(key)).toMatchObject({ state: 'active' })
    const running = new AbortController()
    other.inflight.register({ agentIds: [], keyId }, running)
    await process.keys.revoke(orgId, keyId)
    await until(() => running.signal.aborted, 'the cut in the other process')
    expect(await other.keys.findForAuth(key)).toMatchObject({ state: 'revoked' })
    expect(await thrownBy(() => other.keys.setEnabled(orgId, keyId, true))).toMatchObject({ errorName: 'not_found' })
  } finally {
    await other.stop()
    await otherDb.close()
  }
})

test('a process that has not received the news of a rotation accepts the new secret from its first call on; it looks up an invalid secret only once', async () => {
  const { orgId, key: old, keyId } = await newCaller(process)
  const deaf = new ControlLog({ db: process.db, clock: process.clock, log: silentLog, pollMs: 60_000 })
  const other = createKeys({ db: process.db, clock: process.clock, ids: systemIds, controlLog: deaf, cacheTtlMs: 30_000, defaultRpm: 600 })
  expect(await other.findForAuth(old)).toMatchObject({ state: 'active' })
  const { key } = await process.keys.rotate(orgId, keyId, 0)
  expect(await other.findForAuth(key)).toMatchObject({ id: keyId, state: 'active' })
  expect(await other.findForAuth(old)).toMatchObject({ state: 'rotated' })
  const before = process.db.roundTrips
  for (let i = 0; i < 5; i++) expect(await other.findForAuth(old)).toMatchObject({ state: 'rotated' })
  expect(process.db.roundTrips).toBe(before)
})
