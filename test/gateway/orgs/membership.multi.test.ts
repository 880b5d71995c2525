import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, fleetAnswer, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

/** Longest time from a change on one process to its effect on another. */
const effectDeadlineMs = 2000

const addPerson = statement<[orgId: number, email: string, role: string], { userId: number }>(
  'test.add_fleet_person',
  `with person as (insert into users (email, created_at) values ($2::text, now()) returning id)
   insert into org_members (org_id, user_id, role, created_at) select $1::int, id, $3::text, now() from person returning user_id as "userId"`,
)

function gatedConfig(url: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'brigade-config-')), 'brigade.config.json')
  const routes = [{ provider: 'fixed', input_inr_per_mtok: 0, output_inr_per_mtok: 100, source: 'test', as_of: '2026-01-01' }]
  const model = { kind: 'chat', context_length: 100_000, routes }
  writeFileSync(
    file,
    JSON.stringify({
      providers: [{ id: 'fixed', base_url: url, auth: 'none', residency: 'global' }],
      models: [
        { ...model, id: 'fixed-model' },
        { ...model, id: 'gated-model', gated: true },
      ],
    }),
  )
  return file
}

describe.runIf(onPostgres)('membership and settings in two processes', () => {
  let fleet: Fleet
  let upstream: UpstreamServer
  let here: GatewayProcess
  let there: GatewayProcess
  beforeAll(async () => {
    upstream = await startUpstream()
    upstream.script(fleetAnswer)
    fleet = await startFleet({ CONFIG_FILE: gatedConfig(upstream.url), CONTROL_POLL_MS: '1000' })
    here = await fleet.start()
    there = await fleet.start()
  })
  afterAll(async () => {
    await fleet?.stop()
    await upstream?.close()
  })

  let named = 0
  async function newMember(role: string) {
    const email = `person-${++named}@fleet.test`
    const { userId } = await fleet.db.one(addPerson, fleet.orgId, email, role)
    return { userId, cookie: await fleet.signIn(userId) }
  }
  const send = (process: GatewayProcess, credential: { cookie?: string; authorization?: string }, method: string, path: string, body?: object) =>
    fetch(process.baseUrl + path, { method, headers: { ...credential, 'content-type': 'application/json' }, ...(body ? { body: JSON.stringify(body) } : {}) })
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  const jsonOf = async (reply: Promise<Response>): Promise<any> => (await reply).json()
  const soon = async (isSo: () => Promise<boolean>) => until(isSo, effectDeadlineMs)

  test('when a member is removed at one process, the other refuses their session, key and running stream within two seconds', async () => {
    const owner = await newMember('owner')
    const leaver = await newMember('member')
    const made = await jsonOf(send(here, leaver, 'POST', '/me/keys', { name: 'leaver' }))
    const key = { authorization: `Bearer ${made.key}` }
    expect((await send(there, leaver, 'GET', '/me')).status).toBe(200)
    upstream.script(request => ({ ...fleetAnswer(request), holdAfterChunks: 2 }))
    const messages = [{ role: 'user', content: 'Hello' }]
    const stream = await send(there, key, 'POST', '/v1/chat/completions', { model: 'fixed-model', stream: true, messages })
    expect(stream.status).toBe(200)
    const text = stream.text()
    expect((await send(here, owner, 'DELETE', `/me/members/${leaver.userId}`)).status).toBe(200)
    const startedMs = Date.now()
    expect(await text).toContain('revoked')
    expect(Date.now() - startedMs).toBeLessThan(effectDeadlineMs)
    await soon(async () => (await send(there, leaver, 'GET', '/me')).status === 401)
    await soon(async () => (await send(there, key, 'GET', '/v1/me/whoami')).status === 401)
    upstream.script(fleetAnswer)
  })

  test('when two owners demote each other concurrently at two processes, one owner remains', async () => {
    for (let round = 0; round < 8; round++) {
      const [a, b] = [await newMember('owner'), await newMember('owner')]
      // During the test, only these two people own the organisation.
      const others = (await jsonOf(send(here, a, 'GET', '/me/members'))).members.filter(
        (each: { id: number; role: string }) => each.role === 'owner' && each.id !== a.userId && each.id !== b.userId,
      )
      for (const { id } of others) expect((await send(here, a, 'PATCH', `/me/members/${id}`, { role: 'member' })).status).toBe(200)
      const replies = await Promise.all([
        send(here, a, 'PATCH', `/me/members/${b.userId}`, { role: 'member' }),
        send(there, b, 'PATCH', `/me/members/${a.userId}`, { role: 'member' }),
      ])
      expect(replies.map(reply => reply.status).sort()).toEqual([200, 403])
    }
  })

  test('when a retention window is set at one process, the other allows or refuses gated models within two seconds', async () => {
    const owner = await newMember('owner')
    const key = { authorization: `Bearer ${fleet.key}` }
    const gated = async () =>
      (await send(there, key, 'POST', '/v1/chat/completions', { model: 'gated-model', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] })).status
    expect(await gated()).toBe(403)
    expect((await send(here, owner, 'PUT', '/me/org/data-retention', { days: 3 })).status).toBe(200)
    await soon(async () => (await gated()) === 200)
    expect((await send(here, owner, 'PUT', '/me/org/data-retention', { days: 0 })).status).toBe(200)
    await soon(async () => (await gated()) === 403)
  })
})
