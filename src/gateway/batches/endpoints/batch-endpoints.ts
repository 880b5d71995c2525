import { z } from 'zod'
import { type Call, endpointOf } from '../../../platform/endpoint.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { runIdOfHeaders } from '../../wire/runs/run-id.ts'
import type { Batches } from '../batches.ts'
import { batchEndpoints as batchPaths } from '../lines/batch-kind.ts'
import { batchErrors, readingErrors } from './batch-errors.ts'
import { itemId, pageItems, pageQuery } from './file-endpoints.ts'

const row = endpointOf<{ batches: Batches }>()

const inference = { auth: 'key', access: { agentScope: 'inference' }, tag: 'batches' } as const
const batchId = z.object({ batch_id: itemId.describe('Id of a batch, which begins with batch_ or msgbatch_.') })
const batchBodyBytes = 512 * 1024 * 1024

const text = z.string().optional()
/** The headers by which a batch joins a run. */
const runHeaders = z.looseObject({ 'x-br-run-id': text.describe('The run that the batch belongs to.') })

/** Returns the call with the run that its headers name. */
const withRun = (call: Call<Principal>, headers: z.output<typeof runHeaders>): Call<Principal> => {
  const asked = headers as Readonly<Record<string, string | string[] | undefined>>
  return { ...call, runId: runIdOfHeaders(asked), runHeaders: asked }
}

const counts = z.object({ total: z.int(), completed: z.int(), failed: z.int() })

const openaiBatch = z.looseObject({
  id: z.string(),
  object: z.literal('batch'),
  endpoint: z.string(),
  status: z.string().describe('validating, in_progress, finalizing, cancelling, completed, failed, expired or cancelled.'),
  input_file_id: z.string().nullable(),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  created_at: z.int(),
  expires_at: z.int(),
  request_counts: counts,
})

const messageCounts = z.object({ processing: z.int(), succeeded: z.int(), errored: z.int(), canceled: z.int(), expired: z.int() })

const messageBatch = z.looseObject({
  id: z.string(),
  type: z.literal('message_batch'),
  processing_status: z.enum(['in_progress', 'canceling', 'ended']),
  request_counts: messageCounts,
  created_at: z.string(),
  expires_at: z.string(),
  ended_at: z.string().nullable(),
  results_url: z.string().nullable(),
})

const messages = { ...inference, clients: 'anthropic' } as const
const messagesPage = z.looseObject({ after_id: pageQuery.shape.after, limit: pageQuery.shape.limit })

export const batchEndpoints = {
  createBatch: row({
    at: 'POST /v1/batches',
    ...inference,
    summary: 'Begins a batch of an uploaded file. The most that it may cost is held until it has ended.',
    input: {
      headers: runHeaders,
      body: z.looseObject({
        input_file_id: itemId,
        endpoint: z
          .string()
          .max(100)
          .describe(`${batchPaths.join(', ')}.`),
        completion_window: z.literal('24h'),
        metadata: z
          .record(z.string().max(64), z.string().max(512))
          .refine(value => Object.keys(value).length <= 15, 'expected at most 15 members')
          .nullable()
          .optional()
          .describe('Goes to the provider and is not kept.'),
      }),
    },
    output: openaiBatch,
    errors: batchErrors,
    audit: false,
    handle: ({ batches }, { body, headers }, call) =>
      batches.create({ inputFileId: body.input_file_id, endpoint: body.endpoint, metadata: body.metadata ?? null }, withRun(call, headers)),
  }),
  listBatches: row({
    at: 'GET /v1/batches',
    ...inference,
    summary: 'Batches that this caller may see, the newest first.',
    input: { query: pageQuery },
    output: z.looseObject({ object: z.literal('list'), data: z.array(openaiBatch), has_more: z.boolean() }),
    errors: ['database_unavailable'],
    handle: ({ batches }, { query }, call) => batches.list(call, 'openai', query.after ?? null, query.limit ?? pageItems),
  }),
  getBatch: row({
    at: 'GET /v1/batches/{batch_id}',
    ...inference,
    summary: 'A batch, as Brigade last saw it at its provider.',
    input: { path: batchId },
    output: openaiBatch,
    errors: ['not_found', 'database_unavailable'],
    handle: ({ batches }, { path }, call) => batches.get(call, 'openai', path.batch_id),
  }),
  cancelBatch: row({
    at: 'POST /v1/batches/{batch_id}/cancel',
    ...inference,
    summary: 'Ends a batch. Requests that are done are charged.',
    input: { path: batchId },
    output: openaiBatch,
    errors: ['not_found', 'database_unavailable'],
    audit: false,
    handle: ({ batches }, { path }, call) => batches.cancel(call, 'openai', path.batch_id),
  }),
  createMessageBatch: row({
    at: 'POST /v1/messages/batches',
    ...messages,
    summary: 'Begins a batch of messages. The most that it may cost is held until it has ended.',
    input: {
      headers: runHeaders,
      body: z.object({ requests: z.array(z.object({ custom_id: z.string(), params: z.looseObject({ model: z.string(), max_tokens: z.int() }) })) }),
      bodyKind: 'stream',
      bodyLimitBytes: batchBodyBytes,
    },
    output: messageBatch,
    errors: batchErrors,
    audit: false,
    handle: ({ batches }, { body, headers }, call) => batches.createMessages(body, withRun(call, headers)),
  }),
  listMessageBatches: row({
    at: 'GET /v1/messages/batches',
    ...messages,
    summary: 'Batches of messages that this caller may see, the newest first.',
    input: { query: messagesPage },
    output: z.looseObject({ data: z.array(messageBatch), has_more: z.boolean() }),
    errors: ['database_unavailable'],
    handle: ({ batches }, { query }, call) => batches.list(call, 'anthropic', query.after_id ?? null, query.limit ?? pageItems),
  }),
  getMessageBatch: row({
    at: 'GET /v1/messages/batches/{batch_id}',
    ...messages,
    summary: 'A batch of messages, as Brigade last saw it at its provider.',
    input: { path: batchId },
    output: messageBatch,
    errors: ['not_found', 'database_unavailable'],
    handle: ({ batches }, { path }, call) => batches.get(call, 'anthropic', path.batch_id),
  }),
  messageBatchResults: row({
    at: 'GET /v1/messages/batches/{batch_id}/results',
    ...messages,
    summary: 'The results of an ended batch of messages, streamed from its provider.',
    input: { path: batchId },
    output: { media: 'application/x-jsonl' },
    errors: [...readingErrors, 'model_gated'],
    handle: ({ batches }, { path }, call) => batches.results(call, path.batch_id),
  }),
  cancelMessageBatch: row({
    at: 'POST /v1/messages/batches/{batch_id}/cancel',
    ...messages,
    summary: 'Ends a batch of messages. Requests that are done are charged.',
    input: { path: batchId },
    output: messageBatch,
    errors: ['not_found', 'database_unavailable'],
    audit: false,
    handle: ({ batches }, { path }, call) => batches.cancel(call, 'anthropic', path.batch_id),
  }),
  deleteMessageBatch: row({
    at: 'DELETE /v1/messages/batches/{batch_id}',
    ...messages,
    summary: 'Deletes an ended batch of messages, with its results at the provider.',
    input: { path: batchId },
    output: z.object({ id: z.string(), type: z.literal('message_batch_deleted') }),
    errors: readingErrors,
    audit: false,
    handle: ({ batches }, { path }, call) => batches.delete(call, path.batch_id),
  }),
}
