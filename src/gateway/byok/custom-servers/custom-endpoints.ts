import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { customReference } from './custom-route.ts'
import type { CustomServerRow } from './custom-server-queries.ts'
import type { ServerChange, ServerParams } from './custom-server-rules.ts'
import { type CustomServers, complianceSummary, complianceView } from './custom-servers.ts'

const row = endpointOf<{ customServers: CustomServers }>()

const requires = ({ customServers }: { customServers: CustomServers }): void => customServers.requireEnabled()
const tag = 'byok'

const residency = z.enum(['india', 'global'])
const compliance = z.object({
  pass: z.boolean().describe('Every required check passed.'),
  checks: z.array(
    z.object({
      name: z.enum(['chat', 'stream', 'usage', 'tools', 'errors', 'latency']),
      required: z.boolean().describe('False: a failure is a warning.'),
      pass: z.boolean(),
      latency_ms: z.int().describe('Time that the server took; of a stream until its first byte.'),
      detail: z.string(),
    }),
  ),
})
const endpoint = z.object({
  id: z.int(),
  slug: z.string(),
  provider_ref: z.string().describe('`byoe:<slug>`: send it as `provider` of a call or name it in a step of a chain.'),
  model: z.string().describe('The catalog model that it serves.'),
  name: z.string(),
  base_url: z.string(),
  upstream_model: z.string(),
  key_mask: z.string().nullable().describe('Start and end of the key; null = it takes none.'),
  residency,
  checked_at: z.string().describe('ISO 8601, UTC: the last test.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

const body = z.strictObject({
  name: z.string().describe('1 to 100 characters; its slug is made from it.'),
  model: z.string().describe('The chat model of the catalog that the server serves.'),
  base_url: z.string().describe('Up to and including the version: https://models.example.com/v1. Public https only, unless the operator permits more.'),
  upstream_model: z.string().describe('The id by which the server knows the model.'),
  key: z.string().nullable().optional().describe('Sent as a bearer token. Sealed at rest and never shown again.'),
  residency: residency.optional().describe('Where the server keeps and processes data, as you state it. Default: global.'),
})

const change = body.partial()

export const customEndpoints = {
  listCustomEndpoints: row({
    at: 'GET /me/endpoints',
    auth: 'session',
    access: {},
    tag,
    summary: "The organisation's own OpenAI-compatible servers with the result of their last test, keys masked; why a check failed is for owners and admins.",
    input: {},
    output: z.object({ endpoints: z.array(endpoint.extend({ compliance })) }),
    errors: ['unavailable'],
    requires,
    async handle({ customServers }, _input, call) {
      const { orgId, role } = call.principal
      const resultOf = role === 'owner' || role === 'admin' ? complianceView : complianceSummary
      return { endpoints: (await customServers.list(orgId)).map(server => ({ ...viewOf(server), compliance: resultOf(server.compliance) })) }
    },
  }),

  createCustomEndpoint: row({
    at: 'POST /me/endpoints',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Tests an OpenAI-compatible server and registers it when it passes. When it does not, the error has the result beside it.',
    input: { body },
    output: z.object({ ok: z.literal(true), endpoint, compliance }),
    status: 201,
    errors: ['forbidden', 'unavailable', 'bad_request', 'bad_name', 'bad_model', 'cap', 'rate_limit_exceeded'],
    requires,
    async handle({ customServers }, input, call) {
      const server = await customServers.register(call.principal.orgId, paramsOf(input.body), call.signal)
      return { ok: true, endpoint: viewOf(server), compliance: complianceView(server.compliance) }
    },
  }),

  testCustomEndpoint: row({
    at: 'POST /me/endpoints/test',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Tests a server without saving anything. `ok` says whether it could be registered.',
    input: { body: body.extend({ name: z.string().optional() }) },
    output: z.object({ ok: z.boolean(), compliance }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'bad_name', 'bad_model', 'rate_limit_exceeded'],
    audit: false,
    requires,
    async handle({ customServers }, input, call) {
      const result = await customServers.test(call.principal.orgId, paramsOf({ ...input.body, name: input.body.name ?? 'test' }), call.signal)
      return { ok: result.pass, compliance: complianceView(result) }
    },
  }),

  changeCustomEndpoint: row({
    at: 'PATCH /me/endpoints/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary:
      'Changes what is named of a registered server. Its slug stays. Its key stays too, unless the request gives one (null: none). An address at another host, port or scheme needs the key again. A new address, key or model is tested first; if the test fails, nothing changes.',
    input: { path: z.object({ id: z.string().describe('Id of the endpoint.') }), body: change },
    output: z.object({ ok: z.literal(true), endpoint, compliance }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'bad_name', 'bad_model', 'not_found', 'rate_limit_exceeded'],
    requires,
    async handle({ customServers }, { path, body: given }, call) {
      const server = await customServers.change(call.principal.orgId, idOf(path), changeOf(given), call.signal)
      return { ok: true, endpoint: viewOf(server), compliance: complianceView(server.compliance) }
    },
  }),

  retestCustomEndpoint: row({
    at: 'POST /me/endpoints/{id}/retest',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Tests a registered server again and keeps the result. It stays registered either way.',
    input: { path: z.object({ id: z.string().describe('Id of the endpoint.') }) },
    output: z.object({ ok: z.boolean(), endpoint, compliance }),
    errors: ['forbidden', 'unavailable', 'not_found', 'rate_limit_exceeded'],
    requires,
    async handle({ customServers }, { path }, call) {
      const server = await customServers.retest(call.principal.orgId, idOf(path), call.signal)
      return { ok: server.compliance.pass, endpoint: viewOf(server), compliance: complianceView(server.compliance) }
    },
  }),

  removeCustomEndpoint: row({
    at: 'DELETE /me/endpoints/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Removes a server. Calls stop going there immediately.',
    input: { path: z.object({ id: z.string().describe('Id of the endpoint.') }) },
    output: z.object({ ok: z.literal(true) }),
    errors: ['forbidden', 'unavailable', 'not_found'],
    requires,
    async handle({ customServers }, { path }, call) {
      await customServers.remove(call.principal.orgId, idOf(path))
      return { ok: true }
    },
  }),
}

/** Removes the spaces that people paste around URLs and keys. A key that consists of spaces counts as no key. */
function paramsOf(given: z.output<typeof body>): ServerParams {
  const key = given.key?.trim() ?? ''
  return {
    name: given.name.trim(),
    model: given.model.trim(),
    baseUrl: given.base_url.trim(),
    upstreamModel: given.upstream_model.trim(),
    key: key === '' ? null : key,
    residency: given.residency ?? 'global',
  }
}

/** Omitted fields stay omitted. A key that consists of spaces counts as omitted, so the saved key stays. */
function changeOf({ name, model, base_url, upstream_model, key, residency }: z.output<typeof change>): ServerChange {
  return {
    ...(name === undefined ? {} : { name: name.trim() }),
    ...(model === undefined ? {} : { model: model.trim() }),
    ...(base_url === undefined ? {} : { baseUrl: base_url.trim() }),
    ...(upstream_model === undefined ? {} : { upstreamModel: upstream_model.trim() }),
    ...(key === undefined || key?.trim() === '' ? {} : { key: key?.trim() ?? null }),
    ...(residency === undefined ? {} : { residency }),
  }
}

/** Returns the id in the path. Throws `not_found` for a text that does not have the form of an id. */
function idOf({ id }: { id: string }): number {
  const known = rowId(id)
  if (known === null) throw fail('not_found', { message: 'There is no such custom endpoint.' })
  return known
}

function viewOf(server: CustomServerRow): z.output<typeof endpoint> {
  return {
    id: server.id,
    slug: server.slug,
    provider_ref: customReference(server.slug),
    model: server.modelId,
    name: server.name,
    base_url: server.baseUrl,
    upstream_model: server.upstreamModel,
    key_mask: server.keyMask,
    residency: server.residency,
    checked_at: server.checkedAt.toISOString(),
    created_at: server.createdAt.toISOString(),
  }
}
