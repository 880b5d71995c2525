/** The operator's view of the webhooks of all organisations. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const failing = statement<[id: number]>('test.failing_endpoint', 'update webhook_endpoints set failures = 3 where id = $1::int')
const givenUp = statement<[id: number]>(
  'test.given_up_endpoint',
  `update webhook_endpoints set enabled = false, disabled_reason = 'too_many_failures', failures = 20 where id = $1::int`,
)

let app: TestApp
beforeAll(async () => {
  // Nothing listens at port 1, and nothing is sent, because these tests are only about the database.
  app = await startApp({ env: { OUTBOUND_ALLOW: '127.0.0.1:1', WEBHOOK_POLL_MS: '600000' } })
})
afterAll(() => app.stop())
// biome-ignore lint/suspicious/noExplicitAny: commands answer arbitrary objects.
const run = (name: string, args: Record<string, unknown> = {}): Promise<any> => adminHandler(app.gateway.app)({ name, args })
async function newWebhook(path: string, cookie: string): Promise<number> {
  const made = await app.call('POST', '/me/webhooks', { url: `http://127.0.0.1:1/${path}` }, { cookie })
  expect(made.status).toBe(201)
  return made.json.id
}

test('without webhooks, the list is empty and no delivery is late', async () => {
  expect(await run('webhooks-list')).toEqual({ webhooks: [] })
  expect(await run('webhooks-backlog')).toEqual({ endpoints: 0, disabled: 0, open: 0, due_now: 0, oldest_due_at: null, late_s: null, dead_last_day: 0 })
})

test('the list has the endpoints of all organisations, those with problems first, without path and secret', async () => {
  const cookie = await app.signIn()
  const other = await app.otherOrg('Other')
  const well = await newWebhook('well', cookie)
  const ill = await newWebhook('secret-path', cookie)
  const off = await newWebhook('off', await app.signIn(other.userId, other.orgId))
  await app.db.exec(failing, ill)
  await app.db.exec(givenUp, off)
  const { webhooks } = await run('webhooks-list')
  expect(webhooks.map(({ id, org_id, enabled, failures }: Record<string, unknown>) => [id, org_id, enabled, failures])).toEqual([
    [off, other.orgId, false, 20],
    [ill, app.orgId, true, 3],
    [well, app.orgId, true, 0],
  ])
  expect(webhooks[1]).toMatchObject({ host: '127.0.0.1:1', disabled_reason: null, open: 0, oldest_at: null })
  expect(JSON.stringify(webhooks)).not.toMatch(/secret|whsec/)
  expect((await run('webhooks-list', { org: other.orgId })).webhooks).toHaveLength(1)
  await expect(run('webhooks-list', { org: 0 })).rejects.toThrow(/^org: /)
})

test('the backlog has the number of open deliveries and how late they are', async () => {
  const cookie = await app.signIn()
  const id = await newWebhook('late', cookie)
  expect((await app.call('POST', `/me/webhooks/${id}/test`, {}, { cookie })).status).toBe(200)
  const backlog = await run('webhooks-backlog')
  expect(backlog).toMatchObject({ endpoints: 4, disabled: 1, open: 1 })
  const { webhooks } = await run('webhooks-list')
  expect(webhooks).toContainEqual(expect.objectContaining({ id, open: 1, oldest_at: expect.any(String) }))
})
