import { type AddressInfo, createServer, type LookupFunction } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pauseMs, retrySchedule } from '../../../src/gateway/webhooks/delivery/schedule.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type DeliverySetup, type DeliveryState, startDelivery, type TestEndpoint } from './delivery-setup.ts'

const mails = statement<[orgId: number], { template: string; data: unknown }>(
  'test.webhook_mails',
  `select template, data from emails where org_id = $1::int order by id`,
)
const auditLines = statement<[orgId: number], { kind: string; act: string; target: string; outcome: string }>(
  'test.webhook_audit_lines',
  `select actor_kind as "kind", act, target, outcome from audit_log where org_id = $1::int order by id`,
)
const queueByHand = statement<[id: string]>('test.webhook_queue_by_hand', `update webhook_deliveries set queued_after = attempts where id = $1::uuid`)
const minuteMs = 60_000

describe('the result of a delivery attempt', () => {
  let setup: DeliverySetup
  let receiver: WebhookReceiver

  beforeAll(async () => {
    setup = await startDelivery()
  })
  afterAll(() => setup.database.dispose())
  beforeEach(async () => {
    receiver = await startWebhookReceiver()
  })
  afterEach(async () => {
    await receiver.close()
    await setup.stopAll()
    await setup.db.script('delete from webhook_deliveries; delete from webhook_endpoints')
  })

  /** Waits until `attempts` attempts are recorded, and returns the first delivery of the endpoint. */
  const attempted = async (endpoint: TestEndpoint, attempts = 1): Promise<DeliveryState> => {
    const first = async () => (await endpoint.deliveries())[0]
    await until(async () => {
      const row = await first()
      return row !== undefined && row.attempts >= attempts && row.claimedUntil === null
    }, `${attempts} attempts noted`)
    const row = await first()
    if (row === undefined) throw new Error('no delivery')
    return row
  }

  const endsOf = async (endpoints: ReadonlyMap<string, TestEndpoint>): Promise<Record<string, unknown[]>> => {
    const ends: Record<string, unknown[]> = {}
    for (const [path, endpoint] of endpoints) {
      const { status, code, error } = await attempted(endpoint)
      ends[path] = [status, code, error]
    }
    return ends
  }

  test('only a 2xx reply acknowledges a delivery; every other result has its own code, and a redirect is not followed', async () => {
    const closed = await startWebhookReceiver()
    await closed.close()
    const answers = {
      '/ok': { status: 204 },
      '/huge': 'huge',
      '/reset': 'reset',
      '/moved': { status: 307, headers: { location: `${receiver.url}/elsewhere` } },
      '/no': { status: 400, body: 'no' },
      '/broken': { status: 500 },
    } as const
    receiver.answer(({ path }) => answers[path as keyof typeof answers] ?? {})
    const orgId = await setup.newOrg()
    const endpoints = new Map<string, TestEndpoint>()
    for (const path of Object.keys(answers)) endpoints.set(path, await setup.endpoint(receiver.url + path, orgId))
    endpoints.set('/refused', await setup.endpoint(`${closed.url}/refused`, orgId))
    await setup.emit(orgId)
    setup.worker({ timeoutMs: 20_000 })
    expect(await endsOf(endpoints)).toEqual({
      '/ok': ['acknowledged', 204, null],
      '/huge': ['acknowledged', 200, null],
      '/reset': ['failed', null, 'connection_reset'],
      '/moved': ['failed', 307, 'redirect'],
      '/no': ['failed', 400, 'http_status'],
      '/broken': ['failed', 500, 'http_status'],
      '/refused': ['failed', null, 'connection_refused'],
    })
    expect(receiver.at('/elsewhere')).toEqual([])
    await until(() => receiver.openAt('/huge').now === 0, 'what is cut off is closed')
  })

  test('the status counts even when the body of the reply fails, and an invalid reply has its own code', async () => {
    const answers: Readonly<Record<string, string>> = {
      '/hints': 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.0 202 Accepted\r\n\r\nold',
      '/no-content': 'HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n{}',
      '/breaks-off': 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}',
      '/gzip': 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}',
      '/gone': 'HTTP/1.1 410 Gone\r\ncontent-length: 100\r\n\r\n{}',
      '/other': '220 mail.test ESMTP\r\n',
      '/head': `HTTP/1.1 200 OK\r\nx-long: ${'y'.repeat(100_000)}\r\n\r\n`,
    }
    const server = createServer(socket => {
      socket.on('error', () => undefined)
      socket.once('data', head => socket.end(answers[/^POST (\S+)/.exec(String(head))?.[1] ?? ''] ?? ''))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    const orgId = await setup.newOrg()
    const endpoints = new Map<string, TestEndpoint>()
    const { port } = server.address() as AddressInfo
    for (const path of Object.keys(answers)) endpoints.set(path, await setup.endpoint(`http://127.0.0.1:${port}${path}`, orgId))
    await setup.emit(orgId)
    setup.worker({ timeoutMs: 20_000 })
    expect(await endsOf(endpoints)).toEqual({
      '/hints': ['acknowledged', 202, null],
      '/no-content': ['acknowledged', 204, null],
      '/breaks-off': ['acknowledged', 200, null],
      '/gzip': ['acknowledged', 200, null],
      '/gone': ['dead', 410, 'gone'],
      '/other': ['failed', null, 'bad_reply'],
      '/head': ['failed', null, 'bad_reply'],
    })
    server.close()
  })

  test('an attempt fails at the timeout when the receiver does not answer or its reply never ends', async () => {
    receiver.answer(({ path }) => (path === '/hang' ? 'hang' : 'drip'))
    const orgId = await setup.newOrg()
    const endpoints = new Map<string, TestEndpoint>()
    for (const path of ['/hang', '/drip']) endpoints.set(path, await setup.endpoint(receiver.url + path, orgId))
    await setup.emit(orgId)
    setup.worker({ timeoutMs: 300 })
    expect(await endsOf(endpoints)).toEqual({ '/hang': ['failed', null, 'timeout'], '/drip': ['failed', null, 'timeout'] })
    await until(() => receiver.openAt('/hang').now + receiver.openAt('/drip').now === 0, 'the connections are closed')
  })

  test('a private address gets no connection and no data, whatever name resolves to it', async () => {
    // The name is resolved for every connection. The address that it had when the endpoint was saved does not matter.
    const lookup: LookupFunction = (hostname, options, callback) => {
      const addresses = (hostname === 'both.test' ? ['203.0.113.10', '127.0.0.1'] : ['127.0.0.1']).map(address => ({ address, family: 4 }))
      if (options.all) callback(null, addresses)
      else callback(null, '127.0.0.1', 4)
    }
    const { port } = new URL(receiver.url)
    const orgId = await setup.newOrg()
    const endpoints: TestEndpoint[] = []
    for (const url of [`https://127.0.0.1:${port}/a`, `http://hooks.test:${port}/a`, `https://home.test:${port}/a`, `https://both.test:${port}/a`])
      endpoints.push(await setup.endpoint(url, orgId))
    await setup.emit(orgId)
    setup.worker({ allow: [], lookup })
    for (const endpoint of endpoints) expect(await attempted(endpoint)).toMatchObject({ status: 'failed', code: null, error: 'blocked_address' })
    expect(receiver.received).toEqual([])
  })

  test('retries come slightly after their scheduled time, and after the last retry the delivery is dead', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    receiver.answer({ status: 500 })
    await setup.emit(endpoint.orgId)
    setup.worker({ retryS: '10,600' })
    for (const [attempt, waitMs] of [10_000, 600_000].entries()) {
      const beforeMs = setup.clock.nowMs()
      const { status, dueAt } = await attempted(endpoint, attempt + 1)
      expect(status).toBe('failed')
      const waitsMs = (dueAt?.getTime() ?? 0) - beforeMs
      expect(waitsMs).toBeGreaterThan(waitMs - 2_000)
      expect(waitsMs).toBeLessThan(waitMs * 1.1 + 2_000)
      setup.clock.advance(waitMs * 1.1)
    }
    expect(await setup.settled(endpoint)).toMatchObject([{ status: 'dead', attempts: 3, code: 500, dueAt: null }])
    const [first, ...others] = receiver.received
    expect(others).toHaveLength(2)
    for (const other of others) {
      expect(other.deliveryId).toBe(first?.deliveryId)
      expect(other.raw.equals(first?.raw ?? Buffer.alloc(0))).toBe(true)
      expect(other.signature).not.toBe(first?.signature)
    }
  })

  test('a Retry-After of the receiver is respected up to a limit', async () => {
    const [seconds, date, greedy] = [
      await setup.endpoint(`${receiver.url}/seconds`),
      await setup.endpoint(`${receiver.url}/date`),
      await setup.endpoint(`${receiver.url}/greedy`),
    ]
    const inMinutes = new Date(setup.clock.nowMs() + 20 * minuteMs).toUTCString()
    const asked: Readonly<Record<string, string>> = { '/seconds': '900', '/date': inMinutes, '/greedy': '999999999' }
    receiver.answer(({ path }) => ({ status: path === '/date' ? 503 : 429, headers: { 'retry-after': asked[path] ?? '' } }))
    for (const { orgId } of [seconds, date, greedy]) await setup.emit(orgId)
    setup.worker({ retryS: '5,300' })
    const waitMinutes = async (endpoint: TestEndpoint): Promise<number> =>
      ((await attempted(endpoint)).dueAt?.getTime() ?? 0) / minuteMs - setup.clock.nowMs() / minuteMs
    for (const [endpoint, minutes] of [
      [seconds, 15],
      [date, 20],
      [greedy, 60],
    ] as const) {
      const waits = await waitMinutes(endpoint)
      expect(waits).toBeGreaterThan(minutes - 0.5)
      expect(waits).toBeLessThan(minutes * 1.1 + 0.5)
    }
    const pauseMs = ((await greedy.state()).pausedUntil?.getTime() ?? 0) - setup.clock.nowMs()
    expect(pauseMs).toBeLessThanOrEqual(5 * minuteMs)
    expect(pauseMs).toBeGreaterThan(4 * minuteMs)
  })

  test('a failing endpoint gets one delivery at a time, with pauses that double; waiting deliveries lose no attempt, and a manually queued one is sent immediately', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    receiver.answer({ status: 503 })
    await setup.emit(endpoint.orgId, 6)
    setup.worker({ concurrency: 1 })
    for (const failures of [2, 3]) {
      await until(async () => (await endpoint.state()).failures === failures, `${failures} failures`)
      const pauseMs = ((await endpoint.state()).pausedUntil?.getTime() ?? 0) - setup.clock.nowMs()
      expect(pauseMs).toBeLessThanOrEqual(1000 * 2 ** (failures - 2))
      expect(pauseMs).toBeGreaterThan(0)
      if (failures < 3) setup.clock.advance(pauseMs)
    }
    expect((await endpoint.deliveries()).map(({ attempts }) => attempts)).toEqual([1, 1, 1, 0, 0, 0])
    const asked = (await endpoint.deliveries())[5]
    receiver.answer({})
    await setup.db.exec(queueByHand, asked?.id ?? '')
    await until(async () => (await endpoint.deliveries())[5]?.status === 'acknowledged', 'the one that was asked for')
    // The success of this delivery ends the pause for the other deliveries.
    await until(async () => (await endpoint.deliveries()).slice(3).every(({ status }) => status === 'acknowledged'), 'the waiting ones')
    expect(await endpoint.state()).toMatchObject({ failures: 0, pausedUntil: null })
  })

  test('one failure delays only its own delivery, unless the receiver sends Retry-After', async () => {
    const [endpoint, asks] = [await setup.endpoint(`${receiver.url}/a`), await setup.endpoint(`${receiver.url}/asks`)]
    const { orgId } = endpoint
    const ids = await setup.emit(orgId, 6)
    receiver.answer(({ path, json }) =>
      path === '/asks' ? { status: 429, headers: { 'retry-after': '20' } } : json.id === ids[0] || json.id === ids[3] ? { status: 500 } : {},
    )
    setup.worker({ concurrency: 1 })
    await until(async () => (await endpoint.deliveries()).filter(({ status }) => status === 'acknowledged').length === 4, 'all but the two that fail')
    expect((await endpoint.deliveries()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(
      [0, 1, 2, 3, 4, 5].map(place => (place % 3 === 0 ? 'failed 1' : 'acknowledged 1')),
    )
    expect(receiver.openAt('/a').max).toBe(1)
    await setup.emit(asks.orgId, 2)
    await attempted(asks)
    const pauseMs = ((await asks.state()).pausedUntil?.getTime() ?? 0) - setup.clock.nowMs()
    expect(Math.round(pauseMs / 10_000)).toBe(2)
  })

  test('consecutive failures disable the endpoint once: it gets a reason, open deliveries are dead, each owner gets one mail, and there is one audit line', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/secret-path?token=x`)
    const [first, second] = [setup.worker({ failuresMax: 4, timeoutMs: 5_000 }), setup.worker({ failuresMax: 4, timeoutMs: 5_000 })]
    receiver.answer({ status: 500 })
    await setup.emit(endpoint.orgId, 9)
    await until(async () => {
      setup.clock.advance(minuteMs)
      return !(await endpoint.state()).enabled
    }, 'disabled')
    await Promise.all([first(), second()])
    expect(await endpoint.state()).toMatchObject({ enabled: false, reason: 'too_many_failures', failures: 4, pausedUntil: null })
    const rows = await endpoint.deliveries()
    expect(new Set(rows.map(({ status, dueAt }) => `${status} ${dueAt}`))).toEqual(new Set(['dead null']))
    const sent = await setup.db.many(mails, endpoint.orgId)
    expect(sent).toMatchObject([{ template: 'webhook_disabled', data: { host: new URL(receiver.url).host } }])
    expect(JSON.stringify(sent)).not.toContain('secret-path')
    expect(await setup.db.many(auditLines, endpoint.orgId)).toEqual([
      { kind: 'system', act: 'disableWebhook', target: `webhook=${endpoint.id}`, outcome: 'ok' },
    ])
  })

  test('a reply of 410 disables the endpoint immediately', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    receiver.answer({ status: 410 })
    await setup.emit(endpoint.orgId, 1)
    setup.worker()
    expect(await setup.settled(endpoint)).toMatchObject([{ status: 'dead', code: 410 }])
    expect(await endpoint.state()).toMatchObject({ enabled: false, reason: 'gone' })
    expect(await setup.db.many(mails, endpoint.orgId)).toHaveLength(1)
    // The disabled endpoint does not receive this event.
    await setup.emit(endpoint.orgId)
    expect(await endpoint.deliveries()).toHaveLength(1)
  })
})

test('an invalid schedule of retries prevents the start, and the error shows the accepted form', () => {
  for (const wrong of [['0'], ['-5'], ['5', 'soon'], ['1.5'], ['99999999'], []])
    expect(() => retrySchedule(wrong)).toThrow(/^WEBHOOK_RETRY_S must list .*such as/)
  expect(retrySchedule(['5', '300']).waitsMs).toEqual([5_000, 300_000])
})

test('twenty consecutive failures take about an hour', () => {
  const pausesMs = Array.from({ length: 19 }, (_, before) => pauseMs(before + 1, null))
  expect(pausesMs.slice(0, 4)).toEqual([0, 1_000, 2_000, 4_000])
  expect(Math.round(pausesMs.reduce((sum, ms) => sum + ms, 0) / minuteMs)).toBe(54)
})
