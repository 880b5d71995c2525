import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Memory } from '../memory.ts'
import { author, authorNames, etagHeader, keyQuery, memoryCall, objectErrors, readTwin, writeErrors, writeTwin } from './endpoint-parts.ts'
import { objectReply } from './object-reply.ts'

const row = endpointOf<{ memory: Memory }>()
const tag = 'memory'

const version = z.object({
  version: z.string().nullable().describe('null: it did not come through the gateway and has no version yet.'),
  how: z.enum(['put', 'append', 'restore', 'promote', 'delete']),
  current: z.boolean().describe('True for what GET /v1/me/memory/o reads.'),
  size: z.int(),
  etag: z.string().nullable(),
  sha256: z.string().nullable(),
  author,
  ...authorNames,
  modified: z.string(),
})

export const historyEndpoints = {
  history: row({
    at: 'GET /v1/me/memory/history',
    twin: readTwin('GET /me/memory/history'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'Versions of a key, newest first, with author and time; with version= the raw bytes of that version, as GET /v1/me/memory/o answers.',
    input: {
      query: keyQuery.extend({
        version: z.string().max(100).optional().describe('Id of a version: the answer is its bytes.'),
        limit: z.coerce.number().int().min(1).max(200).default(50).describe('Versions of a page.'),
        cursor: z.string().max(200).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ key: z.string(), versions: z.array(version), next_cursor: z.string().nullable().describe('null: this was the last page.') }),
    errors: [...objectErrors, 'bad_request', 'not_found', 'payload_too_large'],
    async handle({ memory }, { query }, call) {
      const from = memoryCall(call)
      if (query.version === undefined) return memory.history.list(from, query.key, { limit: query.limit, cursor: query.cursor })
      const found = await memory.history.read(from, query.key, query.version)
      return objectReply(found, query.key, call.principal)
    },
  }),
  restore: row({
    at: 'POST /v1/me/memory/restore',
    twin: writeTwin('POST /me/memory/restore'),
    auth: 'key',
    access: { agentScope: 'memory:write' },
    tag,
    summary: 'Write an earlier version again, as a new one; If-Match and If-None-Match: * make it conditional.',
    input: {
      headers: z.object({ 'if-match': etagHeader, 'if-none-match': etagHeader }),
      body: z.object({ key: z.string().default(''), version: z.string().max(100).optional().describe('From GET /v1/me/memory/history.') }),
    },
    output: z.object({ ok: z.literal(true), key: z.string(), size: z.int(), etag: z.string(), restored_from: z.string() }),
    errors: [...writeErrors, 'not_found', 'memory_quota_exceeded', 'payload_too_large'],
    async handle({ memory }, { headers, body }, call) {
      const from = memoryCall(call)
      await memory.configured(from.principal.orgId)
      if (body.version === undefined) throw fail('bad_request', { message: 'Field "version": say which one. GET /v1/me/memory/history?key= lists them.' })
      const { key, etag, size } = await memory.history.restore(from, body.key, body.version, {
        ifMatch: headers['if-match'],
        ifNoneMatch: headers['if-none-match'],
      })
      return reply.json({ ok: true, key, size, etag, restored_from: body.version.toLowerCase() }, 200, { etag })
    },
  }),
}
