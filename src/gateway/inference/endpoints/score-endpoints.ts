import { z } from 'zod'
import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import type { Inference } from '../inference.ts'
import { charging } from './charging-errors.ts'
import { routerFields } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

const rerankRequest = z
  .looseObject({
    model: z.string(),
    query: z.string().min(1),
    documents: z
      .array(z.union([z.string(), z.looseObject({ text: z.string() })]))
      .min(1)
      .max(1000)
      .describe('1 to 1000 texts, or objects with a text.'),
    top_n: z.int().min(1).optional().describe('The number of results. Default: all documents.'),
    return_documents: z.boolean().optional().describe('true: each result contains its document. Default: false.'),
    max_tokens_per_doc: z.int().min(1).optional().describe('Where longer documents are cut off, at vendors that have this setting.'),
    ...routerFields,
  })
  .meta({ examples: [{ model: 'sandbox-rerank', query: 'red fruit', documents: ['a red apple', 'a blue sea'] }] })

const rerankResponse = z.looseObject({
  id: z.string(),
  model: z.string().describe('The catalog id.'),
  results: z.array(
    z.looseObject({
      index: z.int().describe('Place of the document in the request.'),
      relevance_score: z.number(),
      document: z.looseObject({}).optional(),
    }),
  ),
  meta: z.looseObject({
    api_version: z.object({ version: z.string() }),
    billed_units: z.looseObject({ search_units: z.int().optional(), input_tokens: z.int().optional() }).describe('What the price of the route counts.'),
  }),
})

const part = z.union([
  z.string(),
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: z.string() }) }),
])

const moderationRequest = z
  .looseObject({
    model: z.string().optional().describe('Default: omni-moderation-latest.'),
    input: z.union([z.string(), z.array(part).min(1).max(2048)]).describe('A text, up to 2048 texts, or parts of one content: texts and pictures.'),
    ...routerFields,
  })
  .meta({ examples: [{ model: 'sandbox-moderation', input: 'Hello' }] })

export const scoreEndpoints = {
  rerank: row({
    at: 'POST /v1/rerank',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: "Ranks documents by a query, in the form of Cohere's rerank API, whatever the vendor of the model is; charged by the search or by the token.",
    input: { body: rerankRequest, bodyKind: 'inference' },
    output: rerankResponse,
    errors: [...charging, 'model_not_found_media'],
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.rerank(body, call),
  }),
  moderations: row({
    at: 'POST /v1/moderations',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'Checks texts and pictures. The categories are those of the vendor, so a call never moves to another vendor by itself.',
    input: { body: moderationRequest, bodyKind: 'inference' },
    output: z.looseObject({ id: z.string(), model: z.string(), results: z.array(z.looseObject({ categories: z.looseObject({}) })) }),
    errors: [...charging, 'model_not_found_media'],
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.moderate(body, call),
  }),
}
