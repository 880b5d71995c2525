import { randomBytes } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { testDatabase } from '../harness/database.ts'
import { newCaller, type Process, startProcess, thrownBy } from './setup.ts'

const database = await testDatabase()
const onPostgres = database.kind === 'postgres'
const masterKey = randomBytes(32)
const dayMs = 24 * 3600_000
let process: Process

const clear = statement<[]>('test.clear_signing_keys', 'delete from signing_keys')
const ageNext = statement<[]>('test.age_next_key', `update signing_keys set created_at = created_at - interval '1 day' where state = 'next'`)
const ageCurrent = statement<[]>('test.age_current_key', `update signing_keys set signs_since = signs_since - interval '31 days' where state = 'current'`)
const ageRetired = statement<[]>('test.age_retired_key', `update signing_keys set retired_at = retired_at - interval '1 day' where state = 'retired'`)
const stored = statement<[], { kid: string; state: string; sealed: string }>(
  'test.stored_signing_keys',
  `select kid, state, private_sealed as "sealed" from signing_keys order by state`,
)

beforeEach(async () => {
  await database.db.exec(clear)
  process = await startProcess(database.db, { masterKey })
})
afterEach(() => process.stop())
afterAll(() => database.dispose())

async function newToken() {
  const caller = await newCaller(process)
  const { agent } = await process.agents.createOrReuse(caller.principal, 'worker')
  return { ...caller, agentId: agent.id, token: (await process.agents.tokens.mint(caller.principal, agent.id)).token }
}

test('the first use creates a current and a next key, with sealed private parts', async () => {
  const published = await process.agents.signingKeys.published()
  const rows = await process.db.many(stored)
  expect(rows.map(row => row.state)).toEqual(['current', 'next'])
  expect(published.map(jwk => jwk.kid)).toEqual(rows.map(row => row.kid))
  for (const row of rows) expect(row.sealed).toMatch(/^v1\./)
})

test('many concurrent first uses create one pair of keys', async () => {
  const lists = await Promise.all(Array.from({ length: 10 }, () => process.agents.signingKeys.published()))
  expect(new Set(lists.map(list => list.map(jwk => jwk.kid).join())).size).toBe(1)
  expect(await process.db.many(stored)).toHaveLength(2)
})

test('a rotation waits until the next key has been public long enough', async () => {
  const [current] = await process.agents.signingKeys.published()
  expect(await process.agents.signingKeys.rotate()).toMatchObject({ kind: 'too_early' })
  expect((await process.agents.signingKeys.current()).kid).toBe(current?.kid)
})

test('around a rotation no token fails: old tokens verify, and new tokens are signed with the key that was already public', async () => {
  const before = await newToken()
  const oldList = await process.agents.signingKeys.published()
  await process.db.exec(ageNext)
  const rotation = await process.agents.signingKeys.rotate()
  expect(rotation).toEqual({ kind: 'rotated', kid: oldList[1]?.kid })
  const after = await newToken()
  expect(decodeProtectedHeader(after.token).kid).toBe(oldList[1]?.kid)
  await jwtVerify(after.token, createLocalJWKSet({ keys: [...oldList] }))
  const newList = await process.agents.signingKeys.published()
  expect(newList).toHaveLength(3)
  await jwtVerify(before.token, createLocalJWKSet({ keys: [...newList] }))
  expect(await process.agents.tokens.principalOf(before.token)).toMatchObject({ agentId: before.agentId })
  expect(await process.agents.tokens.principalOf(after.token)).toMatchObject({ agentId: after.agentId })
})

test('a retired key leaves the list when its last token has expired', async () => {
  await newToken()
  await process.db.exec(ageNext)
  await process.agents.signingKeys.rotate()
  await process.db.exec(ageRetired)
  process.clock.advance(31_000)
  expect(await process.agents.signingKeys.published()).toHaveLength(2)
})

test('a key is rotated when it is due, and not before', async () => {
  const { signingKeys } = process.agents
  await signingKeys.published()
  await process.db.exec(ageNext)
  expect(await signingKeys.rotate({ minAgeMs: 30 * dayMs })).toEqual({ kind: 'not_due' })
  await process.db.exec(ageCurrent)
  expect(await signingKeys.rotate({ minAgeMs: 30 * dayMs })).toMatchObject({ kind: 'rotated' })
  expect(await signingKeys.rotate({ minAgeMs: 30 * dayMs })).toEqual({ kind: 'not_due' })
})

test('with another master key, signing fails with an error that says why. Issued tokens still verify, and two rotations create new keys', async () => {
  const before = await newToken()
  const thief = await startProcess(database.db, { masterKey: randomBytes(32) })
  try {
    const { signingKeys, tokens } = thief.agents
    expect(await thrownBy(() => signingKeys.current())).toMatchObject({ status: 500, message: expect.stringContaining('MASTER_KEY') })
    expect(await signingKeys.isOpened()).toBe(false)
    expect(await tokens.principalOf(before.token)).toMatchObject({ agentId: before.agentId })
    expect(await thrownBy(() => signingKeys.rotate())).toMatchObject({ status: 500, message: expect.stringContaining('MASTER_KEY') })
    expect(await signingKeys.rotate({ replacesNext: true })).toMatchObject({ kind: 'next_replaced' })
    expect(await signingKeys.rotate()).toMatchObject({ kind: 'too_early' })
    await process.db.exec(ageNext)
    expect(await signingKeys.rotate()).toMatchObject({ kind: 'rotated' })
    expect((await signingKeys.current()).kid).toBe((await signingKeys.published())[0]?.kid)
    expect(await tokens.principalOf(before.token)).toMatchObject({ agentId: before.agentId })
  } finally {
    await thief.stop()
  }
})

test.runIf(onPostgres)("two processes that start concurrently share one pair of keys and accept each other's tokens", async () => {
  const otherDb = await database.open()
  const other = await startProcess(otherDb, { masterKey })
  try {
    const [mine, theirs] = await Promise.all([process.agents.signingKeys.published(), other.agents.signingKeys.published()])
    expect(theirs).toEqual(mine)
    const { token, agentId } = await newToken()
    expect(await other.agents.tokens.principalOf(token)).toMatchObject({ agentId })
    await process.db.exec(ageNext)
    const results = await Promise.all([process.agents.signingKeys.rotate(), other.agents.signingKeys.rotate()])
    expect(results.map(result => result.kind).sort()).toEqual(['rotated', 'too_early'])
    await process.db.exec(ageNext)
    await process.db.exec(ageCurrent)
    const due = await Promise.all([process, other, process, other].map(each => each.agents.signingKeys.rotate({ minAgeMs: 30 * dayMs })))
    expect(due.map(result => result.kind).sort()).toEqual(['not_due', 'not_due', 'not_due', 'rotated'])
    const late = await newToken()
    expect(await other.agents.tokens.principalOf(late.token)).toMatchObject({ agentId: late.agentId })
  } finally {
    await other.stop()
    await otherDb.close()
  }
})
