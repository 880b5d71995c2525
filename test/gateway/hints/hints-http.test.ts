/** The stream of hints in one process: what is sent, to whom, and how it ends. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { perPersonMax } from '../../../src/gateway/hints/stream-registry.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { type HintReader, listenForHints } from '../../harness/hint-reader.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'

const addChildren = statement<[orgId: number, parentId: number, count: number]>(
  'test.add_children',
  `insert into agents (org_id, name, parent_id, depth, created_at)
   select $1::int, 'child ' || n, $2::int, 1, now() from generate_series(1, $3::int) n`,
)

/** The promise is a second. A machine that runs other tests gets two more. */
const promisedMs = 3_000

describe('hints for open consoles', () => {
  let app: TestApp
  let clock: MovableClock
  let receiver: WebhookReceiver
  let owner: string
  let admin: TestMember
  let member: TestMember
  let stranger: string
  const open: HintReader[] = []
  beforeAll(async () => {
    clock = movableClock()
    receiver = await startWebhookReceiver()
    app = await startApp({
      clock,
      env: {
        CONSOLE_RPM: '100000',
        KEEP_ALIVE_MS: '500',
        WEBHOOK_POLL_MS: '20',
        OUTBOUND_ALLOW: receiver.hostPort,
        HINT_STREAMS_MAX: '60',
        FOLDER_STORE: 'on',
      },
    })
    owner = await app.signIn()
    admin = await app.newMember('admin')
    member = await app.newMember('member')
    const other = await app.otherOrg('Others')
    stranger = await app.signIn(other.userId, other.orgId)
  }, 60_000)
  afterEach(async () => {
    await Promise.all(open.splice(0).map(reader => reader.close()))
  })
  afterAll(async () => {
    await app?.stop()
    await receiver?.close()
  })

  const listen = async (cookie: string): Promise<HintReader> => {
    const reader = await listenForHints(app.baseUrl, cookie)
    expect(reader.status, reader.text()).toBe(200)
    open.push(reader)
    return reader
  }
  const ask = (cookie: string, method: string, path: string, body?: unknown) => app.call(method, path, body, { cookie })
  const complete = (token = app.key) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }] }, { token })
  /** Changes something that everyone may see, and waits for its hint: whatever was sent before it has then arrived. */
  const settle = async (...readers: readonly HintReader[]) => {
    const { userId } = await app.newMember('member')
    await ask(owner, 'PATCH', `/me/members/${userId}`, { capabilities: ['audit:view'] })
    await Promise.all(readers.map(reader => reader.seen(`member:${userId}`)))
  }

  test('a stream begins immediately, is not stored, and sends a comment in a silence', async () => {
    const reader = await listen(owner)
    expect(reader.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(reader.headers.get('cache-control')).toBe('no-store')
    await until(() => reader.text().includes(': connected\n\n'), 'the beginning', promisedMs)
    await until(() => reader.text().includes(': keep-alive\n\n'), 'a comment', 3_000)
    expect(reader.topics).toEqual([])
  })

  test('each kind of change is a topic without data', async () => {
    const reader = await listen(owner)
    const key = (await ask(owner, 'POST', '/me/keys', { name: 'hinted key' })).json
    await reader.seen('key', promisedMs)
    await ask(owner, 'PATCH', `/me/keys/${key.id}`, { budget_inr: 5 })
    await Promise.all([`key:${key.id}`, `budget:key:${key.id}`].map(topic => reader.seen(topic, promisedMs)))
    const agent = await app.newAgent('hinted agent')
    await reader.seen('agent', promisedMs)
    reader.clear()
    await ask(owner, 'PATCH', `/me/agents/${agent.id}`, { max_output_tokens: 100 })
    await reader.seen(`agent:${agent.id}`, promisedMs)
    reader.clear()
    expect((await complete(agent.token)).status).toBe(200)
    await Promise.all(['usage', `agent:${agent.id}`, `budget:agent:${agent.id}`, `budget:org:${app.orgId}`].map(topic => reader.seen(topic, 2 * promisedMs)))
    await ask(owner, 'POST', '/me/members', { email: 'invited@people.test', role: 'member' })
    await reader.seen('member', promisedMs)
    expect(
      reader
        .text()
        .replaceAll(/^data: \{"topic":"[a-z]+(:[a-z]+)?(:\d+)?"\}$/gm, '')
        .replaceAll(/^: (connected|keep-alive)$/gm, '')
        .trim(),
    ).toBe('')
  })

  test('deliveries of a webhook are topics for owners and admins', async () => {
    const [ofOwner, ofMember] = [await listen(owner), await listen(member.cookie)]
    const made = await ask(owner, 'POST', '/me/webhooks', { url: `${receiver.url}/hinted` })
    expect(made.status, made.text).toBe(201)
    await ofOwner.seen('webhook', promisedMs)
    ofOwner.clear()
    await ask(owner, 'POST', `/me/webhooks/${made.json.id}/test`, {})
    await ofOwner.seen(`webhook:${made.json.id}`, promisedMs)
    await until(async () => (await ask(owner, 'GET', `/me/webhooks/${made.json.id}/deliveries`)).json.deliveries[0]?.status === 'acknowledged', 'the delivery')
    await settle(ofOwner, ofMember)
    expect(ofMember.topics.filter(topic => topic.startsWith('webhook'))).toEqual([])
  })

  test('a member receives hints of their own keys and agents only, and an admin those of everybody', async () => {
    const [ofAdmin, ofMember] = [await listen(admin.cookie), await listen(member.cookie)]
    const own = (await ask(member.cookie, 'POST', '/me/keys', { name: 'own key' })).json
    const ownAgent = (await ask(member.cookie, 'POST', '/me/agents', { name: 'own agent' })).json
    const others = (await ask(owner, 'POST', '/me/keys', { name: 'key of the owner' })).json
    const othersAgent = (await ask(owner, 'POST', '/me/agents', { name: 'agent of the owner' })).json
    for (const { id } of [own, others]) await ask(owner, 'PATCH', `/me/keys/${id}`, { rpm_limit: 9 })
    for (const { id } of [ownAgent, othersAgent]) await ask(owner, 'PATCH', `/me/agents/${id}`, { max_output_tokens: 9 })
    await complete(others.key)
    await Promise.all([own, others].map(({ id }) => ofAdmin.seen(`key:${id}`)))
    await Promise.all([ownAgent, othersAgent].map(({ id }) => ofAdmin.seen(`agent:${id}`)))
    await ofMember.seen('usage')
    await settle(ofMember)
    expect(ofMember.topics.filter(topic => /^(key|agent):/.test(topic)).sort()).toEqual([`agent:${ownAgent.id}`, `key:${own.id}`])
    expect(ofMember.topics.filter(topic => topic.startsWith('budget'))).toEqual([])
    expect(ofMember.topics.filter(topic => topic === 'key' || topic === 'agent')).toEqual(['key', 'agent'])
  })

  test('another organisation receives nothing', async () => {
    const [here, there] = [await listen(owner), await listen(stranger)]
    const { id } = (await ask(owner, 'POST', '/me/keys', { name: 'not for others' })).json
    await ask(owner, 'PATCH', `/me/keys/${id}`, { budget_inr: 1 })
    await complete()
    await Promise.all([`key:${id}`, 'usage'].map(topic => here.seen(topic)))
    await settle(here)
    expect(there.topics).toEqual([])
    await until(() => there.text().includes('keep-alive'), 'the stream lives')
  })

  test('an act that changes very many agents resets the streams of its organisation and of no other', async () => {
    const family = (await ask(owner, 'POST', '/me/agents', { name: 'a large family' })).json
    await app.db.exec(addChildren, app.orgId, family.id, 1_500)
    const [here, there] = [await listen(owner), await listen(stranger)]
    expect((await ask(owner, 'POST', `/me/agents/${family.id}/revoke`)).status).toBe(200)
    await here.seen('reset', 2 * promisedMs)
    await settle(here)
    await until(() => there.text().includes('keep-alive'), 'the stream lives')
    expect(there.topics).toEqual([])
  })

  test('memory is a topic for those who may read the path', async () => {
    const store = await ask(owner, 'PUT', '/me/memory-store', { store: 'folder' })
    expect(store.status, store.text).toBe(200)
    const [ofOwner, ofMember, ofStranger] = [await listen(owner), await listen(member.cookie), await listen(stranger)]
    const put = (cookie: string, key: string) => app.call('PUT', `/me/memory/o?key=${encodeURIComponent(key)}`, 'text', { cookie })
    expect((await put(owner, 'agents/shared.md')).status).toBe(200)
    expect((await put(owner, `users/${app.userId}/private.md`)).status).toBe(200)
    expect((await put(member.cookie, `users/${member.userId}/own.md`)).status).toBe(200)
    await Promise.all(['agents/shared.md', `users/${app.userId}/private.md`].map(key => ofOwner.seen(`memory:${key}`, 2 * promisedMs)))
    await Promise.all(['agents/shared.md', `users/${member.userId}/own.md`].map(key => ofMember.seen(`memory:${key}`, 2 * promisedMs)))
    await settle(ofOwner, ofMember)
    expect(ofMember.topics.filter(topic => topic.includes('private'))).toEqual([])
    expect(ofOwner.topics.filter(topic => topic.includes('own.md'))).toEqual([])
    expect(ofStranger.topics).toEqual([])
  })

  test('a topic goes out at most once a second, and many topics become their family', async () => {
    const reader = await listen(owner)
    const { id } = (await ask(owner, 'POST', '/me/keys', { name: 'often changed' })).json
    const startedMs = performance.now()
    for (let i = 1; i <= 30; i++) await ask(owner, 'PATCH', `/me/keys/${id}`, { rpm_limit: i })
    const seconds = (performance.now() - startedMs) / 1000
    await settle(reader)
    const sent = reader.topics.filter(topic => topic === `key:${id}`).length
    expect(sent).toBeGreaterThanOrEqual(1)
    expect(sent).toBeLessThanOrEqual(Math.ceil(seconds) + 2)
    reader.clear()
    const keys = await Promise.all(Array.from({ length: 80 }, (_, at) => app.newKey({ name: `one of many ${at}` })))
    await Promise.all(keys.map(({ keyId }) => app.gateway.app.keys.setEnabled(app.orgId, keyId, false)))
    await reader.seen('key')
    expect(reader.topics.length).toBeLessThanOrEqual(70)
  })

  test('a session that ends, moves, or has another role ends its stream immediately, and the next stream has the new rights', async () => {
    const person = await app.newMember('admin')
    const second = await app.signIn(person.userId)
    const one = await listen(person.cookie)
    const two = await listen(second)
    await ask(person.cookie, 'POST', '/auth/logout')
    await one.ended(promisedMs)
    expect(one.topics.at(-1)).toBe('session')
    expect(two.isOver()).toBe(false)
    await ask(owner, 'PATCH', `/me/members/${person.userId}`, { role: 'member' })
    await two.ended(promisedMs)
    const again = await listen(second)
    await ask(owner, 'POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 1_000_000 })
    await settle(again)
    expect(again.topics.filter(topic => topic.startsWith('budget'))).toEqual([])
    const made = await ask(second, 'POST', '/me/orgs', { name: 'A second organisation' })
    expect((await ask(second, 'POST', '/me/orgs/switch', { org_id: made.json.id })).status).toBe(200)
    await again.ended(promisedMs)
    const last = await listen(second)
    await ask(owner, 'DELETE', `/me/members/${person.userId}`)
    await complete()
    expect(last.topics).toEqual([])
    expect((await listenForHints(app.baseUrl, person.cookie)).status).toBe(401)
  })

  test('an API key is refused, an agent token may not listen, and HEAD opens no stream', async () => {
    const agent = await app.newAgent('a listener')
    expect((await app.call('GET', '/me/events')).status).toBe(401)
    expect((await app.call('GET', '/me/events', undefined, { token: agent.token })).status).toBe(403)
    expect((await ask(owner, 'HEAD', '/me/events')).status).toBe(405)
  })

  test('one person has a bounded number of streams, and a closed one gives its place back', async () => {
    const person = await app.newMember('member')
    const readers = await Promise.all(Array.from({ length: perPersonMax }, () => listen(person.cookie)))
    const refused = await ask(person.cookie, 'GET', '/me/events')
    expect([refused.status, refused.json.error.code, refused.json.limit_name]).toEqual([503, 'temporarily_unavailable', 'hint_streams_per_person'])
    expect(refused.headers.get('retry-after')).toBe('15')
    await readers[0]?.close()
    await until(async () => (await ask(person.cookie, 'GET', '/me/events')).status === 200, 'a free place')
  })

  test('a process has a bounded number of streams, of which an organisation has a share', async () => {
    const people = await Promise.all(Array.from({ length: 4 }, () => app.newMember('member')))
    let refused: Awaited<ReturnType<typeof ask>> | null = null
    for (const person of people) {
      for (let i = 0; i < perPersonMax && refused === null; i++) {
        const reader = await listenForHints(app.baseUrl, person.cookie)
        open.push(reader)
        if (reader.status !== 200) refused = await ask(person.cookie, 'GET', '/me/events')
      }
    }
    expect([refused?.status, refused?.json.limit_name, refused?.json.scope]).toEqual([503, 'HINT_STREAMS_MAX', 'org'])
    expect((await listen(stranger)).status).toBe(200)
  })

  test('a session that expires ends its stream', async () => {
    const person = await app.newMember('member')
    const reader = await listen(person.cookie)
    clock.advance(400 * 86_400_000)
    try {
      const { userId } = await app.newMember('member')
      await ask(await app.signIn(), 'PATCH', `/me/members/${userId}`, { capabilities: ['audit:view'] })
      await reader.ended()
    } finally {
      clock.advance(-400 * 86_400_000)
    }
  })
})

test('open streams do not hold the end of a gateway', async () => {
  const app = await startApp({ env: { DRAIN_MS: '60000' } })
  const reader = await listenForHints(app.baseUrl, await app.signIn())
  await until(() => reader.text().includes('connected'), 'the beginning')
  const startedMs = performance.now()
  await app.stop()
  expect(performance.now() - startedMs).toBeLessThan(30_000)
  await reader.ended()
})
