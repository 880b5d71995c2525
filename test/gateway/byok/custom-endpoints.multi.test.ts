import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'

/** Longest time from a change on one process to its effect on another. */
const effectDeadlineMs = 3000

describe.runIf(onPostgres)('custom endpoints in two processes', () => {
  let fleet: Fleet
  let server: OwnServer
  let here: GatewayProcess
  let there: GatewayProcess
  let cookie: string
  beforeAll(async () => {
    server = await startOwnServer()
    server.behave('key-of-our-server')
    fleet = await startFleet({ OUTBOUND_ALLOW: server.hostPort })
    ;[here, there] = await Promise.all([fleet.start(), fleet.start()])
    cookie = await fleet.signIn()
  })
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
  })

  const change = async (method: string, path: string, body?: object) => {
    const options = body === undefined ? { headers: { cookie } } : { headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(here.baseUrl + path, { method, ...options })
    expect(response.ok).toBe(true)
    return (await response.json()) as { endpoint: { id: number } }
  }
  const statusOf = async (process: GatewayProcess) =>
    (
      await call(process, fleet.key, 'POST', '/v1/chat/completions', {
        model: 'fixed-model',
        provider: 'byoe:ours',
        messages: [{ role: 'user', content: 'hi' }],
      })
    ).status

  test('an endpoint that is registered or removed at one process appears or disappears at the other within three seconds', async () => {
    expect(await statusOf(there)).toBe(400)
    const params = { name: 'Ours', model: 'fixed-model', base_url: server.url, upstream_model: 'm', key: 'key-of-our-server' }
    const { endpoint } = await change('POST', '/me/endpoints', params)
    expect(await statusOf(here)).toBe(200)
    await until(async () => (await statusOf(there)) === 200, 'the other process knows the endpoint', effectDeadlineMs)
    await change('DELETE', `/me/endpoints/${endpoint.id}`)
    expect(await statusOf(here)).toBe(400)
    await until(async () => (await statusOf(there)) === 400, 'the other process has dropped it', effectDeadlineMs)
  })
})
