/** The event catalog as JSON Schema: for GET /me/webhooks and for the OpenAPI document. */
import { z } from 'zod'
import { type EventType, eventCatalog, subscribable } from './event-catalog.ts'

type Json = Record<string, unknown>

/** What an event is, for people and programs that choose what to subscribe to. */
export interface DescribedEvent {
  readonly type: string
  readonly family: string
  /** When it fires. */
  readonly when: string
  /** JSON Schema (2020-12) of `data`. Fields may be added to it. */
  readonly data_schema: Json
}

/** JSON Schema of what the event carries. It forbids no further fields, so that one can be added. */
function dataSchemaOf(type: EventType): Json {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(eventCatalog[type].data, { io: 'input' })
  return schema
}

/** Every event that can be subscribed to. */
export const describedEvents: readonly DescribedEvent[] = subscribable.map(type => {
  const { family, when } = eventCatalog[type]
  return { type, family, when, data_schema: dataSchemaOf(type) }
})

/** JSON Schema of the body of a delivery of that event. */
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
