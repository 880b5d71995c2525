import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { perPersonMax } from '../../../src/gateway/hints/stream-registry.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import { type HintReader, listenForHints } from '../../harness/hint-reader.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { type S3TestServer, startS3Server } from '../../harness/s3-server.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'

/** The longest time from a change at one process to its hint at another. A machine that runs other tests gets a second more for a single change. */
const promisedMs = 2_000
/** The promise itself, which the median of several changes keeps. */
const secondMs = 1_000
const timedChanges = 5

const addMember = statement<[orgId: number], { userId: number }>(
  'test.hints_add_member',
  `with person as (insert into users (email, name, created_at) values ('member-' || gen_random_uuid() || '@people.test', 'M', now()) returning id)
   insert into org_members (org_id, user_id, role, created_at) select $1::int, id, 'member', now() from person returning user_id as "userId"`,
)

const ownerOf = statement<[orgId: number], { userId: number }>(
  'test.hints_owner',
  `select user_id as "userId" from org_members where org_id = $1::int and role = 'owner' order by user_id limit 1`,
)

describe.runIf(onPostgres)('hints from another process', () => {
  let store: S3TestServer
  let receiver: WebhookReceiver
  let fleet: Fleet
  let here: GatewayProcess
  let there: GatewayProcess
  let owner: string
  let member: string
  let memberId: number
  let ownerId: number
  beforeAll(async () => {
    ;[store, receiver] = await Promise.all([startS3Server(), startWebhookReceiver()])
    fleet = await startFleet({ KEEP_ALIVE_MS: '500', OUTBOUND_ALLOW: `${store.hostPort},${receiver.hostPort}` })
    ;[here, there] = await Promise.all([fleet.start(), fleet.start()])
    owner = await fleet.signIn()
    ownerId = (await fleet.db.one(ownerOf, fleet.orgId)).userId
    memberId = (await fleet.db.one(addMember, fleet.orgId)).userId
    member = await fleet.signIn(memberId)
  }, 120_000)
  afterAll(async () => {
    await fleet?.stop()
    await Promise.all([store?.close(), receiver?.close()])
  })

  /** Changes something at the first process. */
  const change = async (cookie: string, method: string, path: string, body?: unknown): Promise<{ id: number; key: string }> => {
    const json = body === undefined ? {} : { headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(here.baseUrl + path, { method, headers: { cookie }, ...json })
    expect(response.ok, `${method} ${path} ${response.status}`).toBe(true)
    return (await response.json()) as { id: number; key: string }
  }
  const listen = async (cookie: string): Promise<HintReader> => {
    const reader = await listenForHints(there.baseUrl, cookie)
    expect(reader.status).toBe(200)
    return reader
  }
  const complete = (key: string) =>
    call(here, key, 'POST', '/v1/chat/completions', { model: 'fixed-model', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] })

  test('CAPI-06 what changes at one process is a hint at the other within a second, nothing that the session may not see; a silent stream sends a comment, and a person has a bounded number of streams', async () => {
    const [ofOwner, ofMember] = [await listen(owner), await listen(member)]
    const key = await change(owner, 'POST', '/me/keys', { name: 'seen elsewhere' })
    await ofOwner.seen('key', promisedMs)
    await change(owner, 'PATCH', `/me/keys/${key.id}`, { budget_inr: 50 })
    await Promise.all([`key:${key.id}`, `budget:key:${key.id}`].map(topic => ofOwner.seen(topic, promisedMs)))
    const waits: number[] = []
    for (let time = 0; time < timedChanges; time++) {
      const timed = await change(owner, 'POST', '/me/keys', { name: `timed ${time}` })
      const startedMs = performance.now()
      await change(owner, 'PATCH', `/me/keys/${timed.id}`, { budget_inr: 50 })
      await ofOwner.seen(`budget:key:${timed.id}`, promisedMs)
      waits.push(performance.now() - startedMs)
    }
    expect(waits.sort((a, b) => a - b)[Math.floor(timedChanges / 2)]).toBeLessThan(secondMs)
    const agent = await change(owner, 'POST', '/me/agents', { name: 'seen elsewhere' })
    await ofOwner.seen('agent', promisedMs)
    await change(owner, 'PATCH', `/me/agents/${agent.id}`, { max_output_tokens: 10 })
    await ofOwner.seen(`agent:${agent.id}`, promisedMs)
    expect((await complete(key.key)).status).toBe(200)
    await Promise.all(['usage', `budget:org:${fleet.orgId}`].map(topic => ofOwner.seen(topic, promisedMs)))
    await ofMember.seen('usage', promisedMs)
    const webhook = await change(owner, 'POST', '/me/webhooks', { url: `${receiver.url}/hook` })
    await ofOwner.seen('webhook', promisedMs)
    await change(owner, 'POST', `/me/webhooks/${webhook.id}/test`, {})
    await ofOwner.seen(`webhook:${webhook.id}`, promisedMs)
    const { endpoint, bucket, accessKey, secretKey } = store
    await change(owner, 'PUT', '/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey })
    const keys = ['agents/seen.md', `users/${ownerId}/private.md`]
    for (const path of keys) await change(owner, 'PUT', `/me/memory/o?key=${encodeURIComponent(path)}`, { text: 'seen' })
    await Promise.all(keys.map(path => ofOwner.seen(`memory:${path}`, promisedMs)))
    await change(owner, 'PATCH', `/me/members/${memberId}`, { capabilities: ['audit:view'] })
    await ofOwner.seen(`member:${memberId}`, promisedMs)
    // The rights of the member have changed, so this stream ends after what it may see.
    await ofMember.ended(promisedMs)
    expect(ofMember.topics.filter(topic => !['usage', 'memory:agents/seen.md', `member:${memberId}`, 'session'].includes(topic))).toEqual([])
    await until(() => ofOwner.text().includes(': keep-alive'), 'a comment in a silence', 5_000)
    const others = await Promise.all(Array.from({ length: perPersonMax - 1 }, () => listen(owner)))
    expect((await listenForHints(there.baseUrl, owner)).status).toBe(503)
    await Promise.all(others.map(reader => reader.close()))
    await Promise.all([ofOwner, ofMember].map(reader => reader.close()))
  })

  test('a role that changes at one process ends the stream at the other, and so does a session that ends', async () => {
    const [one, two] = [await listen(owner), await listen(member)]
    await change(owner, 'PATCH', `/me/members/${memberId}`, { role: 'admin' })
    await two.ended(promisedMs)
    expect(two.topics.at(-1)).toBe('session')
    const again = await listen(member)
    await change(owner, 'POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 1_000 })
    await again.seen(`budget:org:${fleet.orgId}`, promisedMs)
    const response = await fetch(`${here.baseUrl}/auth/logout`, { method: 'POST', headers: { cookie: member } })
    expect(response.status).toBe(200)
    await again.ended(promisedMs)
    await one.close()
  })

  test('a process that ends with SIGTERM ends its streams immediately', async () => {
    const third = await fleet.start({ DRAIN_MS: '60000' })
    const reader = await listenForHints(third.baseUrl, owner)
    expect(reader.status).toBe(200)
    const startedMs = performance.now()
    expect(await third.terminate()).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(40_000)
    await reader.ended()
  })
})
