/** Memory with several gateway processes on one PostgreSQL database and one bucket. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { onPostgres } from '../harness/database.ts'
import { type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'

const usage = statement<[orgId: number], { usedBytes: bigint; reservedBytes: bigint; indexed: bigint; intents: bigint }>(
  'test.memory_usage_of_fleet',
  `select u.used_bytes as "usedBytes", u.reserved_bytes as "reservedBytes",
     (select coalesce(sum(size_bytes), 0)::bigint from memory_objects o where o.org_id = $1::int) as indexed,
     (select count(*) from memory_intents i where i.org_id = $1::int) as intents
   from memory_usage u where u.org_id = $1::int`,
)

describe.runIf(onPostgres)('memory over several processes', () => {
  let fleet: Fleet
  let server: S3TestServer
  let second: S3TestServer
  let members: GatewayProcess[]
  beforeAll(async () => {
    server = await startS3Server()
    second = await startS3Server('second')
    fleet = await startFleet({ OUTBOUND_ALLOW: `${server.hostPort},${second.hostPort}`, MEMORY_INTENT_MS: '4000', STORE_TIMEOUT_MS: '20000' })
    members = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    const put = await ask(members[0], 'PUT', '/v1/me/memory-store', JSON.stringify(config({ history_versions: 0 })), json)
    expect(put.status).toBe(200)
  }, 120_000)
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
    await second?.close()
  })

  const config = (more: object) => ({ endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey, ...more })
  const json = { 'content-type': 'application/json' }
  const o = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
  const ask = async (member: GatewayProcess | undefined, method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${member?.baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${fleet.key}`, ...headers },
      ...(body === undefined ? {} : { body }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const expectAgreement = async (bucket = server): Promise<void> => {
    const bytes = [...bucket.objects]
      .filter(([key]) => key.startsWith(`org-${fleet.orgId}/`))
      .reduce((sum, [, object]) => sum + BigInt(object.bytes.length), 0n)
    await until(async () => (await fleet.db.one(usage, fleet.orgId)).intents === 0n, 'every write is settled')
    expect(await fleet.db.one(usage, fleet.orgId)).toEqual({ usedBytes: bytes, reservedBytes: 0n, indexed: bytes, intents: 0n })
  }

  test('fifty compare-and-swap writers on three processes lose no update, and every writer gets its turn', async () => {
    await ask(members[0], 'PUT', o('agents/counter'), '')
    let busy = 0
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const member = members[n % 3]
        for (let tries = 0; tries < 400; tries++) {
          const read = await ask(member, 'GET', o('agents/counter'))
          const put = await ask(member, 'PUT', o('agents/counter'), `${read.text}${n};`, { 'if-match': read.headers.get('etag') ?? '' })
          if (put.status === 200) return
          expect([409, 412]).toContain(put.status)
          if (put.status === 409) {
            busy++
            expect(put.headers.get('retry-after')).toBe('1')
          }
        }
        throw new Error('a writer never got its turn')
      }),
    )
    const numbers = (await ask(members[1], 'GET', o('agents/counter'))).text.split(';').filter(Boolean).map(Number)
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n))
    expect(busy).toBeLessThan(100)
    await expectAgreement()
  }, 120_000)

  test('the quota is exact to the byte over all processes', async () => {
    const before = await fleet.db.one(usage, fleet.orgId)
    await ask(members[0], 'PUT', '/v1/me/memory-store', JSON.stringify({ quota_mb: 1 }), json)
    const room = 1024 * 1024 - Number(before.usedBytes)
    const size = Math.floor(room / 10)
    const replies = await Promise.all(Array.from({ length: 30 }, (_, n) => ask(members[n % 3], 'PUT', o(`agents/q${n}`), 'x'.repeat(size))))
    expect(replies.filter(reply => reply.status === 200)).toHaveLength(10)
    expect(replies.filter(reply => reply.status === 413)).toHaveLength(20)
    await expectAgreement()
    await ask(members[0], 'PUT', '/v1/me/memory-store', JSON.stringify({ quota_mb: 100 }), json)
  }, 60_000)

  test('when a process is killed after the store has its write and before the database settles it, another process settles the write', async () => {
    const victim = await fleet.start()
    let reached = (): void => {}
    const written = new Promise<void>(resolve => {
      reached = resolve
    })
    // The store has the object, but its reply waits until the process is dead.
    let letGo = (): void => {}
    const held = new Promise<void>(resolve => {
      letGo = resolve
    })
    server.faults.beforeWrite = async key => {
      if (!key.endsWith('agents/killed')) return
      reached()
      await held
    }
    const lost = ask(victim, 'PUT', o('agents/killed'), '12345').catch(() => 'died')
    const alsoLost = ask(victim, 'PUT', o('agents/queued'), 'never sent by now').catch(() => 'died')
    await written
    await victim.kill()
    expect(await lost).toBe('died')
    await alsoLost
    letGo()
    server.faults.beforeWrite = async () => {}
    await until(() => server.objects.has(`org-${fleet.orgId}/agents/killed`), 'the store has the object')
    expect((await fleet.db.one(usage, fleet.orgId)).intents).toBeGreaterThanOrEqual(1n)
    // When the intent expires, the sweep of a living process resolves it.
    await expectAgreement()
    expect((await ask(members[0], 'GET', o('agents/killed'))).text).toBe('12345')
    expect((await ask(members[1], 'PUT', o('agents/killed'), 'next')).status).toBe(200)
    await expectAgreement()
  }, 120_000)

  test('after a store is reconfigured on one process, all processes immediately use the new configuration', async () => {
    const { endpoint, bucket, accessKey, secretKey } = second
    const body = { endpoint, bucket, access_key: accessKey, secret_key: secretKey, confirm_path_change: true }
    const put = await ask(members[0], 'PUT', '/v1/me/memory-store', JSON.stringify(body), json)
    expect(put.status).toBe(200)
    // No process may count a write for a place that it did not write to, even if it has not yet received the change.
    const replies = await Promise.all(members.flatMap(member => [1, 2, 3].map(n => ask(member, 'PUT', o(`agents/after${n}`), member.baseUrl))))
    expect(replies.map(reply => reply.status)).toEqual(replies.map(() => 200))
    for (const member of members) expect((await ask(member, 'GET', o('agents/after1'))).status).toBe(200)
    expect([...second.objects.keys()].filter(key => key.includes('agents/after')).length).toBe(3)
    await expectAgreement(second)
  })
})
