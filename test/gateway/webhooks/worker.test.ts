import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type DeliverySetup, startDelivery } from './delivery-setup.ts'

const lapse = statement<[endpointId: number]>(
  'test.webhook_lapse',
  `update webhook_deliveries set claimed_until = now() - interval '1 second' where endpoint_id = $1::int`,
)

describe('the delivery worker', () => {
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

  test('many deliveries arrive in the order of their events, never with more concurrent ones than the endpoint allows', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    const ids = await setup.emit(endpoint.orgId, 20)
    setup.worker({ concurrency: 1 })
    await setup.settled(endpoint)
    expect(receiver.received.map(({ json }) => json.id)).toEqual(ids)
    expect(receiver.openAt('/a').max).toBe(1)
  })

  test("two workers never send the same delivery concurrently, and together never exceed an endpoint's concurrency", async () => {
    const [a, b] = [await setup.endpoint(`${receiver.url}/a`), await setup.endpoint(`${receiver.url}/b`)]
    await setup.emit(a.orgId, 40)
    await setup.emit(b.orgId, 40)
    setup.worker({ concurrency: 3 })
    setup.worker({ concurrency: 3 })
    await setup.settled(a)
    await setup.settled(b)
    expect(receiver.received.filter(({ earlier }) => earlier > 0)).toEqual([])
    expect(receiver.received).toHaveLength(80)
    expect(receiver.openAt('/a').max).toBeLessThanOrEqual(3)
    expect(receiver.openAt('/b').max).toBeLessThanOrEqual(3)
  })

  test('a receiver that hangs delays no other endpoint, and only its own deliveries wait', async () => {
    const [slow, quick] = [await setup.endpoint(`${receiver.url}/slow`), await setup.endpoint(`${receiver.url}/quick`)]
    receiver.answer(({ path }) => (path === '/slow' ? 'hang' : {}))
    await setup.emit(slow.orgId, 20)
    await setup.emit(quick.orgId, 20)
    setup.worker({ timeoutMs: 10_000 })
    await setup.settled(quick)
    expect(receiver.at('/slow')).toHaveLength(4)
    expect(receiver.openAt('/slow').now).toBe(4)
    expect((await slow.deliveries()).filter(({ attempts }) => attempts === 0)).toHaveLength(16)
  })

  test('slow receivers do not delay fast ones, however many slow ones there are', async () => {
    const orgId = await setup.newOrg()
    const slow = []
    for (let made = 0; made < 24; made++) slow.push(await setup.endpoint(`${receiver.url}/slow`, orgId))
    const quick = await setup.endpoint(`${receiver.url}/quick`)
    receiver.answer(({ path }) => (path === '/slow' ? 'hang' : {}))
    await setup.emit(orgId, 2)
    setup.worker({ timeoutMs: 6_000, places: 8 })
    await receiver.untilReceived(8, '/slow')
    await setup.emit(quick.orgId, 30)
    await setup.settled(quick)
    // No request to a slow receiver has ended.
    expect(receiver.openAt('/slow').now).toBe(receiver.at('/slow').length)
    expect(receiver.at('/slow').length).toBeLessThanOrEqual(32)
    expect((await slow[0]?.state())?.failures).toBe(0)
  })

  test('a delivery that has arrived is not sent again when its result could not be recorded while the database was unavailable', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    await setup.db.script(
      `create function test_away() returns trigger language plpgsql as 'begin raise exception ''away''; end';
       create trigger test_away before update on webhook_deliveries for each row when (new.status = 'acknowledged') execute function test_away()`,
    )
    await setup.emit(endpoint.orgId)
    setup.worker({ timeoutMs: 200 })
    await receiver.untilReceived(1)
    await until(() => setup.logLines.some(line => line.includes('webhook_outcome_waits')), 'a line in the log')
    await setup.db.script('drop trigger test_away on webhook_deliveries; drop function test_away()')
    expect(await setup.settled(endpoint)).toMatchObject([{ status: 'acknowledged', attempts: 1 }])
    expect(receiver.received).toHaveLength(1)
  })

  test('when the process of a delivery dies, the delivery is sent again with the same id and bytes after its claim has expired', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    await setup.emit(endpoint.orgId)
    receiver.answer('hang')
    setup.worker({ timeoutMs: 500 })
    const [first] = await receiver.untilReceived(1)
    // This is what a process leaves behind when it dies here: its claim expires, and no result is recorded.
    const other = setup.worker()
    receiver.answer({})
    await setup.db.exec(lapse, endpoint.id)
    const [, second] = await receiver.untilReceived(2)
    expect(second?.deliveryId).toBe(first?.deliveryId)
    expect(second?.raw.equals(first?.raw ?? Buffer.alloc(0))).toBe(true)
    const [settled] = await setup.settled(endpoint)
    expect(settled).toMatchObject({ status: 'acknowledged', code: 200, attempts: 2 })
    // The first attempt ends by its timeout, after the result of the second was recorded. It changes nothing.
    await until(() => receiver.openAt('/a').now === 0, 'the first attempt ends')
    await other()
    await setup.stopAll()
    expect(await endpoint.deliveries()).toEqual([settled])
    expect(await endpoint.state()).toMatchObject({ failures: 0, pausedUntil: null })
  })

  test('a stop waits for running attempts, and returns unfinished ones to the queue', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    const [endsSoon, endsNever] = [await setup.endpoint(`${receiver.url}/soon`), endpoint]
    let open = (): void => {}
    const after = new Promise<void>(done => {
      open = done
    })
    receiver.answer(({ path }) => (path === '/soon' ? { after } : 'hang'))
    await setup.emit(endsSoon.orgId)
    await setup.emit(endsNever.orgId)
    const stop = setup.worker({ timeoutMs: 60_000 })
    await receiver.untilReceived(2)
    const stopped = stop()
    await setup.emit(endsSoon.orgId)
    open()
    await stopped
    expect(await endsSoon.deliveries()).toMatchObject([{ status: 'acknowledged' }, { status: 'pending', attempts: 0, claimedUntil: null }])
    expect(await endsNever.deliveries()).toMatchObject([{ status: 'pending', attempts: 0, claimedUntil: null, error: null }])
    expect(await endsNever.state()).toMatchObject({ failures: 0 })
  })

  test('a clock that is set back delays no delivery for long, and a clock that is set forward sends deliveries early', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    const dayMs = 24 * 3600_000
    receiver.answer(({ earlier }) => (earlier === 0 ? { status: 500 } : {}))
    setup.clock.advance(3 * dayMs)
    await setup.emit(endpoint.orgId)
    const stop = setup.worker()
    await until(async () => (await endpoint.state()).failures === 1, 'a failure in days to come')
    await stop()
    const [id] = await setup.emit(endpoint.orgId)
    receiver.answer({})
    setup.clock.advance(-3 * dayMs)
    // Because of the clock, both deliveries are due in three days, and the endpoint is paused until then.
    setup.worker()
    expect((await setup.settled(endpoint)).map(({ status }) => status)).toEqual(['acknowledged', 'acknowledged'])
    expect(receiver.received.map(({ json }) => json.id)).toContain(id)

    receiver.answer(({ earlier }) => (earlier === 0 ? { status: 500 } : {}))
    const later = await setup.endpoint(`${receiver.url}/b`)
    await setup.emit(later.orgId)
    await until(async () => (await later.state()).failures === 1, 'a failure now')
    setup.clock.advance(dayMs)
    expect(await setup.settled(later)).toMatchObject([{ status: 'acknowledged', attempts: 2 }])
  })

  test('a delivery that an event leaves at a closed endpoint is ended without being sent', async () => {
    const [disabled, deleted] = [await setup.endpoint(`${receiver.url}/a`), await setup.endpoint(`${receiver.url}/b`)]
    await setup.emit(disabled.orgId, 2)
    await setup.emit(deleted.orgId)
    await setup.db.script(
      `update webhook_endpoints set enabled = false, disabled_reason = 'manual' where id = ${disabled.id}; delete from webhook_endpoints where id = ${deleted.id}`,
    )
    setup.worker()
    for (const endpoint of [disabled, deleted]) {
      for (const row of await setup.settled(endpoint)) expect(row).toMatchObject({ status: 'dead', error: 'endpoint_closed', attempts: 0 })
    }
    expect(receiver.received).toEqual([])
  })

  test('a delivery ends when its event is no longer stored; it does not end when its secret is sealed under another master key', async () => {
    const [gone, foreign] = [await setup.endpoint(`${receiver.url}/a`), await setup.endpoint(`${receiver.url}/b`)]
    await setup.emit(gone.orgId)
    await setup.emit(foreign.orgId)
    await setup.db.script(`delete from webhook_events where org_id = ${gone.orgId}`)
    await setup.db.script(
      `update webhook_endpoints set secret_sealed = (select secret_sealed from webhook_endpoints where id = ${gone.id}) where id = ${foreign.id}`,
    )
    setup.worker()
    expect(await setup.settled(gone)).toMatchObject([{ status: 'dead', error: 'event_not_kept' }])
    await until(() => setup.logLines.some(line => line.includes('webhook_secret_does_not_open')), 'a line in the log')
    await setup.stopAll()
    expect(await foreign.deliveries()).toMatchObject([{ status: 'pending', attempts: 0, claimedUntil: null }])
    expect(await foreign.state()).toMatchObject({ failures: 0 })
    expect(receiver.received).toEqual([])
  })
  test('a delivery whose processes always die is given up after the last retry of the schedule, without another attempt', async () => {
    const endpoint = await setup.endpoint(`${receiver.url}/a`)
    await setup.emit(endpoint.orgId)
    await setup.db.script(`update webhook_deliveries set attempts = 4 where endpoint_id = ${endpoint.id}`)
    setup.worker()
    expect(await setup.settled(endpoint)).toMatchObject([{ status: 'dead', error: 'outcomes_lost' }])
    expect(receiver.received).toEqual([])
    expect(await endpoint.state()).toMatchObject({ enabled: true, failures: 0 })
  })
})
