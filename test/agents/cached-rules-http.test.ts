import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bytesOfPolicies } from '../../src/gateway/keys/key-rules.ts'
import { startApp, type TestApp } from '../harness/app.ts'

describe('rules in memory', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  const ids = Array.from({ length: 100 }, (_, index) => String(index).padEnd(200, 'x'))

  test('a token of a revoked agent loads no rules of the agent', async () => {
    const tokens: string[] = []
    for (let at = 0; at < 30; at++) {
      const made = await app.call('POST', '/v1/me/agents', { name: `ended ${at}`, allowed_models: ids, allowed_providers: ids })
      expect(made.status).toBe(201)
      tokens.push((await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {})).json.access_token)
      expect((await app.call('POST', `/v1/me/agents/${made.json.id}/revoke`)).status).toBe(200)
    }
    const before = app.db.roundTrips
    for (const token of tokens) {
      const refused = await app.call('GET', '/v1/me/whoami', undefined, { token })
      expect([refused.status, refused.json.reason]).toEqual([401, 'agent_revoked'])
    }
    expect(app.db.roundTrips - before).toBeLessThan(tokens.length)
  })

  test('the record of a revoked key has no rules, and the size of a record counts the characters of its rules', async () => {
    const { key } = await app.newKey()
    const cookie = await app.signIn()
    const made = (await app.call('POST', '/me/keys', { allowed_models: ids, allowed_providers: ids }, { cookie })).json
    const { keys } = app.gateway.app
    const record = await keys.byId(made.id)
    expect(bytesOfPolicies(record?.policies ?? [])).toBeGreaterThan(2 * 200 * 200)
    expect(bytesOfPolicies((await keys.findForAuth(key))?.policies ?? [])).toBe(0)
    expect((await app.call('DELETE', `/me/keys/${made.id}`, undefined, { cookie })).status).toBe(200)
    expect(await keys.byId(made.id)).toMatchObject({ state: 'revoked', policies: [] })
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: made.key })).status).toBe(401)
  })
})
