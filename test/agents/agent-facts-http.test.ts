/** What is known of an agent: its owner, its creator, its last call and its state. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { familyOf, newName, said } from './family.ts'

let app: TestApp
let family: ReturnType<typeof familyOf>
beforeAll(async () => {
  app = await startApp()
  family = familyOf(app)
})
afterAll(() => app.stop())

const seen = async (id: number) => (await app.call('GET', `/v1/me/agents/${id}`)).json

test('CAPI-02 an agent has an owner, its creator, the time of its last call and a status. While it is paused, its calls get 403 agent_paused, running calls are cut, and a resume lets it call again', async () => {
  const person = await app.newMember('member')
  const byPerson = (await app.call('POST', '/me/agents', { name: newName() }, { cookie: person.cookie })).json
  const byKey = await family.lead()
  const byAgent = await family.born(byKey)
  expect(byPerson).toMatchObject({
    owner_uid: person.userId,
    owner_name: person.email.split('@')[0],
    created_by: { kind: 'person', id: person.userId },
    status: 'active',
  })
  expect(await seen(byKey.id)).toMatchObject({ owner_uid: app.userId, created_by: { kind: 'key', id: app.keyId }, last_call_at: null })
  expect(await seen(byAgent.id)).toMatchObject({ owner_uid: app.userId, created_by: { kind: 'agent', id: byKey.id }, last_call_at: null })

  const before = Date.now()
  expect((await family.chat(byAgent.token)).status).toBe(200)
  await until(async () => (await seen(byAgent.id)).last_call_at !== null)
  const lastCall = Date.parse((await seen(byAgent.id)).last_call_at)
  expect([lastCall >= before, lastCall <= Date.now()]).toEqual([true, true])
  expect((await seen(byKey.id)).last_call_at, 'a call of a child is no call of its parent').toBeNull()

  app.alpha.script([{ chunks: Array(20).fill('word '), holdAfterChunks: 3 }])
  const arrived = app.alpha.requests.length + 1
  const running = family.chat(byAgent.token, { stream: true })
  await app.alpha.arrived(arrived)
  await until(async () => (await seen(byAgent.id)).running_requests === 1)
  const pause = (what: 'pause' | 'resume') => app.call('POST', `/me/agents/${byAgent.id}/${what}`, undefined, { cookie: owner })
  const owner = await app.signIn()
  expect((await pause('pause')).json).toMatchObject({ ok: true, status: 'paused' })
  expect((await running).text).toContain('"agent_paused"')
  await until(() => app.alpha.requests.at(-1)?.aborted === true)
  app.alpha.release()
  app.alpha.reset()
  expect(said(await family.chat(byAgent.token))).toEqual([403, 'agent_paused'])
  expect((await seen(byAgent.id)).status).toBe('paused')
  expect((await pause('resume')).json.status).toBe('active')
  expect((await family.chat(byAgent.token)).status).toBe(200)
  expect((await family.revoke(byAgent.id)).json.status).toBe('revoked')
  expect(await seen(byAgent.id)).toMatchObject({ status: 'revoked', owner_uid: app.userId })
})

test('an agent whose owner left keeps its owner id without a name, and owners and admins act on it', async () => {
  const person = await app.newMember('member')
  const { id } = (await app.call('POST', '/me/agents', { name: newName() }, { cookie: person.cookie })).json
  expect((await app.call('DELETE', `/me/members/${person.userId}`, undefined, { cookie: await app.signIn() })).status).toBe(200)
  expect(await seen(id)).toMatchObject({ status: 'active', owner_uid: person.userId, owner_name: null })
  const cookie = await app.signIn()
  expect((await app.call('PATCH', `/me/agents/${id}`, { owner_uid: app.userId }, { cookie })).json.owner_uid).toBe(app.userId)
})

test('the time of the last call moves forward when ten seconds have passed', async () => {
  const agent = await family.lead()
  expect((await family.chat(agent.token)).status).toBe(200)
  await until(async () => (await seen(agent.id)).last_call_at !== null)
  const first = (await seen(agent.id)).last_call_at
  await app.db.exec(
    { name: 'test.age_last_call', text: `update agents set last_call_at = last_call_at - interval '1 minute' where org_id = $1::int and id = $2::int` },
    app.orgId,
    agent.id,
  )
  expect((await family.chat(agent.token)).status).toBe(200)
  await until(async () => Date.parse((await seen(agent.id)).last_call_at) >= Date.parse(first))
})
