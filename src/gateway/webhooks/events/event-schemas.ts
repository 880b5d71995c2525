/** Converts the event catalog to JSON Schema, for GET /me/webhooks and the OpenAPI document. */
import { z } from 'zod'
import { type EventType, eventCatalog, subscribable } from './event-catalog.ts'

type Json = Record<string, unknown>

/** The description of an event, for people and programs that choose subscriptions. */
export interface DescribedEvent {
  readonly type: string
  readonly family: string
  /** When the event is sent. */
  readonly when: string
  /** JSON Schema (2020-12) of `data`. Later versions may add fields. */
  readonly data_schema: Json
}

/** Returns the JSON Schema of an event's data. It allows additional fields, so that later versions can add fields. */
function dataSchemaOf(type: EventType): Json {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(eventCatalog[type].data, { io: 'input' })
  return schema
}

/** Every event that an endpoint can subscribe to. */
export const describedEvents: readonly DescribedEvent[] = subscribable.map(type => {
  const { family, when } = eventCatalog[type]
  return { type, family, when, data_schema: dataSchemaOf(type) }
})

/** Returns the JSON Schema of the body of a delivery of the event. */
export function envelopeSchemaOf(type: EventType): Json {
  return {
    type: 'object',
    required: ['id', 'type', 'created', 'org_id', 'data'],
    properties: {
      id: { type: 'string', pattern: '^evt_[0-9a-z]+$', description: 'Id of the event: the same in every attempt, redelivery and endpoint.' },
      type: { type: 'string', const: type },
      created: { type: 'integer', description: 'When it happened, in unix seconds.' },
      org_id: { type: 'integer', description: 'The organisation that it happened in.' },
      data: dataSchemaOf(type),
    },
  }
}
