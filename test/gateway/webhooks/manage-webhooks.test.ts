/** How owners and admins manage webhooks. The worker does not run here, so queued deliveries stay queued. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { subscribable } from '../../../src/gateway/webhooks/events/event-catalog.ts'
import { waitingMax } from '../../../src/gateway/webhooks/events/events.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'

const deliveriesOf = statement<[orgId: number, endpointId: number], { type: string; status: string; error: string | null; isSettled: boolean }>(
  'test.webhooks_deliveries_of',
  `select type, status, error, settled_at is not null and due_at is null as "isSettled" from webhook_deliveries
   where org_id = $1::int and endpoint_id = $2::int order by event_seq`,
)
const noteFailing = statement<[id: number]>(
  'test.webhooks_note_failing',
  `update webhook_endpoints set failures = 7, paused_until = now() + interval '5 minutes' where id = $1::int`,
)
const healthOf = statement<[id: number], { failures: number; isPaused: boolean }>(
  'test.webhooks_health_of',
  'select failures, paused_until is not null as "isPaused" from webhook_endpoints where id = $1::int',
)
const actsOf = statement<[orgId: number], { act: string; target: string | null; outcome: string | null }>(
  'test.webhooks_acts_of',
  'select act, target, outcome from audit_log where org_id = $1::int order by id',
)
/** Inserts endpoints to which nothing is sent. */
const fill = statement<[orgId: number, count: number]>(
  'test.webhooks_fill',
  `insert into webhook_endpoints (org_id, url, subscribe_all, secret_sealed, created_at)
   select $1::int, 'https://hooks.example.com/', true, '', now() from generate_series(1, $2::int)`,
)

/** Inserts deliveries that wait. */
const fillQueue = statement<[orgId: number, endpointId: number, count: number]>(
  'test.webhooks_fill_queue',
  `insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, due_at, created_at)
   select gen_random_uuid(), $1::int, $2::int, 'evt_fill', 0, 'ping', now(), now() from generate_series(1, $3::int)`,
)
const waitingOf = statement<[endpointId: number], { count: number }>(
  'test.webhooks_waiting_of',
  'select count(*)::int as "count" from webhook_deliveries where endpoint_id = $1::int and due_at is not null',
)

const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
const https = 'https://hooks.example.com/brigade?tenant=7'

