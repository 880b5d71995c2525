import { z } from 'zod'
import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import type { Inference } from '../inference.ts'
import { charging } from './charging-errors.ts'
import { imageFields, routerFields } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

const item = z.looseObject({ type: z.string().optional() })

const requestSchema = z
  .looseObject({
    model: z.string().describe('A catalog id or an auto:* preset.'),
    input: z
      .union([z.string(), z.array(item).min(1)])
      .describe('Text, or items: messages, reasoning, additional_tools, calls of function, custom and tool_search tools with their outputs.'),
    instructions: z.string().optional(),
    max_output_tokens: z.int().positive().optional().describe('Ceiling of reasoning and answer together; never charged past it.'),
    stream: z.boolean().optional(),
    tools: z
      .array(item)
      .optional()
      .describe('Of type function, custom, namespace, and tool_search that the client runs. A tool that a provider would run is refused.'),
    reasoning: z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }).optional(),
    text: z.looseObject({ format: item.optional() }).optional(),
    store: z.boolean().optional().describe('Nothing is ever stored.'),
    previous_response_id: z.null().optional().describe('Refused with unsupported_operation when it is given: nothing is stored.'),
    ...routerFields,
    ...imageFields,
  })
  .meta({ examples: [{ model: 'sandbox-chat', input: 'Hello' }] })

const responseSchema = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  model: z.string(),
  status: z.string(),
  output: z.array(z.looseObject({ type: z.string() })),
  usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }),
})

export const responsesEndpoints = {
  responses: row({
    at: 'POST /v1/responses',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'OpenAI Responses, streamed or not, on every chat model. Nothing is stored.',
    input: { body: requestSchema, bodyKind: 'inference' },
    output: responseSchema,
    errors: [...charging, 'unsupported_operation'],
    inference: true,
    clients: 'responses',
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.responses(body, call),
  }),
}
