/** History and appends with several gateway processes on one PostgreSQL database and one bucket. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { onPostgres } from '../harness/database.ts'
import { type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

const historyBytes = statement<[orgId: number], { booked: bigint; kept: bigint }>(
  'test.history_of_fleet',
  `select u.history_bytes as booked, (select coalesce(sum(v.size_bytes), 0)::bigint from memory_versions v where v.org_id = $1::int and v.doomed_at is null) as kept
   from memory_usage u where u.org_id = $1::int`,
)

describe.runIf(onPostgres)('history and appends over several processes', () => {
  let fleet: Fleet
  let server: S3TestServer
  let members: GatewayProcess[]
  beforeAll(async () => {
    server = await startS3Server()
    fleet = await startFleet({ OUTBOUND_ALLOW: server.hostPort })
    members = await Promise.all([fleet.start(), fleet.start()])
    const { endpoint, bucket, accessKey, secretKey } = server
    const store = { endpoint, bucket, access_key: accessKey, secret_key: secretKey, history_versions: 200 }
    expect((await ask(0, 'PUT', '/v1/me/memory-store', store)).status).toBe(200)
  }, 120_000)
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
  })

  const ask = async (n: number, method: string, path: string, body?: object | string) => {
    const response = await fetch(`${members[n % members.length]?.baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${fleet.key}`, ...(typeof body === 'object' ? { 'content-type': 'application/json' } : {}) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text() }
  }

  test('all entries that two processes append concurrently are kept', async () => {
    const made = await Promise.all(Array.from({ length: 60 }, (_, n) => ask(n, 'POST', '/v1/me/memory/append', { path: 'agents/log', content: `entry ${n}` })))
    const keys = made.map(({ status, text }) => {
      expect(status, text).toBe(201)
      return JSON.parse(text).key as string
    })
    const texts = await Promise.all(keys.map((key, n) => ask(n + 1, 'GET', `/v1/me/memory/o?key=${encodeURIComponent(key)}`)))
    expect(texts.map(({ text }) => text)).toEqual(keys.map((_, n) => `entry ${n}`))
  })

  test('when writers on two processes overwrite each other, the history contains every write', async () => {
    let busy = 0
    await Promise.all(
      Array.from({ length: 30 }, async (_, n) => {
        for (;;) {
          const put = await ask(n, 'PUT', '/v1/me/memory/o?key=agents/busy', `writer ${n}`)
          if (put.status === 200) return
          // A writer that waited too long for its turn gets 409 and tries again.
          expect(put.status, put.text).toBe(409)
          busy++
        }
      }),
    )
    const { versions } = JSON.parse((await ask(1, 'GET', '/v1/me/memory/history?key=agents/busy&limit=100')).text)
    const texts = await Promise.all(
      versions.map(
        async ({ version }: { version: string }, n: number) => (await ask(n, 'GET', `/v1/me/memory/history?key=agents/busy&version=${version}`)).text,
      ),
    )
    expect(texts.sort(), `${busy} were told to come again`).toEqual(Array.from({ length: 30 }, (_, n) => `writer ${n}`).sort())
    const { booked, kept } = await fleet.db.one(historyBytes, fleet.orgId)
    expect(booked).toBe(kept)
  })
})
