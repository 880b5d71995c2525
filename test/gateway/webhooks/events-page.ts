/** Makes the section of docs/guides/webhooks.md about events from the catalog. */
import { z } from 'zod'
import { type EventType, eventCatalog } from '../../../src/gateway/webhooks/events/event-catalog.ts'

interface Property {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly string[]
  readonly const?: unknown
  readonly anyOf?: readonly Property[]
}

/** Writes the type of a field, such as `80` or `100`, number or null, or a list of texts. */
function typeText({ type, enum: values, const: only, anyOf }: Property): string {
  if (anyOf) return anyOf.map(typeText).join(' or ')
  if (only !== undefined) return String(only)
  return values ? values.map(value => `\`${value}\``).join(', ') : [type ?? ''].flat().join(' or ')
}

const propertiesOf = (type: EventType): [name: string, property: Property][] =>
  Object.entries((z.toJSONSchema(eventCatalog[type].data, { io: 'input' }).properties ?? {}) as Record<string, Property>)

const quoted = (names: readonly string[]): string => names.map(name => `\`${name}\``).join(', ')

/** Returns two tables. The first has the events. The second has their fields, each once, with the events that have the field. */
export function eventsSection(): string {
  const types = Object.keys(eventCatalog) as EventType[]
  const events = types.map(type => `| \`${type}\` | ${eventCatalog[type].when} | ${quoted(propertiesOf(type).map(([name]) => name))} |`)
  const fields = new Map<string, EventType[]>()
  for (const type of types)
    for (const [name, property] of propertiesOf(type)) {
      const meaning = [typeText(property), ...(property.description === undefined ? [] : [property.description])].join('. ').replace(/[^.]$/, '$&.')
      const line = `${name} | ${meaning}`
      fields.set(line, [...(fields.get(line) ?? []), type])
    }
  const fieldLines = [...fields].map(([line, of]) => {
    const [name, meaning] = line.split(' | ')
    return `| \`${name}\` | ${of.join(', ')} | ${meaning} |`
  })
  return ['', '| event | when | data |', '|---|---|---|', ...events, '', '| field | of | what it is |', '|---|---|---|', ...fieldLines, '', ''].join('\n')
}
