import { z } from 'zod'
import { abortSignalOf } from '../platform/cancellation.ts'
import { endpointOf, reply } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import type { BearerPrincipal, Principal } from '../platform/principal.ts'
import type { Memory } from './memory.ts'
import { pathsOf } from './scopes.ts'

const row = endpointOf<{ memory: Memory }>()
const tag = 'memory'

// Absent stays legal in these schemas: an unconfigured store is said before a missing key is.
const keyQuery = z.object({ key: z.string().default('').describe('Relative path of the object, for example agents/triage/notes.md.') })
const etagHeader = z.string().optional().describe('Quoted etag.')
const objectErrors = ['memory_not_configured', 'bad_memory_key', 'forbidden', 'memory_store_failed'] as const
const writeErrors = [...objectErrors, 'bad_request', 'agent_revoked_label', 'memory_conflict', 'memory_busy'] as const
/** More than any sensible MEMORY_OBJECT_MAX_BYTES, which the service checks; this bounds what the edge reads. */
const bodyCeilingBytes = 64 * 1024 * 1024

const wholeNumber = z.int().min(1)
const storeBody = z.object({
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
    .optional(),
  quota_mb: wholeNumber.max(1_000_000_000).optional().describe('Default 1024; a MB is 1,048,576 bytes.'),
  journal_ttl_days: wholeNumber.max(36_500).optional().describe('Default 30.'),
  confirm_path_change: z.boolean().optional().describe('Repoint although the store holds memory. Nothing is migrated.'),
})

const author = z.object({ user: z.string(), agent: z.string().optional() }).nullable()

/** A data row takes keys and agent tokens only; the edge has seen to that. */
function bearer(principal: Principal): BearerPrincipal {
  if (principal.kind === 'session') throw fail('forbidden')
  return principal
}

export const memoryEndpoints = {
  putStore: row({
    at: 'PUT /v1/me/memory-store',
    twin: { at: 'PUT /me/memory-store', auth: 'session', access: { role: 'admin' } },
    auth: 'key',
    access: { scope: 'full', role: 'admin', userBacked: true },
    tag,
    summary: "Say where the organisation's memory lives; the store is probed at once.",
    input: { body: storeBody },
    output: z.object({ ok: z.literal(true) }),
    errors: ['bad_request', 'forbidden', 'unavailable', 'store_path_change_in_use'],
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
    summary: 'The configured store without its secret, bytes used, and what the store can do.',
    input: {},
    output: z.looseObject({ configured: z.boolean() }),
    errors: [],
    handle: ({ memory }, _input, call) => memory.config.view(call.principal.orgId),
  }),
  paths: row({
    at: 'GET /v1/me/memory/paths',
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'The scopes of this credential. agents/ is open to every key and not listed.',
    input: {},
    output: z.object({ scopes: z.object({ user: z.string(), workspace: z.string().optional(), org: z.string(), shared: z.array(z.string()).optional() }) }),
    errors: ['memory_not_configured'],
    async handle({ memory }, _input, call) {
      await memory.configured(call.principal.orgId)
      return { scopes: pathsOf(await memory.callers.of(bearer(call.principal))) }
    },
  }),
  read: row({
    at: 'GET /v1/me/memory/o',
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'One object as raw bytes, with ETag and x-br-meta-* provenance headers.',
    input: { query: keyQuery },
    output: { media: 'text/plain' },
    errors: [...objectErrors, 'not_found', 'payload_too_large'],
    async handle({ memory }, { query }, call) {
      const found = await memory.objects.read({ ...call, signal: abortSignalOf(call.signal), principal: bearer(call.principal) }, query.key)
      return reply.bytes(found.bytes, {
        ...found.metaHeaders,
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'last-modified': found.modified.toUTCString(),
        etag: found.etag,
      })
    },
  }),
  write: row({
    at: 'PUT /v1/me/memory/o',
    auth: 'key',
    access: { agentScope: 'memory:write' },
    tag,
    summary: 'Write one object; If-Match and If-None-Match: * make it conditional.',
    input: { query: keyQuery, headers: z.object({ 'if-match': etagHeader, 'if-none-match': etagHeader }), bodyKind: 'raw', bodyLimitBytes: bodyCeilingBytes },
    output: z.object({ ok: z.literal(true), key: z.string(), size: z.int() }),
    errors: [...writeErrors, 'memory_quota_exceeded', 'payload_too_large'],
    audit: false,
    async handle({ memory }, { query, headers, body }, call) {
      const { etag } = await memory.objects.write({ ...call, signal: abortSignalOf(call.signal), principal: bearer(call.principal) }, query.key, body, {
        ifMatch: headers['if-match'],
        ifNoneMatch: headers['if-none-match'],
      })
      return reply.json({ ok: true, key: query.key, size: body.length }, 200, { etag })
    },
  }),
  remove: row({
    at: 'DELETE /v1/me/memory/o',
    auth: 'key',
    access: { agentScope: 'memory:write' },
    tag,
    summary: 'Delete one object; deleting what is not there succeeds. If-Match makes it conditional.',
    input: { query: keyQuery, headers: z.object({ 'if-match': etagHeader, 'if-none-match': etagHeader }) },
    output: z.object({ ok: z.literal(true) }),
    errors: writeErrors,
    audit: false,
    async handle({ memory }, { query, headers }, call) {
      await memory.objects.remove({ ...call, signal: abortSignalOf(call.signal), principal: bearer(call.principal) }, query.key, {
        ifMatch: headers['if-match'],
        ifNoneMatch: headers['if-none-match'],
      })
      return { ok: true }
    },
  }),
  list: row({
    at: 'GET /v1/me/memory/list',
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'Readable keys under a prefix with size, time, etag and author; expired journal entries are left out.',
    input: { query: z.object({ prefix: z.string().default('') }) },
    output: z.object({ keys: z.array(z.object({ key: z.string(), size: z.int(), modified: z.string(), etag: z.string(), author })) }),
    errors: objectErrors,
    async handle({ memory }, { query }, call) {
      return { keys: await memory.objects.list({ ...call, signal: abortSignalOf(call.signal), principal: bearer(call.principal) }, query.prefix) }
    },
  }),
}
