import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

/** The longest time until a change applies in all processes. */
const promisedMs = 60_000
/** From here on, every row of news is lost. */
const loseNews = `
  create function lose_news() returns trigger language plpgsql as 'begin return null; end';
  create trigger lose_news before insert on control_log for each row execute function lose_news();`

describe.runIf(onPostgres)('keys in two processes', () => {
  let fleet: Fleet
  let here: GatewayProcess
  let there: GatewayProcess
  let cookie: string
  beforeAll(async () => {
    fleet = await startFleet({ CACHE_TTL_MS: '5000' })
    ;[here, there] = await Promise.all([fleet.start(), fleet.start()])
    cookie = await fleet.signIn()
  })
  afterAll(() => fleet?.stop())

  /** Makes a change at the first process. */
  const change = async (method: string, path: string, body: object = {}): Promise<{ id: number; key: string }> => {
    const response = await fetch(here.baseUrl + path, { method, headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body) })
    expect(response.ok).toBe(true)
    return (await response.json()) as { id: number; key: string }
  }
  const make = (body: object = {}) => change('POST', '/me/keys', body)
  /** Returns how a process answers a key: 200, or the error code. */
  const says = async (process: GatewayProcess, key: string) => {
    const { status, json } = await call(process, key, 'GET', '/v1/usage')
    return status === 200 ? 200 : json.error.code
  }
  const becomes = (key: string, answer: unknown, process = there) => until(async () => (await says(process, key)) === answer, promisedMs)

  test('LIM-06 KEY-08 limits, disabling and enabling at one process apply at the other within 60 s', async () => {
    const { key, id } = await make()
    expect(await says(there, key)).toBe(200)
    await change('PATCH', `/me/keys/${id}`, { rpm_limit: 0 })
    await becomes(key, 'rate_limit_exceeded')
    await change('PATCH', `/me/keys/${id}`, { rpm_limit: null })
    await becomes(key, 200)
    await change('PATCH', `/me/keys/${id}`, { enabled: false })
    await becomes(key, 'invalid_api_key')
    await change('PATCH', `/me/keys/${id}`, { enabled: true })
    await becomes(key, 200)
  })

  test('KEY-15 a key that was revoked at one process is refused by the other within 60 s', async () => {
    const { key, id } = await make()
    expect(await says(there, key)).toBe(200)
    await change('DELETE', `/me/keys/${id}`)
    await becomes(key, 'invalid_api_key')
  })

  test('ROTA-01 a new secret works at the other process from its first call on, and the old one is refused there within 60 s', async () => {
    const { key: old, id } = await make()
    expect(await says(there, old)).toBe(200)
    const { key } = await change('POST', `/me/keys/${id}/rotate`, { overlap_days: 0 })
    expect(await says(there, key)).toBe(200)
    await becomes(old, 'invalid_api_key')
    for (let i = 0; i < 20; i++) {
      const next = (await change('POST', `/me/keys/${id}/rotate`, { overlap_days: 1 })).key
      expect(await says(there, next)).toBe(200)
    }
  })

  test('when the news of a change is lost, the change applies at the other process when its cached record expires', async () => {
    const [limited, revoked, rotated] = [await make(), await make(), await make()]
    for (const { key } of [limited, revoked, rotated]) expect(await says(there, key)).toBe(200)
    await fleet.db.script(loseNews)
    await change('PATCH', `/me/keys/${limited.id}`, { rpm_limit: 0 })
    await becomes(limited.key, 'rate_limit_exceeded')
    await change('DELETE', `/me/keys/${revoked.id}`)
    await change('POST', `/me/keys/${rotated.id}/rotate`, { overlap_days: 0 })
    await becomes(revoked.key, 'invalid_api_key')
    await becomes(rotated.key, 'invalid_api_key')
  })
})
