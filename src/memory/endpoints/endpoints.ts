import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { mayCall } from '../../platform/security/principal.ts'
import { pathsOf, workspacePathsOf } from '../access/path-rules.ts'
import type { Memory } from '../memory.ts'
import { filtersOf } from '../objects/index/list-page.ts'
import {
  bodyCeilingBytes,
  etagHeader,
  isUnchanged,
  keyQuery,
  listed,
  memoryCall,
  objectErrors,
  readTwin,
  storeAdmin,
  writeErrors,
  writeTwin,
} from './endpoint-parts.ts'
import { objectReply } from './object-reply.ts'

const row = endpointOf<{ memory: Memory }>()
const tag = 'memory'

const wholeNumber = z.int().min(1)
const storeBody = z.strictObject({
  store: z.enum(['s3', 'folder']).optional().describe('folder: only on the embedded database, or where the operator allows it.'),
  endpoint: z.string().max(500).optional(),
  bucket: z
    .string()
    .max(255)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$|^$/, 'not a bucket name')
    .optional(),
  access_key: z.string().max(500).optional().describe('Blank keeps the stored one.'),
  secret_key: z.string().max(500).optional().describe('Blank keeps the stored one.'),
  region: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9-]*$/, 'not a region')
    .optional()
    .describe('Of the bucket. With a region and without an endpoint the store is at AWS.'),
  credentials: z
    .enum(['keys', 'role', 'gateway'])
    .optional()
    .describe('Default: role with a role_arn, else keys. gateway: a bucket that the operator has named.'),
  role_arn: z.string().max(600).optional().describe('A role of yours that the gateway assumes, with the external id that GET shows.'),
  addressing: z.enum(['auto', 'path', 'virtual']).optional().describe('Where the URL names the bucket: in the host (virtual) or in the path. Default auto.'),
  sse: z.enum(['bucket', 'aws:kms']).optional().describe('How new objects are encrypted. Default bucket: as the bucket says.'),
  kms_key_id: z
    .string()
    .max(2048)
    .regex(/^[\w:/.-]*$/, 'not the id or ARN of a key')
    .optional()
    .describe('With sse aws:kms. Left out: the key of AWS for S3.'),
  quota_mb: wholeNumber.max(1_000_000_000).optional().describe('Default 1024; a MB is 1,048,576 bytes.'),
  history_versions: z.int().min(0).max(1000).optional().describe('Versions kept of each key. Default 10; 0: no history.'),
  history_days: wholeNumber.max(36_500).optional().describe('How long a version is kept after it was replaced. Default 30.'),
  journal_ttl_days: wholeNumber.max(36_500).optional().describe('Default 30.'),
  reprobe: z.boolean().optional().describe('Probe the store although neither place nor credentials changed.'),
  confirm_path_change: z.boolean().optional().describe('Repoint although the store holds memory. Nothing is migrated.'),
})

