/** What changes of one organisation's agents cost the calls of another one that name agents. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'

const renameAgent = statement<[id: number, name: string]>('test.rename_agent', `update agents set name = $2::text where id = $1::int`)
let app: TestApp

beforeAll(async () => {
  app = await startApp()
}, 60_000)
afterAll(() => app?.stop())

const chatAs = async (label: string, model: string) =>
  (
    await app.call(
      'POST',
      '/v1/chat/completions',
      { model, messages: [{ role: 'user', content: 'x' }] },
      { token: app.key, headers: { 'x-br-agent-id': label } },
    )
  ).status

test('HARD-11 agents that another organisation makes, edits and revokes do not drop the cached names of agents', async () => {
  const { json: agent } = await app.call('POST', '/v1/me/agents', { name: 'worker', allowed_models: ['alpha-only'] })
  expect(await chatAs('worker', 'test-model')).toBe(403)
  // The name changes without news. So a call whose name is still cached is refused, and a call that asks the database is not.
  await app.db.exec(renameAgent, agent.id, 'renamed')
  const other = await app.otherOrg('Restless')
  const theirs = async (method: string, path: string, body: unknown) =>
    expect((await app.call(method, path, body, { token: other.key })).status).toBeLessThan(300)
  await theirs('POST', '/v1/me/agents', { name: 'worker' })
  await theirs('POST', '/v1/me/agents', { name: 'worker', allowed_models: ['test-model'] })
  const { json } = await app.call('GET', '/v1/me/agents', undefined, { token: other.key })
  await theirs('POST', `/v1/me/agents/${json.agents[0].id}/revoke`, {})
  expect(await chatAs('worker', 'test-model')).toBe(403)
  // The rules of the own agent are effective immediately.
  expect((await app.call('POST', '/v1/me/agents', { name: 'renamed', allowed_models: ['test-model'] })).status).toBeLessThan(300)
  expect(await chatAs('worker', 'test-model')).toBe(200)
}, 60_000)
