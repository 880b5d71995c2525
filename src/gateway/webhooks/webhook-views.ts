/** The JSON form of webhooks and deliveries in replies. */
import { z } from 'zod'
import type { DeliveryDetail, DeliveryRow } from './delivery/delivery-list-queries.ts'
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

const attempt = z.object({
  number: z.int().describe('From 1. An attempt that was cut because a process stopped has no entry, and its number is used again.'),
  at: z.string().describe('ISO 8601, UTC: when it began.'),
  duration_ms: z.int(),
  status: z.int().nullable().describe('HTTP status of the reply; null: none came.'),
  error: z.string().nullable().describe('Why it failed, as a code; null: the receiver accepted.'),
})

/** A delivery with what was sent and with its attempts. */
export const deliveryDetail = deliveryView.extend({
  payload: z.string().nullable().describe('The body as sent, byte for byte: the JSON of the event. Null: the event is no longer kept.'),
  attempt_log: z.array(attempt).describe('The last 20 attempts, oldest first.'),
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

export function deliveryDetailOf(delivery: DeliveryDetail): z.output<typeof deliveryDetail> {
  return {
    ...deliveryViewOf(delivery),
    payload: delivery.body,
    attempt_log: delivery.attemptLog.map(({ n, at, ms, code, error }) => ({
      number: n,
      at: new Date(at).toISOString(),
      duration_ms: ms,
      status: code,
      error,
    })),
  }
}
