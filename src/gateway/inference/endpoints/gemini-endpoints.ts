import { z } from 'zod'
import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import { planningErrors } from '../../../platform/errors.ts'
import type { Inference } from '../inference.ts'
import { charging } from './charging-errors.ts'
import { imageFields, routerFields } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

const content = z.looseObject({ role: z.string().optional(), parts: z.array(z.looseObject({})).optional() })
const path = z.object({ model: z.string().max(256).describe('A catalog id or an auto:* preset.') })

const hello = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }

const asked = {
  contents: z.array(content).min(1),
  systemInstruction: content.optional(),
  tools: z
    .array(z.looseObject({}))
    .optional()
    .describe("Functions. Google's own tools (search, code, maps, …) run on Google's models with your own provider key only."),
  toolConfig: z.looseObject({}).optional(),
  generationConfig: z
    .looseObject({ maxOutputTokens: z.int().positive().optional().describe('Ceiling of thinking and answer together; never charged past it.') })
    .optional(),
  safetySettings: z.array(z.looseObject({})).optional().describe('For models of Google. Other models have filters of their own.'),
  ...routerFields,
  ...imageFields,
}

const requestSchema = z.looseObject(asked).meta({ examples: [hello] })

const chunkSchema = z.looseObject({
  candidates: z.array(z.looseObject({ content: content.optional(), finishReason: z.string().optional(), index: z.int().optional() })).optional(),
  usageMetadata: z.looseObject({ promptTokenCount: z.int(), candidatesTokenCount: z.int().optional(), totalTokenCount: z.int().optional() }).optional(),
  modelVersion: z.string().optional(),
  responseId: z.string().optional(),
})

const responseSchema = chunkSchema.required({ usageMetadata: true })

const query = z.object({
  alt: z.string().optional().describe('sse: server-sent events. Otherwise a stream is one JSON array that grows.'),
  key: z.string().optional().describe('The gateway key, for clients that cannot send a header. A header is safer.'),
})
const keyAlone = z.object({ key: query.shape.key })

const embedSchema = z
  .looseObject({ content, outputDimensionality: z.int().positive().optional(), ...routerFields })
  .meta({ examples: [{ content: { parts: [{ text: 'Hello' }] } }] })
const vector = z.looseObject({ values: z.array(z.number()) })

export const geminiEndpoints = {
  generateContent: row({
    at: 'POST /v1beta/models/{model+}:generateContent',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: "Google's generateContent on every chat model.",
    input: { path, query: keyAlone, body: requestSchema, bodyKind: 'inference' },
    output: responseSchema,
    errors: [...charging, 'unsupported_operation'],
    clients: 'gemini',
    inference: true,
    handle: ({ inference }, { path: { model }, body }, call): Promise<Reply> => inference.gemini({ model, stream: false, asArray: false }, body, call),
  }),
  streamGenerateContent: row({
    at: 'POST /v1beta/models/{model+}:streamGenerateContent',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'The same as a stream: server-sent events with alt=sse, otherwise one JSON array that grows.',
    input: { path, query, body: requestSchema, bodyKind: 'inference' },
    output: z.array(chunkSchema),
    errors: [...charging, 'unsupported_operation'],
    clients: 'gemini',
    inference: true,
    handle: ({ inference }, { path: { model }, query: { alt }, body }, call): Promise<Reply> =>
      inference.gemini({ model, stream: true, asArray: alt !== 'sse' }, body, call),
  }),
  countContentTokens: row({
    at: 'POST /v1beta/models/{model+}:countTokens',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: "Tokens of a request: the provider's count for models of Google, an estimate for every other model. Not charged.",
    input: {
      path,
      query: keyAlone,
      body: z.looseObject({ contents: asked.contents.optional(), generateContentRequest: z.looseObject({}).optional() }).meta({ examples: [hello] }),
      bodyKind: 'inference',
    },
    output: z.looseObject({ totalTokens: z.int() }),
    errors: [...planningErrors, 'all_routes_failed', 'database_unavailable'],
    clients: 'gemini',
    audit: false,
    handle: ({ inference }, { path: { model }, body }, call): Promise<Reply> => inference.countGemini(model, body, call),
  }),
  embedContent: row({
    at: 'POST /v1beta/models/{model+}:embedContent',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: "One embedding in Google's format, on every embedding model.",
    input: { path, query: keyAlone, body: embedSchema, bodyKind: 'inference' },
    output: z.looseObject({ embedding: vector }),
    errors: charging,
    clients: 'gemini',
    inference: true,
    handle: ({ inference }, { path: { model }, body }, call): Promise<Reply> => inference.embedGemini(model, false, body, call),
  }),
  batchEmbedContents: row({
    at: 'POST /v1beta/models/{model+}:batchEmbedContents',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: "Up to 100 embeddings in Google's format, in one call.",
    input: {
      path,
      query: keyAlone,
      body: z
        .looseObject({ requests: z.array(z.looseObject({ content })).min(1).max(100) })
        .meta({ examples: [{ requests: [{ content: { parts: [{ text: 'Hello' }] } }] }] }),
      bodyKind: 'inference',
    },
    output: z.looseObject({ embeddings: z.array(vector) }),
    errors: charging,
    clients: 'gemini',
    inference: true,
    handle: ({ inference }, { path: { model }, body }, call): Promise<Reply> => inference.embedGemini(model, true, body, call),
  }),
}