describe('management of webhooks', () => {
  let app: TestApp
  let owner: string
  beforeAll(async () => {
    app = await startApp({
      env: { WEBHOOK_POLL_MS: '3600000', OUTBOUND_ALLOW: 'receiver.internal:8080', WEBHOOK_ENDPOINTS_MAX: '100' },
      lookup: (host, _options, done) => {
        const address = { 'inside.example.com': '10.1.2.3', localhost: '127.0.0.1', 'hooks.example.com': '93.184.216.34' }[host]
        if (host === 'slow.example') done(Object.assign(new Error('try again'), { code: 'EAI_AGAIN' }), '', 0)
        else if (address === undefined) done(Object.assign(new Error(`no ${host}`), { code: 'ENOTFOUND' }), '', 0)
        else done(null, [{ address, family: 4 }], 4)
      },
    })
    owner = await app.signIn()
  })
  afterAll(() => app.stop())

  const ask = (method: string, path: string, body?: unknown, cookie = owner): Promise<TestReply> => app.call(method, `/me/webhooks${path}`, body, { cookie })
  const make = (more: object = {}, cookie = owner): Promise<TestReply> => ask('POST', '', { url: https, ...more }, cookie)
  const newId = async (more: object = {}): Promise<number> => (await make(more)).json.id
  const listed = async (id: number, cookie = owner) => (await ask('GET', '', undefined, cookie)).json.webhooks.find((each: { id: number }) => each.id === id)
  const refusal = ({ status, json }: TestReply): [number, string] => [status, json.error.code]

  test('HOOK-01 SHAPE-35 an https URL is registered with 201; the secret is only in this reply, and caches may not store the reply', async () => {
    const made = await make({ description: ' Billing ', event_types: ['invoice.created', 'payment.captured'] })
    expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store'])
    const { secret, ...webhook } = made.json
    expect(secret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/)
    expect(webhook).toEqual({
      id: expect.any(Number),
      url: https,
      description: 'Billing',
      subscribe_all: false,
      event_types: ['invoice.created', 'payment.captured'],
      enabled: true,
      disabled_reason: null,
      dropped: 0,
      dropped_at: null,
      created_at: isoTime,
    })
    expect(await listed(webhook.id)).toEqual(webhook)
    expect((await make()).json.secret).not.toBe(secret)
  })

  test('HOOK-02 http, addresses that are not public and names of such addresses are 400 bad_request, and the message names the OUTBOUND_ALLOW entry that would permit them', async () => {
    for (const [url, entry] of [
      ['http://hooks.example.com/x', 'hooks.example.com:80'],
      ['http://hooks.example.com:8080/x', 'hooks.example.com:8080'],
      ['https://127.0.0.1/x', '127.0.0.1:443'],
      ['https://10.0.0.8:8443/x', '10.0.0.8:8443'],
      ['https://169.254.169.254/latest/meta-data', '169.254.169.254:443'],
      ['https://[::1]/x', '[::1]:443'],
      ['https://2130706433/x', '127.0.0.1:443'],
      ['https://localhost/x', 'localhost:443'],
      ['https://inside.example.com/x', 'inside.example.com:443'],
    ] as const) {
      const reply = await make({ url })
      expect(refusal(reply), url).toEqual([400, 'bad_request'])
      expect(reply.json.error.message, url).toContain('OUTBOUND_ALLOW')
      expect(reply.json.error.message, url).toContain(`listing ${entry} in`)
    }
    expect((await make({ url: 'http://receiver.internal:8080/x' })).status).toBe(201)
    expect(refusal(await make({ url: 'http://receiver.internal:8081/x' }))).toEqual([400, 'bad_request'])
  })

  test('an invalid URL is 400; a name for which the resolver has no answer now is accepted', async () => {
    for (const url of [
      '',
      'hooks.example.com',
      'ftp://hooks.example.com',
      'https://u:p@hooks.example.com/',
      `${https}#part`,
      `https://a.example/${'x'.repeat(2100)}`,
    ])
      expect(refusal(await make({ url })), url).toEqual([400, 'bad_request'])
    expect((await make({ url: ' https://slow.example/x ' })).json.url).toBe('https://slow.example/x')
  })

  test('EDGE-15 a webhook or own server at localhost., a name of the local network or an unknown name is 400 with the reason; OUTBOUND_ALLOW still permits it', async () => {
    const endpoint = (base_url: string, path = '/me/endpoints') =>
      app.call('POST', path, { name: 'Edge', model: 'test-model', base_url, upstream_model: 'm' }, { cookie: owner })
    for (const host of [
      ...[
        'localhost.',
        'LOCALHOST',
        'a.localhost',
        'localhost.localdomain',
        'metadata.google.internal',
        'metadata.google.internal.',
        'x.internal',
        'printer.local',
      ],
      'inside.example.com',
    ]) {
      const url = `https://${host}/v1`
      const replies = [await make({ url }), await endpoint(url), await endpoint(url, '/me/endpoints/test')]
      for (const reply of replies) {
        expect(refusal(reply), url).toEqual([400, 'bad_request'])
        expect(reply.json.error.message, url).toMatch(/leads? (inward|to a private)|leads to an address that is not public|reserved address/)
      }
    }
    const unknown = await make({ url: 'https://no-such-name.example/x' })
    expect([...refusal(unknown), unknown.json.error.message]).toEqual([
      400,
      'bad_request',
      expect.stringContaining('"no-such-name.example" in "url" does not resolve'),
    ])
    for (const path of ['/me/endpoints', '/me/endpoints/test']) {
      const reply = await endpoint('https://no-such-name.example/v1', path)
      expect(JSON.stringify(reply.json), path).toContain('does not resolve')
      expect([reply.status, reply.json.ok], path).toEqual(path.endsWith('test') ? [200, false] : [400, false])
    }
    expect((await make({ url: 'http://receiver.internal:8080/x' })).status).toBe(201)
    expect((await ask('GET', '')).text).not.toMatch(/no-such-name|metadata/)
  })

  test('an organisation has a limited number of tests of host names, for webhooks and alerts together; public names use up none', async () => {
    const other = await app.otherOrg('Many Names')
    const cookie = await app.signIn(other.userId, other.orgId)
    for (let count = 0; count < 70; count++) expect((await make({}, cookie)).status).toBe(201)
    const refused = []
    for (let count = 0; count < 60; count++) refused.push((await make({ url: `https://no-such-name-${count}.example/x` }, cookie)).status)
    expect(new Set(refused)).toEqual(new Set([400]))
    const limited = await make({ url: 'https://inside.example.com/x' }, cookie)
    expect([...refusal(limited), limited.headers.get('retry-after')]).toEqual([429, 'rate_limit_exceeded', expect.stringMatching(/^\d+$/)])
    expect((await make({ url: 'https://127.0.0.1/x' }, cookie)).status, 'what asks no name server is judged all the same').toBe(400)
    expect((await make()).status, 'and others go on').toBe(201)
  })

  test('HOOK-03 an unknown event type is 400 bad_request; the message names it and lists the valid ones', async () => {
    const id = await newId()
    for (const reply of [await make({ event_types: ['key.created', 'key.renamed'] }), await ask('PATCH', `/${id}`, { event_types: ['key.renamed'] })]) {
      expect(refusal(reply)).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('"key.renamed"')
      for (const type of subscribable) expect(reply.json.error.message).toContain(type)
    }
    expect((await make({ event_types: ['ping'] })).json.error.message).toContain('/test')
    expect(refusal(await make({ event_types: ['constructor'] }))).toEqual([400, 'bad_request'])
    expect((await listed(id)).subscribe_all).toBe(true)
  })

  test('HOOK-04 GET lists the endpoints, oldest first, without secrets, and the available events with the schema of their data', async () => {
    const { secret } = (await make()).json
    const { json, text } = await ask('GET', '')
    const ids = json.webhooks.map((each: { id: number }) => each.id)
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
    expect(json.events.map((event: { type: string }) => event.type)).toEqual(subscribable)
    expect(json.events.find((event: { type: string }) => event.type === 'budget.block')).toEqual({
      type: 'budget.block',
      family: 'budget',
      when: expect.stringContaining('100 %'),
      data_schema: expect.objectContaining({ type: 'object', required: ['scope', 'scope_id', 'threshold', 'spent_inr', 'cap_inr', 'period', 'resets_at'] }),
    })
    expect(text).not.toContain(secret)
    expect(text).not.toContain('whsec_')
  })

  test('HOOK-05 members and agents get 403 on every webhook route, and owners and admins do not; refused acts are in the audit trail', async () => {
    const id = await newId()
    const { did } = await ask('POST', `/${id}/test`, {}).then(reply => ({ did: reply.json.delivery.id }))
    const { cookie: member } = await app.newMember('member')
    const { cookie: admin } = await app.newMember('admin')
    const { token } = await app.newAgent('looker')
    const calls = [
      ['GET', '', undefined, 200],
      ['POST', '', { url: https }, 201],
      ['PATCH', `/${id}`, { description: 'x' }, 200],
      ['POST', `/${id}/rotate-secret`, {}, 200],
      ['POST', `/${id}/test`, {}, 200],
      ['GET', `/${id}/deliveries`, undefined, 200],
      ['POST', `/${id}/deliveries/${did}/redeliver`, {}, 200],
      ['DELETE', `/${id}`, undefined, 200],
    ] as const
    for (const [method, path, body] of calls) {
      expect(refusal(await ask(method, path, body, member)), `${method} ${path}`).toEqual([403, 'forbidden'])
      expect((await app.call(method, `/me/webhooks${path}`, body, { token })).status, `${method} ${path}`).toBe(403)
    }
    for (const [method, path, body, status] of calls) expect((await ask(method, path, body, admin)).status, `${method} ${path}`).toBe(status)
    const lines = await app.db.many(actsOf, app.orgId)
    for (const act of ['createWebhook', 'changeWebhook', 'rotateWebhookSecret', 'testWebhook', 'redeliverWebhookDelivery', 'deleteWebhook']) {
      expect(lines, act).toContainEqual({ act, target: act === 'createWebhook' ? null : expect.stringContaining(`id=${id}`), outcome: 'forbidden' })
      expect(lines.find(line => line.act === act && line.outcome === 'ok')?.target, act).toMatch(
        act === 'createWebhook' ? /^id=\d+$/ : new RegExp(`^id=${id}\\b`),
      )
    }
  })

  test('HOOK-06 PATCH disables and enables a webhook, and changes its events, subscribe_all and description; absent fields do not change', async () => {
    const id = await newId({ description: 'first' })
    const change = async (body: object) => (await ask('PATCH', `/${id}`, body)).json
    expect(await change({ event_types: ['key.revoked', 'key.created', 'key.revoked'] })).toMatchObject({
      subscribe_all: false,
      event_types: ['key.created', 'key.revoked'],
      description: 'first',
    })
    expect(await change({ description: 'second' })).toMatchObject({ subscribe_all: false, event_types: ['key.created', 'key.revoked'], description: 'second' })
    expect(await change({ subscribe_all: true })).toMatchObject({ subscribe_all: true, event_types: ['key.created', 'key.revoked'] })
    expect(await change({ subscribe_all: false })).toMatchObject({ subscribe_all: false, event_types: ['key.created', 'key.revoked'] })
    expect(await change({ enabled: false })).toMatchObject({ enabled: false, disabled_reason: 'manual', description: 'second' })
    expect(await change({ description: null })).toMatchObject({ enabled: false, disabled_reason: 'manual', description: '' })
    expect(await change({ enabled: true })).toMatchObject({ enabled: true, disabled_reason: null })
    expect(await change({})).toEqual({ ok: true, ...(await listed(id)) })
    expect(await listed(id)).toMatchObject({ url: https, enabled: true, subscribe_all: false, description: '' })
  })

  test('PATCH refuses another URL, an empty subscription and a description of several lines, and then changes nothing', async () => {
    const id = await newId({ event_types: ['credit.low'] })
    for (const body of [
      { url: 'https://elsewhere.example.com/', description: 'moved' },
      { event_types: [] },
      { subscribe_all: false, event_types: [] },
      { description: 'two\nlines' },
      { description: 'x'.repeat(201) },
      { enabled: 'no' },
    ])
      expect(refusal(await ask('PATCH', `/${id}`, body)), JSON.stringify(body)).toEqual([400, 'bad_request'])
    expect((await ask('PATCH', `/${id}`, { url: https })).json.error.message).toContain('POST /me/webhooks')
    expect(await listed(id)).toMatchObject({ url: https, description: '', event_types: ['credit.low'], subscribe_all: false, enabled: true })
    expect(refusal(await ask('PATCH', `/${await newId()}`, { subscribe_all: false }))).toEqual([400, 'bad_request'])
  })

  test('HOOK-31 a webhook without subscribe_all and event_types receives every event; with both, subscribe_all decides and the list is stored', async () => {
    expect((await make()).json).toMatchObject({ subscribe_all: true, event_types: [] })
    expect((await make({ subscribe_all: null, event_types: null })).json).toMatchObject({ subscribe_all: true, event_types: [] })
    expect((await make({ event_types: ['credit.low'] })).json).toMatchObject({ subscribe_all: false, event_types: ['credit.low'] })
    expect((await make({ subscribe_all: true, event_types: ['credit.low'] })).json).toMatchObject({ subscribe_all: true, event_types: ['credit.low'] })
    for (const nothing of [{ event_types: [] }, { subscribe_all: false }, { subscribe_all: false, event_types: [] }])
      expect(refusal(await make(nothing)), JSON.stringify(nothing)).toEqual([400, 'bad_request'])
  })

  test('HOOK-20 with subscribe_all false only the listed types are delivered', async () => {
    const some = await newId({ event_types: ['key.revoked'] })
    const all = await newId({ subscribe_all: true, event_types: ['key.revoked'] })
    const key = (await app.call('POST', '/me/keys', {}, { cookie: owner })).json
    await app.call('DELETE', `/me/keys/${key.id}`, undefined, { cookie: owner })
    const types = async (id: number) => (await ask('GET', `/${id}/deliveries`)).json.deliveries.map((each: { type: string }) => each.type)
    expect(await types(some)).toEqual(['key.revoked'])
    expect(await types(all)).toEqual(['key.revoked', 'key.created'])
  })

  test('HOOK-28 access.decided is in the catalog and can be subscribed to, but nothing in the gateway sends it', async () => {
    expect((await ask('GET', '')).json.events).toContainEqual(expect.objectContaining({ type: 'access.decided', when: expect.stringContaining('request') }))
    expect((await make({ event_types: ['access.decided'] })).status).toBe(201)
    const { paths, webhooks } = (await app.call('GET', '/openapi.json')).json
    expect(Object.keys(webhooks)).toContain('access.decided')
    // Definitions of tools are approved too, which is no decision about access.
    const deciding = Object.keys(paths).filter(path => /access|approv|decid|den(y|ied)/i.test(path))
    expect(deciding.filter(path => path !== '/me/tool-servers/{id}/tools/approve')).toEqual([])
  })

  test('HOOK-29 a test or a redelivery to a disabled endpoint is 400 bad_request, and the message says how to enable it', async () => {
    const id = await newId()
    const { delivery } = (await ask('POST', `/${id}/test`, {})).json
    await ask('PATCH', `/${id}`, { enabled: false })
    for (const path of [`/${id}/test`, `/${id}/deliveries/${delivery.id}/redeliver`]) {
      const reply = await ask('POST', path, {})
      expect(refusal(reply), path).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('"enabled": true')
    }
    expect((await ask('GET', `/${id}/deliveries`)).json.deliveries.map((each: { status: string }) => each.status)).toEqual(['dead'])
  })

  test('disabling a webhook ends its unsent deliveries; enabling it sets failures and pause to zero', async () => {
    const id = await newId()
    await ask('POST', `/${id}/test`, {})
    await app.db.exec(noteFailing, id)
    await ask('PATCH', `/${id}`, { description: 'still failing', enabled: true })
    expect(await app.db.one(healthOf, id)).toEqual({ failures: 7, isPaused: true })
    await ask('PATCH', `/${id}`, { enabled: false })
    await app.call('POST', '/me/keys', {}, { cookie: owner })
    await ask('PATCH', `/${id}`, { enabled: true })
    expect(await app.db.one(healthOf, id)).toEqual({ failures: 0, isPaused: false })
    expect(await app.db.many(deliveriesOf, app.orgId, id)).toEqual([{ type: 'ping', status: 'dead', error: 'endpoint_disabled', isSettled: true }])
  })

  test('a webhook has at most 5,000 waiting deliveries: further events are counted in its state, and a test or a redelivery is 409 org_limit_reached', async () => {
    expect(waitingMax).toBe(5_000)
    const happen = async (): Promise<void> => expect((await app.call('POST', '/me/keys', {}, { cookie: owner })).status).toBe(201)
    const id = await newId({ event_types: ['key.created'] })
    const neighbour = await newId({ event_types: ['key.created'] })
    const first = (await ask('POST', `/${id}/test`, {})).json.delivery
    await ask('PATCH', `/${id}`, { enabled: false })
    await ask('PATCH', `/${id}`, { enabled: true })
    await app.db.exec(fillQueue, app.orgId, id, waitingMax - 1)
    await happen()
    expect(await listed(id)).toMatchObject({ dropped: 0, dropped_at: null })
    await happen()
    await happen()
    expect(await listed(id)).toMatchObject({ dropped: 2, dropped_at: isoTime })
    expect(await app.db.one(waitingOf, id)).toEqual({ count: waitingMax })
    expect(await listed(neighbour)).toMatchObject({ dropped: 0, dropped_at: null })
    expect(await app.db.one(waitingOf, neighbour)).toEqual({ count: 3 })
    for (const path of [`/${id}/test`, `/${id}/deliveries/${first.id}/redeliver`]) {
      const reply = await ask('POST', path, {})
      expect(refusal(reply), path).toEqual([409, 'org_limit_reached'])
      expect(reply.json.error.message).toContain('5000 deliveries wait for this webhook')
    }
    const waiting = (await ask('GET', `/${id}/deliveries?limit=1`)).json.deliveries[0]
    expect((await ask('POST', `/${id}/deliveries/${waiting.id}/redeliver`, {})).status).toBe(200)
    expect((await ask('POST', `/${neighbour}/test`, {})).status).toBe(200)
    await ask('PATCH', `/${id}`, { enabled: false })
    await ask('PATCH', `/${id}`, { enabled: true })
    await happen()
    expect(await app.db.one(waitingOf, id)).toEqual({ count: 1 })
    expect(await listed(id)).toMatchObject({ dropped: 2 })
    expect((await ask('POST', `/${id}/deliveries/${first.id}/redeliver`, {})).status).toBe(200)
  })

  test('HOOK-26 DELETE removes a webhook and makes its pending deliveries dead; afterwards the webhook is 404', async () => {
    const id = await newId()
    await ask('POST', `/${id}/test`, {})
    expect((await ask('DELETE', `/${id}`)).json).toEqual({ ok: true })
    expect(await app.db.many(deliveriesOf, app.orgId, id)).toEqual([{ type: 'ping', status: 'dead', error: 'endpoint_deleted', isSettled: true }])
    expect(await listed(id)).toBeUndefined()
    for (const [method, path] of [
      ['GET', '/deliveries'],
      ['PATCH', ''],
      ['POST', '/test'],
      ['DELETE', ''],
    ] as const)
      expect(refusal(await ask(method, `/${id}${path}`, method === 'GET' || method === 'DELETE' ? undefined : {})), method).toEqual([404, 'not_found'])
  })

  test('HOOK-24 unknown ids, ids of another organisation and invalid ids are 404 on every webhook route', async () => {
    const other = await app.otherOrg('Elsewhere')
    const theirs = await app.signIn(other.userId, other.orgId)
    const id = await newId()
    const theirId = (await make({}, theirs)).json.id
    const { delivery } = (await ask('POST', `/${theirId}/test`, {}, theirs)).json
    for (const wrong of [theirId, 999_999, 0, -1, '1e3', 'abc', '99999999999', '%00'])
      for (const [method, path] of [
        ['PATCH', ''],
        ['DELETE', ''],
        ['POST', '/rotate-secret'],
        ['POST', '/test'],
        ['GET', '/deliveries'],
        ['POST', `/deliveries/${delivery.id}/redeliver`],
      ] as const) {
        const reply = await ask(method, `/${wrong}${path}`, method === 'GET' || method === 'DELETE' ? undefined : {})
        expect(refusal(reply), `${method} ${wrong}${path}`).toEqual([404, 'not_found'])
      }
    for (const did of [delivery.id, `dlv_${'0'.repeat(32)}`, 'dlv_1', '1', 'DLV_', delivery.id.toUpperCase()])
      expect(refusal(await ask('POST', `/${id}/deliveries/${did}/redeliver`, {})), did).toEqual([404, 'not_found'])
    expect(await listed(theirId, theirs)).toMatchObject({ enabled: true })
    expect((await ask('GET', `/${theirId}/deliveries`, undefined, theirs)).json.deliveries).toHaveLength(1)
  })

  test('HOOK-30 the secret is in no reply of GET and PATCH, no audit line and no log line, and is stored only in sealed form', async () => {
    const { id, secret } = (await make()).json
    const rotated = (await ask('POST', `/${id}/rotate-secret`, {})).json.secret
    const replies = [
      await ask('GET', ''),
      await ask('PATCH', `/${id}`, { description: 'x' }),
      await ask('PATCH', `/${id}`, { enabled: false }),
      await ask('PATCH', `/${id}`, { enabled: true }),
      await ask('POST', `/${id}/test`, {}),
      await ask('GET', `/${id}/deliveries`),
      await app.call('GET', '/me/audit', undefined, { cookie: owner }),
    ]
    const told = [...replies.map(reply => reply.text), ...app.logLines, await app.dump()].join('\n')
    for (const text of [secret, rotated, secret.slice(6), rotated.slice(6)]) expect(told).not.toContain(text)
  })

  test('an organisation has at most WEBHOOK_ENDPOINTS_MAX webhooks, also after concurrent requests', async () => {
    const other = await app.otherOrg('Crowd')
    const cookie = await app.signIn(other.userId, other.orgId)
    await app.db.exec(fill, other.orgId, 98)
    const replies = await Promise.all(Array.from({ length: 5 }, () => make({}, cookie)))
    expect(replies.map(reply => reply.status).sort()).toEqual([201, 201, 400, 400, 400])
    const full = await make({}, cookie)
    expect(refusal(full)).toEqual([400, 'cap'])
    expect(full.json.error.message).toContain('100')
  })
})
