import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on', SANDBOX: 'on' } })
  await app.gateway.app.memory.useFolder(app.orgId)
})
afterAll(() => app.stop())

/** Every field of a reply, however deep, whose name says that it is a time. */
function timesIn(value: unknown, path = ''): { path: string; name: string; value: unknown }[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => timesIn(item, `${path}[${index}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => [
    ...(/^(created|modified|at|.*_at)$/.test(name) ? [{ path: `${path}.${name}`, name, value: field }] : []),
    ...timesIn(field, `${path}.${name}`),
  ])
}

test('SHAPE-41 times are ISO-8601 UTC texts in resources and unix seconds in created, in every reply that has one', async () => {
  const agent = await app.newAgent('timekeeper')
  await app.call('POST', `/v1/me/agents/${agent.id}/budget`, { monthly_budget_inr: 5 })
  await app.call('PUT', '/v1/me/memory/o?key=agents/clock', 'tick')
  const replies = {
    chat: await app.call('POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'hi' }] }),
    token: await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}),
    agents: await app.call('GET', '/v1/me/agents'),
    whoami: await app.call('GET', '/v1/me/whoami', undefined, { token: agent.token }),
    budgets: await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token }),
    memory: await app.call('GET', '/v1/me/memory/list'),
    store: await app.call('GET', '/v1/me/memory-store'),
    models: await app.call('GET', '/v1/models'),
  }
  const found = Object.entries(replies).flatMap(([name, reply]) => timesIn(reply.json, name))
  for (const { path, name, value } of found) {
    if (name === 'created') expect(Number.isInteger(value) && Math.abs(Number(value) - Date.now() / 1000) < 3600, path).toBe(true)
    else if (value !== null) expect(value, path).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$/)
  }
  const paths = found.map(({ path }) => path)
  for (const path of [
    'chat.created',
    'token.expires_at',
    'agents.agents[0].created_at',
    'whoami.token_expires_at',
    'budgets.budgets[0].resets_at',
    'memory.keys[0].modified',
  ])
    expect(paths).toContain(path)
})
