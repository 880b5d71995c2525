/** Lists the deliveries of an endpoint for its organisation, and queues pings and repeated deliveries. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { AddressTests } from '../../../platform/security/address-tests.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { EventData } from '../events/event-catalog.ts'
import { envelopeOf, eventId, waitingMax } from '../events/events.ts'
import { findWebhook } from '../webhook-queries.ts'
import { lockedWebhook, noWebhook } from '../webhooks.ts'
import {
  countWaiting,
  type DeliveryDetail,
  type DeliveryRow,
  findDelivery,
  insertPing,
  listDeliveries,
  readDelivery,
  requeueDelivery,
} from './delivery-list-queries.ts'
import { deliveryIdOf } from './signature.ts'

export interface WebhookDeliveriesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly addressTests: Pick<AddressTests, 'take'>
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliveryRow[]
  /** The `before` of the next page. Null on the last page. */
  readonly nextBefore: bigint | null
}

const pingData: EventData['ping'] = { message: 'A test of this webhook. Nothing has happened.' }

export class WebhookDeliveries {
  readonly #deps: WebhookDeliveriesDeps
  constructor(deps: WebhookDeliveriesDeps) {
    this.#deps = deps
  }

  /** Returns deliveries, newest event first. Throws `not_found` for an unknown endpoint. */
  async list(orgId: number, endpointId: number, { before, limit }: { before: bigint | null; limit: number }): Promise<DeliveryPage> {
    const { db } = this.#deps
    if ((await db.maybe(findWebhook, orgId, endpointId)) === null) throw noWebhook()
    const found = await db.many(listDeliveries, orgId, endpointId, before, limit + 1)
    const deliveries = found.slice(0, limit)
    return { deliveries, nextBefore: found.length > limit ? (deliveries.at(-1)?.eventSeq ?? null) : null }
  }

  /** Returns a delivery with its envelope and its last attempts. Throws `not_found`. */
  async get(orgId: number, endpointId: number, deliveryName: string): Promise<DeliveryDetail> {
    const { db } = this.#deps
    const id = deliveryIdOf(deliveryName)
    if ((await db.maybe(findWebhook, orgId, endpointId)) === null) throw noWebhook()
    const found = id === null ? null : await db.maybe(readDelivery, orgId, endpointId, id)
    if (found === null) throw noDelivery(endpointId)
    return found
  }

  /**
   * Queues a ping, whatever events the endpoint subscribes to. A pause of the endpoint does not delay it. Throws `not_found` and
   * `rate_limit_exceeded`. Throws `bad_request` for a disabled endpoint, and `org_limit_reached` when `waitingMax` deliveries wait for it.
   */
  ping(orgId: number, endpointId: number): Promise<DeliveryRow> {
    const { db, clock, ids, addressTests } = this.#deps
    addressTests.take(orgId)
    const atMs = clock.nowMs()
    const event = { id: eventId(ids, atMs), orgId, type: 'ping' as const, atMs, data: pingData }
    return db.tx(async tx => {
      await requireEnabled(tx, orgId, endpointId)
      await requireRoom(tx, endpointId)
      const created = BigInt(Math.floor(atMs / 1000))
      return tx.one(insertPing, orgId, endpointId, event.id, created, JSON.stringify(event.data), envelopeOf(event), new Date(atMs), ids.uuidv7(atMs))
    })
  }

  /**
   * Queues a delivery again, whatever its state. It has the same event, bytes and delivery id, and is due now. The count of attempts continues, and
   * the schedule of retries starts again. Throws `not_found` and `rate_limit_exceeded`. Throws `bad_request` for a disabled endpoint and for an event
   * that is no longer stored. Throws `org_limit_reached` when `waitingMax` other deliveries wait for the endpoint.
   */
  redeliver(orgId: number, endpointId: number, deliveryName: string): Promise<DeliveryRow> {
    const { db, clock, addressTests } = this.#deps
    addressTests.take(orgId)
    const id = deliveryIdOf(deliveryName)
    return db.tx(async tx => {
      const { enabled } = await lockedWebhook(tx, orgId, endpointId)
      const delivery = id === null ? null : await tx.maybe(findDelivery, orgId, endpointId, id)
      if (id === null || delivery === null) throw noDelivery(endpointId)
      if (!enabled) throw disabled()
      if (!delivery.hasBody) throw fail('bad_request', { message: 'The event of this delivery is no longer kept, so it cannot be sent again.' })
      if (!delivery.isWaiting) await requireRoom(tx, endpointId)
      return tx.one(requeueDelivery, orgId, endpointId, id, new Date(clock.nowMs()))
    })
  }
}

const noDelivery = (endpointId: number) =>
  fail('not_found', { message: `There is no such delivery. GET /me/webhooks/${endpointId}/deliveries lists those that are kept.` })

const disabled = () =>
  fail('bad_request', { message: 'This webhook is disabled: nothing is sent to it. Enable it first: PATCH /me/webhooks/{id} with "enabled": true.' })

async function requireEnabled(tx: Tx, orgId: number, endpointId: number): Promise<void> {
  const { enabled } = await lockedWebhook(tx, orgId, endpointId)
  if (!enabled) throw disabled()
}

/** Throws `org_limit_reached` when too many deliveries wait for the endpoint. The caller has locked it. */
async function requireRoom(tx: Tx, endpointId: number): Promise<void> {
  if ((await tx.one(countWaiting, endpointId, waitingMax)).count < waitingMax) return
  throw fail('org_limit_reached', {
    message: `${waitingMax} deliveries wait for this webhook, which is the most. Wait until its receiver has accepted some, or disable the webhook, which ends them.`,
  })
}
