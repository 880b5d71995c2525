/** Rows that change something say so in the same way. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { startApp, type TestApp } from '../harness/app.ts'

/** Rows whose answer is something else than what they changed, with the reason. */
const others: Readonly<Record<string, string>> = {
  'POST /v1/messages/count_tokens': 'changes nothing',
  'POST /v1beta/models/{model+}:countTokens': 'changes nothing',
  'PUT /v1/me/profile': 'the profile itself is the answer, as it is when it is read',
  'POST /me/route/preview': 'changes nothing',
  'POST /me/billing/validate-gstin': 'changes nothing',
  'POST /me/billing/promo/check': 'changes nothing',
  'POST /me/byok/{provider}/test': 'the status is the answer',
  'POST /me/operator/provider-keys/{provider}/test': 'the status is the answer',
  'POST /v1/me/agents/{id}/token': 'the form of OAuth',
  'POST /me/agents/{id}/token': 'the form of OAuth',
  'POST /me/playground/token': 'the form of OAuth',
  'POST /oauth/token': 'the form of OAuth',
  'POST /oauth/introspect': 'the form of OAuth',
  'POST /oauth/revoke': 'the form of OAuth',
  'POST /me/agents/{id}/tools': 'changes nothing',
  'POST /v1/files': 'the form of OpenAI',
  'DELETE /v1/files/{file_id}': 'the form of OpenAI',
  'POST /v1/batches': 'the form of OpenAI',
  'POST /v1/batches/{batch_id}/cancel': 'the form of OpenAI',
  'POST /v1/messages/batches': 'the form of Anthropic',
  'POST /v1/messages/batches/{batch_id}/cancel': 'the form of Anthropic',
  'DELETE /v1/messages/batches/{batch_id}': 'the form of Anthropic',
  'POST /v1/tools/{name}/call': 'the result of the tool is the answer',
  'POST /v1/tool-servers/{slug}/prompts/{name}': 'changes nothing',
}

const changing = bindingsOf(endpointTable).filter(({ at, row }) => !at.startsWith('GET ') && row.inference !== true)

test('SHAPE-07, EDGE-17 every row of the table that changes something that was there declares ok: true; those that make something answer it', () => {
  const silent = changing.filter(({ row }) => row.output instanceof z.ZodObject && !('ok' in row.output.shape))
  const made = silent.filter(({ row }) => row.status === 201).map(({ at }) => at)
  expect(silent.map(({ at }) => at).filter(at => !(at in others) && !made.includes(at))).toEqual([])
  expect(made.every(at => at.startsWith('POST '))).toBe(true)
})

let app: TestApp
let cookie: string
beforeAll(async () => {
  app = await startApp({ env: { OUTBOUND_ALLOW: 'localhost:9' } })
  cookie = await app.signIn()
})
afterAll(() => app.stop())

test('SHAPE-07, EDGE-17 a change of an agent, key, webhook, chain, collection, or budget answers 200 with ok: true beside what it changed', async () => {
  const person = (method: string, path: string, body?: unknown) => app.call(method, path, body, { cookie })
  const key = (method: string, path: string, body?: unknown) => app.call(method, path, body)
  const { id: agent } = await app.newAgent('shaped')
  const { json: made } = await person('POST', '/me/keys', { name: 'shaped' })
  const { json: hook } = await person('POST', '/me/webhooks', { url: 'http://localhost:9/hook' })
  const { json: collection } = await person('POST', '/me/collections', { name: 'Shaped', model: 'test-model', steps: ['test-model'] })
  for (const [call, method, path, body, resource] of [
    [key, 'PATCH', `/v1/me/agents/${agent}`, { max_concurrency: 3 }, { id: agent, max_concurrency: 3 }],
    [key, 'POST', `/v1/me/agents/${agent}/budget`, { monthly_budget_inr: 5 }, { id: agent, monthly_budget_inr: 5 }],
    [key, 'POST', `/v1/me/agents/${agent}/budget`, { monthly_budget_inr: 0 }, { id: agent, monthly_budget_inr: null }],
    [key, 'POST', `/v1/me/agents/${agent}/revoke`, undefined, { id: agent, status: 'revoked' }],
    [person, 'PATCH', `/me/keys/${made.id}`, { rpm_limit: 7 }, { key: { id: made.id, rpm_limit: 7 } }],
    [person, 'POST', `/me/keys/${made.id}/rotate`, {}, { id: made.id }],
    [person, 'DELETE', `/me/keys/${made.id}`, undefined, { key: { id: made.id, state: 'revoked' } }],
    [person, 'PATCH', `/me/webhooks/${hook.id}`, { enabled: false }, { id: hook.id, enabled: false }],
    [person, 'POST', `/me/webhooks/${hook.id}/rotate-secret`, undefined, { id: hook.id, secret: expect.stringMatching(/^whsec_/) }],
    [person, 'DELETE', `/me/webhooks/${hook.id}`, undefined, {}],
    [person, 'PUT', '/me/routing/test-model', { steps: ['alpha-only'] }, { model: 'test-model', steps: [{ model: 'alpha-only' }] }],
    [person, 'DELETE', '/me/routing/test-model', undefined, {}],
    [person, 'PATCH', `/me/collections/${collection.id}`, { name: 'Reshaped' }, { id: collection.id, name: 'Reshaped', version: 2 }],
    [person, 'DELETE', `/me/collections/${collection.id}`, undefined, {}],
    [person, 'POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 900 }, { budget: { cap_inr: 900 } }],
    [person, 'POST', '/auth/logout', undefined, { signed_out: true }],
  ] as const) {
    const reply = await call(method, path, body)
    expect([reply.status, reply.json], `${method} ${path}`).toMatchObject([200, { ok: true, ...resource }])
  }
})
