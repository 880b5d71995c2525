import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { rowId } from '../../platform/values/row-id.ts'
import type { WebhookDeliveries } from './delivery/webhook-deliveries.ts'
import { describedEvents } from './events/event-schemas.ts'
import { deliveryDetail, deliveryDetailOf, deliveryView, deliveryViewOf, webhookView, webhookViewOf } from './webhook-views.ts'
import { noWebhook, type Webhooks } from './webhooks.ts'

const row = endpointOf<{ webhooks: Webhooks; webhookDeliveries: WebhookDeliveries }>()

const tag = 'webhooks'
/** Maximum length of the list. It is higher than the number of events, because a type may be repeated. A repeated type counts once. */
const eventTypesMax = 100
const pageDefault = 50
const pageMax = 200
const noStore = { 'cache-control': 'no-store' }

const path = z.object({ id: z.string().describe('Id of the webhook.') })
const deliveryPath = path.extend({ did: z.string().describe('Id of the delivery.') })
const withSecret = webhookView.extend({
  secret: z.string().describe('Key of the signature of every delivery, `whsec_` included. It is shown once.'),
})
const eventTypes = z.array(z.string()).max(eventTypesMax).nullish()
const queued = z.object({ ok: z.literal(true), delivery: deliveryView })

export const webhookEndpoints = {
  listWebhooks: row({
    at: 'GET /me/webhooks',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'The webhook endpoints of the organisation, oldest first, and all event types. Never a secret.',
    input: {},
    output: z.object({
      webhooks: z.array(webhookView),
      events: z.array(
        z.object({
          type: z.string(),
          family: z.string(),
          when: z.string().describe('When it fires.'),
          data_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of `data` in the envelope. Fields may be added.'),
        }),
      ),
    }),
    errors: ['forbidden'],
    handle: async ({ webhooks }, _input, call) => ({ webhooks: (await webhooks.list(call.principal.orgId)).map(webhookViewOf), events: describedEvents }),
  }),

  createWebhook: row({
    at: 'POST /me/webhooks',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Registers an https URL for events. The signing secret is in this reply and nowhere else.',
    input: {
      body: z.strictObject({
        url: z.string().describe('Where deliveries are posted: public https only, unless the operator permits more.'),
        subscribe_all: z.boolean().nullish().describe('Receive every event, also those of later versions. Default: true, but false when event_types is given.'),
        event_types: eventTypes.describe('Receive these; GET /me/webhooks lists them. Kept, but without effect, while subscribe_all is true.'),
        description: z.string().nullish().describe('For people: one line of plain text, at most 200 characters.'),
      }),
    },
    output: withSecret,
    status: 201,
    errors: ['forbidden', 'bad_request', 'cap', 'rate_limit_exceeded'],
    async handle({ webhooks }, { body }, call) {
      const params = { url: body.url, description: body.description ?? '', subscribeAll: body.subscribe_all ?? null, eventTypes: body.event_types ?? null }
      const { webhook, secret } = await webhooks.create(call.principal.orgId, personOf(call.principal), params)
      return reply.json({ ...webhookViewOf(webhook), secret }, 201, noStore)
    },
  }),

  changeWebhook: row({
    at: 'PATCH /me/webhooks/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Changes the fields in the body. Disabling ends waiting deliveries. Enabling forgets failures; events that happened meanwhile are not sent.',
    input: {
      path,
      body: z.strictObject({
        enabled: z.boolean().nullish(),
        subscribe_all: z.boolean().nullish().describe('False: only event_types are received. Becomes false where event_types is given without it.'),
        event_types: eventTypes.describe('Replaces the list.'),
        description: z.string().nullish().describe('Empty or null: none.'),
        url: z
          .never({
            error: 'cannot be changed, because the secret belongs to one receiver. Register the new URL with POST /me/webhooks and delete this webhook',
          })
          .optional()
          .describe('Cannot be changed.'),
      }),
    },
    output: webhookView.extend({ ok: z.literal(true) }),
    errors: ['forbidden', 'bad_request', 'not_found'],
    async handle({ webhooks }, input, call) {
      const { enabled = null, subscribe_all = null, event_types = null, description } = input.body
      const params = { enabled, subscribeAll: subscribe_all, eventTypes: event_types, description: description === undefined ? null : (description ?? '') }
      return { ok: true, ...webhookViewOf(await webhooks.change(call.principal.orgId, idOf(input.path), params)) }
    },
  }),

  deleteWebhook: row({
    at: 'DELETE /me/webhooks/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Removes a webhook. Deliveries that are still to be sent are dead.',
    input: { path },
    output: z.object({ ok: z.literal(true) }),
    errors: ['forbidden', 'not_found'],
    async handle({ webhooks }, input, call) {
      await webhooks.remove(call.principal.orgId, idOf(input.path))
      return { ok: true }
    },
  }),

  rotateWebhookSecret: row({
    at: 'POST /me/webhooks/{id}/rotate-secret',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Gives a webhook a new signing secret, which is in this reply and nowhere else. The old one signs nothing from now on.',
    input: { path },
    output: withSecret.extend({ ok: z.literal(true) }),
    errors: ['forbidden', 'not_found'],
    async handle({ webhooks }, input, call) {
      const { webhook, secret } = await webhooks.rotateSecret(call.principal.orgId, idOf(input.path))
      return reply.json({ ok: true, ...webhookViewOf(webhook), secret }, 200, noStore)
    },
  }),

  testWebhook: row({
    at: 'POST /me/webhooks/{id}/test',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Queues a delivery of the event ping, whatever the webhook subscribes to. Its deliveries show the result.',
    input: { path },
    output: queued,
    errors: ['forbidden', 'bad_request', 'not_found', 'rate_limit_exceeded', 'org_limit_reached'],
    async handle({ webhookDeliveries }, input, call) {
      return { ok: true, delivery: deliveryViewOf(await webhookDeliveries.ping(call.principal.orgId, idOf(input.path))) }
    },
  }),

  listWebhookDeliveries: row({
    at: 'GET /me/webhooks/{id}/deliveries',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'What was sent to a webhook and what is still to be sent, newest event first.',
    input: {
      path,
      query: z.object({
        limit: z.coerce.number().int().min(1).max(pageMax).optional().describe(`1 to ${pageMax}. Default ${pageDefault}.`),
        before: z
          .string()
          .regex(/^\d{1,18}$/, 'must be the next_before of an earlier page')
          .optional()
          .describe('next_before of the page before.'),
      }),
    },
    output: z.object({
      deliveries: z.array(deliveryView),
      next_before: z.int().nullable().describe('Send it as before for the next page; null: this was the last.'),
    }),
    errors: ['forbidden', 'bad_request', 'not_found'],
    async handle({ webhookDeliveries }, input, call) {
      const { limit = pageDefault, before } = input.query
      const asked = { limit, before: before === undefined ? null : BigInt(before) }
      const { deliveries, nextBefore } = await webhookDeliveries.list(call.principal.orgId, idOf(input.path), asked)
      return { deliveries: deliveries.map(deliveryViewOf), next_before: nextBefore === null ? null : Number(nextBefore) }
    },
  }),

  getWebhookDelivery: row({
    at: 'GET /me/webhooks/{id}/deliveries/{did}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'One delivery with the payload as sent, and its attempts with time, duration, status and error.',
    input: { path: deliveryPath },
    output: deliveryDetail,
    errors: ['forbidden', 'not_found'],
    async handle({ webhookDeliveries }, input, call) {
      return deliveryDetailOf(await webhookDeliveries.get(call.principal.orgId, idOf(input.path), input.path.did))
    },
  }),

  redeliverWebhookDelivery: row({
    at: 'POST /me/webhooks/{id}/deliveries/{did}/redeliver',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Queues one delivery again, whatever became of it, with the same event and delivery id and a new signature.',
    input: { path: deliveryPath },
    output: queued,
    errors: ['forbidden', 'bad_request', 'not_found', 'rate_limit_exceeded', 'org_limit_reached'],
    async handle({ webhookDeliveries }, input, call) {
      return { ok: true, delivery: deliveryViewOf(await webhookDeliveries.redeliver(call.principal.orgId, idOf(input.path), input.path.did)) }
    },
  }),
}

/** Returns the id in the path. Throws `not_found` for a text that is not an id. */
function idOf(given: { id: string }): number {
  const id = rowId(given.id)
  if (id === null) throw noWebhook()
  return id
}

/** Returns the person who makes the webhook. Throws `forbidden` for a caller without a user. */
function personOf({ userId }: Principal): number {
  if (userId === null) throw fail('forbidden')
  return userId
}
