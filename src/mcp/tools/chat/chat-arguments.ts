/** The arguments of the chat tool, and the chat completion that they produce. */
import { z } from 'zod'
import { fail } from '../../../platform/errors.ts'

/** The default deadline of a chat. Clients abandon a tool call after about 60 s. An answer that is cut at 50 s still reaches them. */
const waitDefaultSeconds = 50
const waitMaxSeconds = 600

const part = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string().min(1).describe('https address, or data:image/…;base64,…') }) }),
])

const message = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant']),
  content: z.union([z.string(), z.array(part).min(1).max(50)]).describe('Text, or parts of text and images for models that see.'),
})

/** The arguments of the chat tool. They contain no provider keys, so that a transcript contains no secret. */
export const chatArguments = z.object({
  prompt: z.string().min(1).optional().describe('The question. Give either prompt or messages.'),
  messages: z.array(message).min(1).max(500).optional().describe('A conversation, oldest first. Give either prompt or messages.'),
  system: z.string().optional().describe('System prompt, put before the messages.'),
  model: z.string().min(1).max(256).default('auto').describe('Model id from models_list. auto lets the gateway choose.'),
  max_tokens: z.number().int().min(1).optional().describe('Ceiling for reasoning and answer together.'),
  temperature: z.number().min(0).max(2).optional(),
  reasoning_effort: z
    .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
    .optional()
    .describe('For reasoning models; the nearest that the model takes is used.'),
  json_schema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema that the answer must satisfy. The parsed answer comes as json.'),
  optimize: z.enum(['price', 'latency', 'uptime', 'throughput', 'quality', 'auto']).optional().describe('What to prefer among the routes of the model.'),
  provider: z.string().min(1).optional().describe('Pin one provider id.'),
  data_policy: z.enum(['india_only']).optional().describe('india_only: nothing leaves India; fails when no such route exists.'),
  exclude: z.array(z.string().min(1)).max(50).optional().describe('Providers, or provider/model, never to be used.'),
  fallbacks: z.array(z.string().min(1)).min(1).max(10).optional().describe('Models to try in order; they replace the usual routing of the call.'),
  stream_progress: z.boolean().default(false).describe('true: progress messages carry the text of the answer as it comes.'),
  max_wait_s: z
    .number()
    .int()
    .min(1)
    .max(waitMaxSeconds)
    .default(waitDefaultSeconds)
    .describe('After so many seconds the answer so far is returned with finish_reason "deadline".'),
})

export type ChatArguments = z.output<typeof chatArguments>

/**
 * Returns the body of the chat completion. The completion streams. Progress, the deadline and a cancel therefore work while the model generates.
 * Throws `bad_request`.
 */
export function chatBody(args: ChatArguments): Buffer {
  const { prompt, messages, system, json_schema: schema, max_wait_s: _wait, stream_progress: _progress, ...fields } = args
  if ((prompt === undefined) === (messages === undefined)) throw fail('bad_request', { message: 'Give either prompt or messages.' })
  const body = {
    ...fields,
    messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), ...(messages ?? [{ role: 'user', content: prompt }])],
    ...(schema === undefined ? {} : { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }),
    stream: true,
  }
  return Buffer.from(JSON.stringify(body))
}