export const memoryEndpoints = {
  putStore: row({
    at: 'PUT /v1/me/memory-store',
    twin: { at: 'PUT /me/memory-store', auth: 'session', access: { role: 'admin' } },
    auth: 'key',
    access: storeAdmin,
    tag,
    summary: "Configures the store of the organisation's memory. The store is probed immediately.",
    input: { body: storeBody },
    output: z.object({ ok: z.literal(true) }),
    errors: ['bad_request', 'forbidden', 'unavailable', 'store_path_change_in_use', 'memory_busy', 'rate_limit_exceeded'],
    async handle({ memory }, { body }, call) {
      await memory.config.put(call.principal.orgId, body)
      return { ok: true }
    },
  }),
  getStore: row({
    at: 'GET /v1/me/memory-store',
    twin: { at: 'GET /me/memory-store', auth: 'session', access: { role: 'admin' } },
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary:
      'For owners and admins the configured store without its secret, bytes used, and what the store can do. Members, keys that cannot configure it and agents see its quota and how long it keeps things, not its place.',
    input: {},
    output: z.looseObject({ configured: z.boolean() }),
    errors: [],
    async handle({ memory }, _input, { principal }) {
      return mayCall(principal, storeAdmin).ok ? memory.config.view(principal.orgId) : memory.config.roomView(principal.orgId)
    },
  }),
  paths: row({
    at: 'GET /v1/me/memory/paths',
    twin: readTwin('GET /me/memory/paths'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'The scopes of this credential. agents/ is open to every key and not listed. A session also gets all its workspaces.',
    input: {},
    output: z.object({
      scopes: z.object({
        user: z.string(),
        workspace: z.string().optional(),
        org: z.string(),
        shared: z.array(z.string()).optional(),
        workspaces: z.array(z.string()).optional().describe('Only with a session: every workspace whose team the person is in.'),
      }),
    }),
    errors: ['memory_not_configured'],
    async handle({ memory }, _input, call) {
      await memory.configured(call.principal.orgId)
      const caller = await memory.callers.of(call.principal)
      return { scopes: { ...pathsOf(caller), ...(call.principal.kind === 'session' ? { workspaces: workspacePathsOf(caller) } : {}) } }
    },
  }),
  read: row({
    at: 'GET /v1/me/memory/o',
    twin: readTwin('GET /me/memory/o'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'One object as raw bytes, with ETag and x-br-meta-* provenance headers.',
    input: { query: keyQuery, headers: z.object({ 'if-none-match': etagHeader }) },
    output: { media: 'text/plain' },
    errors: [...objectErrors, 'not_found', 'payload_too_large'],
    async handle({ memory }, { query, headers }, call) {
      const found = await memory.objects.read(memoryCall(call), query.key)
      if (isUnchanged(headers['if-none-match'], found.etag)) return reply.empty(304, { etag: found.etag, 'cache-control': 'no-store' })
      return objectReply(found, query.key, call.principal)
    },
  }),
  write: row({
    at: 'PUT /v1/me/memory/o',
    twin: writeTwin('PUT /me/memory/o'),
    auth: 'key',
    access: { agentScope: 'memory:write' },
    tag,
    summary: 'Write one object; If-Match and If-None-Match: * make it conditional.',
    input: { query: keyQuery, headers: z.object({ 'if-match': etagHeader, 'if-none-match': etagHeader }), bodyKind: 'raw', bodyLimitBytes: bodyCeilingBytes },
    output: z.object({ ok: z.literal(true), key: z.string(), size: z.int() }),
    errors: [...writeErrors, 'memory_quota_exceeded', 'payload_too_large'],
    audit: false,
    async handle({ memory }, { query, headers, body }, call) {
      const { etag } = await memory.objects.write(memoryCall(call), query.key, body, {
        ifMatch: headers['if-match'],
        ifNoneMatch: headers['if-none-match'],
      })
      return reply.json({ ok: true, key: query.key, size: body.length }, 200, { etag })
    },
  }),
  remove: row({
    at: 'DELETE /v1/me/memory/o',
    twin: writeTwin('DELETE /me/memory/o'),
    auth: 'key',
    access: { agentScope: 'memory:write' },
    tag,
    summary: 'Delete one object; deleting what is not there succeeds. If-Match makes it conditional; history=erase removes its versions too.',
    input: {
      query: keyQuery.extend({ history: z.enum(['keep', 'erase']).default('keep') }),
      headers: z.object({ 'if-match': etagHeader, 'if-none-match': etagHeader }),
    },
    output: z.object({ ok: z.literal(true) }),
    errors: writeErrors,
    // An erased history cannot be restored, so an audit line says who erased it. The line leaves out the key, because keys are content.
    audit: ({ query }) => (query.history === 'erase' ? 'eraseMemory' : null),
    async handle({ memory }, { query, headers }, call) {
      const from = memoryCall(call)
      const conditions = { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] }
      await (query.history === 'erase' ? memory.history.erase(from, query.key, conditions) : memory.objects.remove(from, query.key, conditions))
      return { ok: true }
    },
  }),
  list: row({
    at: 'GET /v1/me/memory/list',
    twin: readTwin('GET /me/memory/list'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary:
      'Readable keys under a prefix, by key, with size, time, etag and author; expired journal entries are left out. With any parameter beside prefix, in pages.',
    input: {
      query: z.object({
        prefix: z.string().default(''),
        limit: z.coerce.number().int().min(1).max(1000).optional().describe('Keys of a page. Default 1000. A page with long keys has fewer.'),
        cursor: z.string().max(8000).optional().describe('next_cursor of the page before.'),
        delimiter: z.string().min(1).max(16).optional().describe('With /: the folders below the prefix come as prefixes, not all their keys.'),
        modified_since: z.string().max(40).optional().describe('A time or day; only keys written since then.'),
        author: z.string().max(40).optional().describe('user:<id> or agent:<id>; only keys whose last write was theirs, as the index knows them.'),
      }),
    },
    output: z.object({
      keys: z.array(listed),
      prefixes: z.array(z.string()).optional().describe('Only with a delimiter.'),
      next_cursor: z.string().nullable().optional().describe('Only in pages; null: this was the last. A page may be short and still have a next one.'),
    }),
    errors: [...objectErrors, 'bad_request', 'rate_limit_exceeded'],
    async handle({ memory }, { query }, call) {
      const from = memoryCall(call)
      const { prefix, limit, cursor, delimiter, modified_since: since, author } = query
      if ([limit, cursor, delimiter, since, author].every(params => params === undefined))
        return reply.bytes(await memory.objects.listWhole(from, prefix), { 'content-type': 'application/json; charset=utf-8' })
      await memory.configured(from.principal.orgId)
      return memory.objects.listPage(from, prefix, { limit: limit ?? 1000, cursor, delimiter, ...filtersOf(since, author) })
    },
  }),
}
