import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RefusedCalls } from '../../../src/gateway/usage/refusals/refused-calls.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { fail } from '../../../src/platform/errors.ts'
import type { BearerPrincipal } from '../../../src/platform/security/principal.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(async () => {
  await app?.stop()
})

const messages = [{ role: 'user', content: 'zqsecretzq' }]
const chat = (token: string, model = 'test-model') => app.call('POST', '/v1/chat/completions', { model, messages, max_tokens: 5 }, { token })
const refusals = async (query = '', options: object = {}) => {
  const reply = await app.call('GET', `/v1/me/refused-calls${query}`, undefined, options)
  expect(reply.status, reply.text).toBe(200)
  return reply.json
}

test('a refused call is listed with its credential, its reason and the limit that refused, and a call that a provider failed is not', async () => {
  const agent = await app.newAgent('spender')
  await app.setBudget('agent', agent.id, 0.0001)
  expect((await chat(agent.token)).status).toBe(200)
  for (let call = 0; call < 3; call++) expect((await chat(agent.token)).status).toBe(429)
  const last = await chat(agent.token)
  const other = await app.newKey({ name: 'mistyped' })
  expect((await chat(other.key, 'zq-no-such-model-zq')).status).toBe(404)
  app.alpha.script({ status: 500, body: { error: { message: 'down' } } })
  const failed = await chat(app.key, 'alpha-only')
  expect(failed.status).toBeGreaterThanOrEqual(500)
  const { refusals: rows, next_cursor } = await refusals()
  expect(next_cursor).toBeNull()
  const [ofAgent] = rows.filter((row: { agent_id: number | null }) => row.agent_id === agent.id)
  expect(ofAgent).toMatchObject({ agent_name: 'spender', code: 'agent_budget_exceeded', status: 429, scope: 'agent', calls: 4 })
  expect(ofAgent.reason).toMatch(/budget/)
  expect(ofAgent.last_request_id).toBe(last.headers.get('x-request-id'))
  const [ofKey] = rows.filter((row: { key_id: number | null; agent_id: number | null }) => row.key_id === other.keyId)
  expect(ofKey).toMatchObject({ key_name: 'mistyped', agent_id: null, code: 'model_not_found', status: 404, scope: null, calls: 1 })
  expect(rows.some((row: { last_request_id: string }) => row.last_request_id === failed.headers.get('x-request-id'))).toBe(false)
  expect(JSON.stringify(rows)).not.toContain('zq-no-such')
  expect(await app.dump()).not.toContain('zq-no-such-model-zq')
})

test('the list is filtered by agent, key, code and day, pages through all rows once, and refuses an invalid cursor', async () => {
  for (let each = 0; each < 5; each++) {
    const { key } = await app.newKey({ name: `key ${each}` })
    await chat(key, 'no-such-model')
  }
  const all = (await refusals()).refusals
  expect(all.length).toBeGreaterThan(5)
  const paged = []
  for (let cursor = ''; ; ) {
    const page = await refusals(`?limit=2${cursor}`)
    paged.push(...page.refusals)
    if (page.next_cursor === null) break
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
  }
  expect(paged).toEqual(all)
  const { key_id: keyId, code } = all[0]
  expect((await refusals(`?key_id=${keyId}`)).refusals.every((row: { key_id: number }) => row.key_id === keyId)).toBe(true)
  expect((await refusals(`?code=${code}`)).refusals.every((row: { code: string }) => row.code === code)).toBe(true)
  expect((await refusals('?from=2999-01-01')).refusals).toEqual([])
  for (const query of ['?cursor=1.2', '?from=yesterday', '?code=A', '?limit=0'])
    expect((await app.call('GET', `/v1/me/refused-calls${query}`)).json.error.code).toBe('bad_request')
})

test('another organisation sees none of these calls, and a person at the console sees the same rows', async () => {
  const { key } = await app.otherOrg('Elsewhere')
  expect((await refusals('', { token: key })).refusals).toEqual([])
  const { cookie } = await app.newMember('member')
  const reply = await app.call('GET', '/me/refused-calls', undefined, { cookie })
  expect(reply.json.refusals).toEqual((await refusals()).refusals)
})

test('one organisation that is refused under many credentials fills its own share of the memory and of the hour only', async () => {
  const counted = new RefusedCalls(app.db, systemClock)
  const { orgId } = await app.otherOrg('Loud')
  const caller = (keyId: number, org = orgId) => ({ kind: 'key', orgId: org, keyId }) as BearerPrincipal
  for (let round = 0; round < 4; round++) {
    for (let keyId = 1; keyId <= 600; keyId++) counted.note(caller(keyId + round * 600), fail('model_not_found'), randomBytes(4).toString('hex'))
    const quiet = await app.otherOrg(`Quiet ${round}`)
    counted.note(caller(quiet.keyId, quiet.orgId), fail('forbidden'), 'r')
    await counted.flush()
    expect((await counted.list(quiet.orgId, {}, 10)).rows.length).toBe(1)
  }
  let rows = 0
  for (let cursor: string | undefined; ; ) {
    const page = await counted.list(orgId, { cursor }, 200)
    rows += page.rows.length
    if (page.nextCursor === null) break
    cursor = page.nextCursor
  }
  expect(rows).toBeGreaterThan(500)
  expect(rows).toBeLessThanOrEqual(1500)
})
