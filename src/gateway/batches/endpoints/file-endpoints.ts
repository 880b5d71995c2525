import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import type { BatchFiles } from '../files.ts'
import { batchErrors, readingErrors } from './batch-errors.ts'

const row = endpointOf<{ batchFiles: BatchFiles }>()

const inference = { auth: 'key', access: { agentScope: 'inference' }, tag: 'batches' } as const
const fileBodyBytes = 512 * 1024 * 1024

/** An id that Brigade gave. */
export const itemId = z.string().regex(/^[\w-]{1,100}$/, 'expected an id')
const fileId = z.object({ file_id: itemId.describe('Id of a file, which begins with file-.') })

export const pageQuery = z.looseObject({
  after: itemId.optional().describe('Id of the last item of the page before.'),
  limit: z.coerce.number().int().min(1).max(100).optional().describe('Items of a page. Default: 20.'),
})
export const pageItems = 20

const fileShape = z.looseObject({
  id: z.string(),
  object: z.literal('file'),
  bytes: z.int(),
  created_at: z.int(),
  expires_at: z.int().describe('When Brigade deletes the file at its provider.'),
  filename: z.string().describe('The id with .jsonl. The name of the upload is not kept.'),
  purpose: z.enum(['batch', 'batch_output']),
})

export const fileEndpoints = {
  createFile: row({
    at: 'POST /v1/files',
    ...inference,
    summary: 'Uploads a file of requests for a batch. Each line is checked, and the file goes through to the provider of its model.',
    input: {
      body: z.object({
        file: z.string().meta({ description: 'JSON Lines: a request a line.', format: 'binary', contentMediaType: 'application/octet-stream' }),
        purpose: z.literal('batch'),
      }),
      bodyKind: 'stream',
      bodyLimitBytes: fileBodyBytes,
    },
    output: fileShape,
    errors: batchErrors,
    audit: false,
    handle: ({ batchFiles }, { body }, call) => batchFiles.upload(body, call),
  }),
  listFiles: row({
    at: 'GET /v1/files',
    ...inference,
    summary: 'Files of batches that this caller may see, the newest first.',
    input: { query: pageQuery },
    output: z.looseObject({ object: z.literal('list'), data: z.array(fileShape), has_more: z.boolean() }),
    errors: ['database_unavailable'],
    handle: ({ batchFiles }, { query }, { principal }) => batchFiles.list(principal, query.after ?? null, query.limit ?? pageItems),
  }),
  getFile: row({
    at: 'GET /v1/files/{file_id}',
    ...inference,
    summary: 'A file of a batch.',
    input: { path: fileId },
    output: fileShape,
    errors: ['not_found', 'database_unavailable'],
    handle: ({ batchFiles }, { path }, { principal }) => batchFiles.get(principal, path.file_id),
  }),
  fileContent: row({
    at: 'GET /v1/files/{file_id}/content',
    ...inference,
    summary: 'The contents of a file, streamed from its provider.',
    input: { path: fileId },
    output: { media: 'application/octet-stream' },
    errors: readingErrors,
    handle: ({ batchFiles }, { path }, call) => batchFiles.content(call, path.file_id),
  }),
  deleteFile: row({
    at: 'DELETE /v1/files/{file_id}',
    ...inference,
    summary: 'Deletes a file, at its provider too.',
    input: { path: fileId },
    output: z.object({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) }),
    errors: readingErrors,
    audit: false,
    handle: ({ batchFiles }, { path }, call) => batchFiles.delete(call, path.file_id),
  }),
}
