import { z } from 'zod'
import type { Tool } from './tool.ts'

type JsonObject = { [key: string]: unknown }

/** A tool in the form of tools/list. */
export interface ListedTool {
  [key: string]: unknown
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject & { type: 'object' }
  readonly outputSchema: JsonObject & { type: 'object' }
  readonly annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean }
}

/** The fields that a failed call has in `structuredContent`, in addition to the evidence of its error. */
export const toolErrorShape = z.object({
  code: z.string().describe('Error code of a failed call.'),
  message: z.string().describe('What went wrong.'),
  status: z.number().int().describe('The HTTP status that the same failure has on /v1.'),
})

/**
 * Returns the list entry of a tool. The schemas are JSON Schema 2020-12 without `$schema`, because the validators of some clients do not know that
 * dialect.
 */
export function listedTool(tool: Tool): ListedTool {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: { ...jsonSchemaOf(tool.inputSchema), type: 'object', additionalProperties: false },
    outputSchema: outputSchemaOf(tool),
    annotations: { ...tool.annotations },
  }
}

/**
 * Returns a schema that allows both the fields of success and the three fields of a failure. Clients check `structuredContent` against the output
 * schema even when `isError` is set. They fail the call when it does not match.
 */
function outputSchemaOf(tool: Tool): JsonObject & { type: 'object' } {
  const success = jsonSchemaOf(tool.outputSchema)
  const failure = jsonSchemaOf(toolErrorShape)
  return {
    ...success,
    type: 'object',
    properties: { ...asObject(success['properties']), ...asObject(failure['properties']) },
    required: [],
    anyOf: [{ required: success['required'] ?? [] }, { required: failure['required'] ?? [] }],
  }
}

function jsonSchemaOf(schema: z.ZodType): JsonObject {
  // 'input' allows additional fields in objects. Results may therefore get new fields without breaking clients that validate.
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => dropDefaults(jsonSchema),
  })
  return rest
}

/** Removes the parts of a schema that equal the defaults. Every word of the list costs each conversation tokens. */
function dropDefaults(schema: { maximum?: number; minimum?: number; additionalProperties?: unknown; propertyNames?: unknown }): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (typeof schema.additionalProperties === 'object' && Object.keys(schema.additionalProperties ?? {}).length === 0) delete schema.additionalProperties
  delete schema.propertyNames
}

function asObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
