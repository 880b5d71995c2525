/** Memory at the console with two gateway processes on one PostgreSQL database and one bucket. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../harness/database.ts'
import { type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

describe.runIf(onPostgres)('memory at the console of two processes', () => {
  let fleet: Fleet
  let server: S3TestServer
  let cookie: string
  let processes: readonly [GatewayProcess, GatewayProcess]
  beforeAll(async () => {
    server = await startS3Server()
    fleet = await startFleet({ OUTBOUND_ALLOW: server.hostPort })
    processes = [await fleet.start(), await fleet.start()]
    cookie = await fleet.signIn()
    const store = { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey }
    expect((await ask(0, 'PUT', '/me/memory-store', JSON.stringify(store), json)).status).toBe(200)
  }, 120_000)
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
  })

  const json = { 'content-type': 'application/json' }
  const ask = async (at: 0 | 1, method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${processes[at].baseUrl}${path}`, { method, headers: { cookie, ...headers }, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: text.startsWith('{') ? JSON.parse(text) : null }
  }

  test('writers with sessions on two processes lose no update, and both processes show the same authors and usage', async () => {
    const path = '/me/memory/o?key=agents/counter'
    expect((await ask(0, 'PUT', path, '', { 'if-none-match': '*' })).status).toBe(200)
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        for (const at = (n % 2) as 0 | 1; ; ) {
          const before = await ask(at, 'GET', path)
          const written = await ask(at, 'PUT', path, `${before.text}x`, { 'if-match': before.headers.get('etag') ?? '' })
          if (written.status === 200) return
          expect([409, 412, 503]).toContain(written.status)
        }
      }),
    )
    const [{ author }] = (await ask(0, 'GET', '/me/memory/list?prefix=agents/')).json.keys
    for (const at of [0, 1] as const) {
      expect((await ask(at, 'GET', path)).text).toBe('x'.repeat(20))
      const listed = await ask(at, 'GET', `/me/memory/list?author=user:${author.user}&prefix=agents/`)
      expect(listed.json.keys).toMatchObject([{ key: 'agents/counter', size: 20, author, author_name: expect.any(String) }])
      expect((await ask(at, 'GET', '/me/memory/usage')).json).toMatchObject({ bytes_used: 20, objects: 1 })
    }
  }, 60_000)

  test('a share that one process retires is closed to sessions on the other process with their next call', async () => {
    const path = '/me/memory/o?key=shared/two/note'
    expect((await ask(0, 'POST', '/me/memory/shares', JSON.stringify({ space: 'two' }), json)).status).toBe(201)
    expect((await ask(1, 'PUT', path, 'x')).status).toBe(200)
    expect((await ask(0, 'DELETE', '/me/memory/shares/two')).status).toBe(200)
    expect([(await ask(1, 'GET', path)).status, (await ask(1, 'PUT', path, 'y')).status]).toEqual([403, 403])
  })
})
