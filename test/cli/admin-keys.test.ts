import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminHandler } from '../../src/operations/admin/commands/admin-commands.ts'
import { startApp, type TestApp } from '../harness/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.stop())
const run = (args: Record<string, unknown>) => adminHandler(app.gateway.app)({ name: 'key', args: { scope: 'full', ...args } }) as Promise<{ key_id: number }>
const shown = async (id: number) => {
  const { keys } = (await app.call('GET', '/me/keys', undefined, { cookie: await app.signIn() })).json
  return keys.find((key: { id: number }) => key.id === id)
}

test('the operator makes a key with a life, a budget and caps for each call', async () => {
  const { key_id } = await run({
    org: app.orgId,
    name: 'robot',
    rpm: 50,
    keyBudgetInr: 7,
    expiresDays: 30,
    maxConcurrency: 2,
    maxOutputTokens: 500,
    maxCostInr: 1.5,
  })
  expect(await shown(key_id)).toMatchObject({
    name: 'robot',
    owner: null,
    rpm_limit: 50,
    budget_inr: 7,
    max_concurrency: 2,
    max_output_tokens: 500,
    max_cost_inr_per_call: 1.5,
    expires_at: expect.any(String),
  })
})

test('a key that is made without caps has none', async () => {
  const { key_id } = await run({ org: app.orgId, name: 'plain', email: 'owner@test-org.test' })
  expect(await shown(key_id)).toMatchObject({ owner: { uid: app.userId }, expires_at: null, max_concurrency: null, max_cost_inr_per_call: null })
})

test('an unknown organisation or workspace is reported as such', async () => {
  await expect(run({ org: 999_999, name: 'x' })).rejects.toThrow('no organisation')
  await expect(run({ org: app.orgId, name: 'x', workspace: 999_999 })).rejects.toThrow('no such workspace')
  await expect(run({ org: app.orgId, name: 'x', expiresDays: 366 })).rejects.toThrow('expires_days')
})
