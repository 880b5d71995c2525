/** Deliveries when the process that sends them dies, and when several processes send. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet } from '../../harness/fleet.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'

const states = statement<[endpointId: number], { status: string; attempts: number }>(
  'test.webhook_fleet_states',
  `select status, attempts from webhook_deliveries where endpoint_id = $1::int order by event_seq`,
)

describe.runIf(onPostgres)('webhooks in several processes', () => {
  let fleet: Fleet
  let receiver: WebhookReceiver
  let cookie: string
  beforeAll(async () => {
    receiver = await startWebhookReceiver()
    fleet = await startFleet({ OUTBOUND_ALLOW: receiver.hostPort, WEBHOOK_POLL_MS: '50', WEBHOOK_TIMEOUT_MS: '1000', WEBHOOK_CONCURRENCY: '2' })
    cookie = await fleet.signIn()
  })
  afterAll(async () => {
    await fleet?.stop()
    await receiver?.close()
  })

  const post = async (process: { readonly baseUrl: string }, path: string, body: object) => {
    const response = await fetch(`${process.baseUrl}${path}`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    expect(response.ok, text).toBe(true)
    return JSON.parse(text)
  }

  test('when a process is killed between sending a delivery and recording its result, another process sends it again with the same id and bytes and another t', async () => {
    const first = await fleet.start()
    const { id } = await post(first, '/me/webhooks', { url: `${receiver.url}/killed`, event_types: ['key.created'] })
    receiver.answer('hang')
    await post(first, '/me/keys', { name: 'killed' })
    await receiver.untilReceived(1, '/killed')
    await first.kill()
    // The delivery has reached the receiver, but the process that waits for the reply is dead.
    expect(await fleet.db.many(states, id)).toEqual([{ status: 'pending', attempts: 1 }])
    receiver.answer({})
    await fleet.start()
    const [before, after] = await receiver.untilReceived(2, '/killed')
    await until(async () => (await fleet.db.many(states, id))[0]?.status === 'acknowledged', 'acknowledged')
    expect(after?.deliveryId).toBe(before?.deliveryId)
    expect(after?.raw.equals(before?.raw ?? Buffer.alloc(0))).toBe(true)
    expect(after?.signature).not.toBe(before?.signature)
    expect(receiver.at('/killed')).toHaveLength(2)
  })

  test('three processes together send each delivery once, and never send more deliveries to one endpoint concurrently than WEBHOOK_CONCURRENCY', async () => {
    const process = await fleet.start()
    await fleet.start()
    const { id } = await post(process, '/me/webhooks', { url: `${receiver.url}/shared`, event_types: ['key.created'] })
    // Each reply takes a moment, so that attempts of several processes overlap.
    receiver.answer(() => ({ after: new Promise(done => setTimeout(done, 30)) }))
    for (let made = 0; made < 30; made++) await post(process, '/me/keys', { name: `shared ${made}` })
    await until(async () => {
      const rows = await fleet.db.many(states, id)
      return rows.length === 30 && rows.every(({ status }) => status === 'acknowledged')
    }, 'everything is acknowledged')
    expect(receiver.at('/shared').filter(({ earlier }) => earlier > 0)).toEqual([])
    expect(receiver.at('/shared')).toHaveLength(30)
    expect(receiver.openAt('/shared').max).toBe(2)
    expect(await fleet.db.many(states, id)).toEqual(Array.from({ length: 30 }, () => ({ status: 'acknowledged', attempts: 1 })))
  })
})
