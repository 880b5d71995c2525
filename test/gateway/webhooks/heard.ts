import { expect } from 'vitest'
import { type EventType, eventCatalog } from '../../../src/gateway/webhooks/events/event-catalog.ts'
import { statement } from '../../../src/platform/db/db.ts'
import type { TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import type { WebhookReceiver } from '../../harness/webhook-receiver.ts'

const openDeliveries = statement<[], { count: bigint }>('test.open_deliveries', 'select count(*) as "count" from webhook_deliveries where due_at is not null')

export interface Envelope {
  readonly id: string
  readonly type: EventType
  readonly created: number
  readonly org_id: number
  // biome-ignore lint/suspicious/noExplicitAny: the data depends on the type of the event; `checked` has compared the data with the catalog.
  readonly data: any
}

/** Registers an endpoint with that path at the receiver, over the console. Returns its id. */
export async function listen(app: TestApp, receiver: WebhookReceiver, path: string, params: object, cookie: string): Promise<number> {
  const made = await app.call('POST', '/me/webhooks', { url: receiver.url + path, ...params }, { cookie })
  expect(made.status, made.text).toBe(201)
  return made.json.id
}

/** Waits until all usage is written and all deliveries are sent. */
export async function settled(app: TestApp): Promise<void> {
  await until(
    async () => {
      await app.gateway.app.limits.flushNow()
      return (await app.db.one(openDeliveries)).count === 0n
    },
    'nothing is left to send',
    20_000,
  )
}

/**
 * Returns what the receiver got at a path. Checks each event against the catalog: it has no field that the catalog does not name, and no delivery
 * comes twice.
 */
export function heard(receiver: WebhookReceiver, path: string, type?: EventType): Envelope[] {
  const all = receiver.at(path).map(({ json, event, earlier }): Envelope => {
    const envelope: Envelope = json
    expect(Object.keys(envelope)).toEqual(['id', 'type', 'created', 'org_id', 'data'])
    expect([event, earlier]).toEqual([envelope.type, 0])
    expect(envelope.id).toMatch(/^evt_[0-9a-f]{32}$/)
    expect([Number.isInteger(envelope.created), Number.isInteger(envelope.org_id)]).toEqual([true, true])
    expect(eventCatalog[envelope.type].data.strict().parse(envelope.data)).toEqual(envelope.data)
    return envelope
  })
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  return type === undefined ? all : all.filter(envelope => envelope.type === type)
}
