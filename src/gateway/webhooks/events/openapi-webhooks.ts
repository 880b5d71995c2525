/** Makes the `webhooks` part of the OpenAPI document: the requests that the gateway sends to registered URLs. */
import { type EventType, eventCatalog } from './event-catalog.ts'
import { envelopeSchemaOf } from './event-schemas.ts'

type Json = Record<string, unknown>

const header = (name: string, description: string, schema: Json): Json => ({ name, in: 'header', required: true, description, schema })

function deliveryHeaders(type: EventType): Json[] {
  return [
    header('X-BR-Event', 'Type of the event.', { type: 'string', const: type }),
    header(
      'X-BR-Signature',
      'v1 is the hex HMAC-SHA256 of `<t>.<raw body>`, keyed by the whole signing secret of the webhook (`whsec_` included); t is the unix time of this attempt. Refuse it when t is more than 300 s away.',
      { type: 'string', pattern: '^t=[0-9]+,v1=[0-9a-f]{64}$' },
    ),
    header('X-BR-Webhook-Id', 'Id of the webhook.', { type: 'string', pattern: '^[0-9]+$' }),
    header('X-BR-Delivery-Id', 'The same in every attempt and redelivery: what was seen before can be left out.', {
      type: 'string',
      pattern: '^dlv_[0-9a-f]{32}$',
    }),
  ]
}

/** Returns one path item for each event, with the event type as its name. */
export function openApiWebhooks(): Record<string, Json> {
  const items = (Object.keys(eventCatalog) as EventType[]).map(type => {
    const { family, when } = eventCatalog[type]
    const post = {
      operationId: `event.${type}`,
      tags: ['webhooks'],
      summary: when,
      description: `Family: ${family}. Payloads are ids, counts, amounts in rupees and times, never content. Fields may be added to data.`,
      security: [],
      parameters: deliveryHeaders(type),
      requestBody: { required: true, content: { 'application/json': { schema: envelopeSchemaOf(type) } } },
      responses: {
        '2XX': { description: 'Acknowledged.' },
        '410': { description: 'The receiver wants no more: the webhook is disabled.' },
        default: { description: 'Failed, like no answer at all: it is sent again, with growing waits.' },
      },
    }
    return [type, { post }] as const
  })
  return Object.fromEntries(items)
}
