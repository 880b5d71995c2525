/** The JSON form of webhooks and deliveries in replies. */
import { z } from 'zod'
import type { DeliveryRow } from './delivery/delivery-list-queries.ts'
import { deliveryName } from './delivery/signature.ts'
import { waitingMax } from './events/events.ts'
import type { WebhookRow } from './webhook-queries.ts'

export const webhookView = z.object({
  id: z.int(),
  url: z.string(),
  description: z.string(),
  subscribe_all: z.boolean().describe('Every event is received; event_types are kept for the case that it becomes false.'),
  event_types: z.array(z.string()),
  enabled: z.boolean().describe('False: nothing is sent.'),
  disabled_reason: z.string().nullable().describe('manual: a person did it; other codes: the gateway did, because deliveries failed.'),
  dropped: z.int().describe(`Events that were not queued because ${waitingMax} deliveries waited. They are not sent.`),
  dropped_at: z.string().nullable().describe('ISO 8601, UTC: the last of them; null: there was none.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

export const deliveryView = z.object({
  id: z.string().describe('X-BR-Delivery-Id: the same in every attempt.'),
  event_id: z.string().describe('`id` of the envelope.'),
  type: z.string(),
  status: z.enum(['pending', 'acknowledged', 'failed', 'dead']).describe('failed: it will be tried again; dead: it will not.'),
  code: z.int().nullable().describe('HTTP status of the last attempt; null: none came.'),
  attempts: z.int(),
  error: z.string().nullable().describe('Why the last attempt failed, or why there will be none, as a code.'),
  next_attempt_at: z.string().nullable().describe('ISO 8601, UTC: not before then; null: settled.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

export function webhookViewOf(webhook: WebhookRow): z.output<typeof webhookView> {
  return {
    id: webhook.id,
    url: webhook.url,
    description: webhook.description,
    subscribe_all: webhook.subscribeAll,
    event_types: [...webhook.eventTypes],
    enabled: webhook.enabled,
    disabled_reason: webhook.disabledReason,
    dropped: Number(webhook.dropped),
    dropped_at: webhook.droppedAt?.toISOString() ?? null,
    created_at: webhook.createdAt.toISOString(),
  }
}

export function deliveryViewOf(delivery: DeliveryRow): z.output<typeof deliveryView> {
  return {
    id: deliveryName(delivery.id),
    event_id: delivery.eventId,
    type: delivery.type,
    status: delivery.status,
    code: delivery.code,
    attempts: delivery.attempts,
    error: delivery.error,
    next_attempt_at: delivery.dueAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
  }
}
