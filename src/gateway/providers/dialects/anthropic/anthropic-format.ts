/** Translates `response_format` of the hub format for providers that use the messages format. */

import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import { type SchemaSubset, withinSubset } from '../json-schema-subset.ts'
import type { ClaudeAbilities } from './claude-version.ts'

/** The tool that represents a reply in JSON. A call of this tool is converted back to the text of the reply. */
export const replyToolName = 'br_json_reply'

/** How the form of the reply is requested. */
export type ReplyForm =
  | { readonly kind: 'free' }
  /** The native field `output_config.format`. */
  | { readonly kind: 'native'; readonly format: Readonly<Record<string, unknown>> }
  /** A tool that the model must call. */
  | { readonly kind: 'tool'; readonly tool: Readonly<Record<string, unknown>> }
  /** A sentence at the end of `system`. */
  | { readonly kind: 'told'; readonly sentence: string }

const objectSentence = 'Answer with one JSON object and nothing else: no other text, no code fence.'
const schemaSentence = 'Answer with one JSON value that is valid against this JSON schema and with nothing else, no code fence. Schema: '

/** Keywords that the format accepts in a schema for the reply. */
const subset: SchemaSubset = {
  keywords: new Set(
    [
      ['type', 'title', 'description', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'default', 'format'],
      ['anyOf', 'allOf', '$ref', '$defs', 'definitions'],
    ].flat(),
  ),
  closesObjects: true,
}

export interface FormCase {
  readonly abilities: ClaudeAbilities
  readonly hasTools: boolean
  readonly thinks: boolean
}

/**
 * Returns the form of the reply. A forced tool cannot be combined with the caller's own tools or with thinking. In that case, a sentence describes
 * the form.
 */
export function replyFormOf(body: JsonObject, { abilities, hasTools, thinks }: FormCase, dropped: Set<string>): ReplyForm {
  const wanted = body['response_format']
  if (!isObject(wanted)) return { kind: 'free' }
  const mayForce = !hasTools && !thinks
  const described = isObject(wanted['json_schema']) ? wanted['json_schema'] : {}
  if (wanted['type'] === 'json_object')
    return mayForce ? { kind: 'tool', tool: replyTool({ type: 'object' }, undefined) } : { kind: 'told', sentence: objectSentence }
  if (wanted['type'] !== 'json_schema' || !isObject(described['schema'])) {
    if (wanted['type'] !== 'text') dropped.add('response_format')
    return { kind: 'free' }
  }
  const { schema, description } = described
  if (abilities.outputFormat)
    return {
      kind: 'native',
      format: { type: 'json_schema', schema: withinSubset(describedSchema(described), subset, 'response_format.json_schema.schema', dropped) },
    }
  if (mayForce && isObject(schema) && schema['type'] === 'object') return { kind: 'tool', tool: replyTool(schema, description) }
  return { kind: 'told', sentence: schemaSentence + JSON.stringify(describedSchema(described)) }
}

/** Returns a sentence that describes the form of the reply, for a model that cannot be forced. Null when any form is allowed. */
export function toldForm(wanted: unknown): string | null {
  if (!isObject(wanted)) return null
  if (wanted['type'] === 'json_object') return objectSentence
  const described = isObject(wanted['json_schema']) ? wanted['json_schema'] : {}
  return wanted['type'] === 'json_schema' && isObject(described['schema']) ? schemaSentence + JSON.stringify(describedSchema(described)) : null
}

/** Returns the schema of a requested reply. A schema without a description gets the description that is given next to it. */
export function describedSchema({ schema, description }: JsonObject): unknown {
  return isObject(schema) && typeof description === 'string' && schema['description'] === undefined ? { ...schema, description } : schema
}

function replyTool(schema: unknown, description: unknown): Record<string, unknown> {
  return { name: replyToolName, description: typeof description === 'string' ? description : 'The answer to the user, as JSON.', input_schema: schema }
}
