import { endpointOf, type Reply } from '../../platform/endpoint.ts'
import { type ErrorName, planningErrors } from '../../platform/errors.ts'
import type { Inference } from './inference.ts'
import { chatRequestSchema, chatResponseSchema, embeddingsRequestSchema, embeddingsResponseSchema } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

/** What every charging call can answer beside its own input errors. */
const charging: readonly ErrorName[] = [
  ...planningErrors,
  'idempotency_mismatch',
  'idempotency_replayed',
  'idempotency_in_progress',
  'call_cap_exceeded',
  'daily_limit_reached',
  'concurrency_limit_reached',
  'budget_exceeded',
  'budget_held',
  'agent_budget_exceeded',
  'agent_budget_held',
  'insufficient_credits',
  'all_routes_failed',
  'provider_unavailable_billing',
  'database_unavailable',
  'journal_full',
]

export const inferenceEndpoints = {
  chatCompletions: row({
    at: 'POST /v1/chat/completions',
    auth: 'key',
    access: {},
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
    access: {},
    tag: 'inference',
    summary: 'OpenAI embeddings.',
    input: { body: embeddingsRequestSchema, bodyKind: 'inference' },
    output: embeddingsResponseSchema,
    errors: charging,
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.embeddings(body, call),
  }),
}
