/**
 * Schemas of the inference endpoints for OpenAPI and for readers. The hot path checks by hand (wire/chat.ts, wire/embeddings.ts) and lets
 * unknown fields through.
 */
import { z } from 'zod'

const step = z.union([z.string(), z.object({ model: z.string(), provider: z.string().optional() })])

export const routerFields = {
  optimize: z.enum(['price', 'latency', 'uptime', 'throughput', 'quality', 'auto']).optional().describe('Which eligible route goes first. Default: price.'),
  optimize_weights: z
    .object({ price: z.number().optional(), latency: z.number().optional(), uptime: z.number().optional(), throughput: z.number().optional() })
    .optional(),
  route: z.literal('best').optional().describe('Let the gateway pick the model.'),
  provider: z.string().optional().describe('Pins one provider.'),
  data_policy: z.literal('india_only').optional().describe('Only routes in India, also on failover.'),
  exclude: z.array(z.string()).optional().describe('Providers, or provider/model, that must not be dialed.'),
  upstream_key: z.string().optional().describe('Your own provider key for this call. Never stored.'),
  fallbacks: z.array(step).min(1).max(10).optional().describe('Steps that replace the default routing of this call.'),
}

/** The fields of requests that may contain images. */
export const imageFields = {
  image_optimize: z.enum(['auto', 'off']).optional().describe('auto (default): inline images larger than the model makes use of are made smaller.'),
  image_max_edge: z.number().min(1).optional().describe('Longest edge of an inline image in pixels, where less than the model takes will do.'),
}

/** The router fields in forms, where every value is text. */
export const formRouterFields = {
  optimize: routerFields.optimize,
  optimize_weights: z.string().optional().describe('A JSON object.'),
  provider: routerFields.provider,
  data_policy: routerFields.data_policy,
  exclude: z.string().optional().describe('A JSON array, or the field once for each item.'),
  upstream_key: routerFields.upstream_key,
  fallbacks: z.string().optional().describe('A JSON array, or the field once for each step.'),
}

const usage = z.object({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })

const fileKeywords = { format: 'binary', contentMediaType: 'application/octet-stream' }

/** Returns the schema of a file in a form, in OpenAPI's notation. */
export const formFile = (description: string): z.ZodString => z.string().meta({ description, ...fileKeywords })

const messages = [{ role: 'user', content: 'Hello' }]

export const chatRequestSchema = z
  .looseObject({
    model: z.string().describe('A catalog id or an auto:* preset.'),
    messages: z
      .array(z.looseObject({ role: z.string(), content: z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()]).optional() }))
      .min(1),
    max_tokens: z.int().positive().optional().describe('Ceiling of reasoning and answer together; never charged past it.'),
    stream: z.boolean().optional(),
    tools: z.array(z.looseObject({ type: z.string() })).optional(),
    reasoning_effort: z.string().optional(),
    ...routerFields,
    ...imageFields,
  })
  .meta({ examples: [{ model: 'sandbox-chat', messages }] })

export const chatResponseSchema = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int(),
      message: z.looseObject({ role: z.string(), content: z.string().nullable(), reasoning_content: z.string().optional() }),
      finish_reason: z.string().nullable(),
    }),
  ),
  usage,
})

export const embeddingsRequestSchema = z
  .looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.string()).min(1).max(2048)]).describe('Text, or up to 2048 texts.'),
    ...routerFields,
  })
  .meta({ examples: [{ model: 'sandbox-embed', input: 'Hello' }] })

export const embeddingsResponseSchema = z.looseObject({
  object: z.literal('list'),
  data: z.array(z.looseObject({ object: z.string(), index: z.int(), embedding: z.union([z.array(z.number()), z.string()]) })),
  model: z.string(),
  usage: z.looseObject({ prompt_tokens: z.int(), total_tokens: z.int() }),
})
