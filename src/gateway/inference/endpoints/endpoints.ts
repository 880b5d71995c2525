import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import type { Inference } from '../inference.ts'
import { charging } from './charging-errors.ts'
import { chatRequestSchema, chatResponseSchema, embeddingsRequestSchema, embeddingsResponseSchema } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

export const inferenceEndpoints = {
  chatCompletions: row({
    at: 'POST /v1/chat/completions',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'OpenAI chat completions, streamed or not, on the best eligible route.',
    input: { body: chatRequestSchema, bodyKind: 'inference' },
    output: chatResponseSchema,
    errors: charging,
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.chat(body, call),
  }),
  embeddings: row({
    at: 'POST /v1/embeddings',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'OpenAI embeddings.',
    input: { body: embeddingsRequestSchema, bodyKind: 'inference' },
    output: embeddingsResponseSchema,
    errors: charging,
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.embeddings(body, call),
  }),
}
