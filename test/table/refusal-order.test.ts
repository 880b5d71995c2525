/** A call that breaks several rules gets the refusal of the first one, in one order for HTTP and MCP. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'
import { mcpClients, type ToolReply } from '../mcp/mcp-clients.ts'

const halfJson = '{"name":'

describe('the order of refusals', () => {
  const clock = movableClock(Date.UTC(2026, 10, 21, 3, 45, 1))
  let app: TestApp
  const { eras, closeAll } = mcpClients(() => app)
  beforeAll(async () => {
    app = await startApp({ clock })
  })
  afterAll(() => app.stop())
  afterEach(() => closeAll())

  const refusalOf = ({ status, json }: TestReply) => [status, json.error.code]
  const forbiddenLines = async (act: string): Promise<number> => {
    const { json } = await app.call('GET', '/me/audit?limit=200', undefined, { cookie: await app.signIn() })
    return json.entries.filter((entry: { act: string; outcome: string }) => entry.act === act && entry.outcome === 'forbidden').length
  }

  test('ERR-01 over HTTP the credential comes first, then the rate, the access rule, and the body', async () => {
    const path = '/v1/me/memory/promote'
    expect(refusalOf(await app.call('POST', path, halfJson, { token: 'br-nobody' }))).toEqual([401, 'invalid_api_key'])
    const { key } = await app.newKey({ scope: 'inference', rpm: 1 })
    expect(refusalOf(await app.call('POST', path, halfJson, { token: key }))).toEqual([403, 'forbidden'])
    expect(refusalOf(await app.call('POST', path, halfJson, { token: key }))).toEqual([429, 'rate_limit_exceeded'])
    expect(refusalOf(await app.call('POST', path, halfJson))).toEqual([400, 'bad_request'])
    clock.advance(60_000)
  })

  test('ERR-01 over HTTP a person who may not act learns nothing of what is configured, and that comes before the body', async () => {
    const member = (await app.newMember('member')).cookie
    const path = '/me/billing/orders'
    expect(refusalOf(await app.call('POST', path, halfJson, { cookie: member }))).toEqual([403, 'forbidden'])
    const refused = await app.call('POST', path, halfJson, { cookie: await app.signIn() })
    expect(refused.status).not.toBe(400)
    expect(refused.json.error.code).toBe('billing_disabled')
  })

  test.each(eras)('ERR-01 over MCP (%s) the order is the same, and a refused act is in the audit trail as over HTTP', async (_era, connect) => {
    const wrong = { name: 7 }
    const codeOf = ({ isError, data }: ToolReply) => [isError, data.code]
    const { key } = await app.newKey({ scope: 'inference', rpm: 20 })
    const client = await connect(key)
    const before = await forbiddenLines('promote')
    expect(codeOf(await client.call('memory_promote', wrong))).toEqual([true, 'forbidden'])
    expect(await forbiddenLines('promote')).toBe(before + 1)
    let refused: unknown = null
    for (let i = 0; i < 25 && refused === null; i++)
      refused = await client.call('memory_promote', wrong).then(
        () => null,
        error => error,
      )
    expect(String(refused)).toContain('rate_limit_exceeded')
    const full = await connect(app.key)
    expect(codeOf(await full.call('memory_promote', wrong))).toEqual([true, 'bad_request'])
    clock.advance(60_000)
  })
})
