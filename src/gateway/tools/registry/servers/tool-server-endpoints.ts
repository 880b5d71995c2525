import { z } from 'zod'
import { endpointOf } from '../../../../platform/endpoint.ts'
import type { ToolApprovals } from '../approvals/approvals.ts'
import {
  changeOf,
  countsView,
  paramsOf,
  serverBody,
  serverChange,
  serverIdOf,
  serverPath,
  serverView,
  serverViewOf,
  syncView,
  syncViewOf,
  testedTool,
  testedToolOf,
  toolCounts,
} from './tool-server-views.ts'
import type { ToolServers } from './tool-servers.ts'

const row = endpointOf<{ toolServers: ToolServers; toolApprovals: ToolApprovals }>()

const requires = ({ toolServers }: { toolServers: ToolServers }): void => toolServers.requireEnabled()
const tag = 'tools'
const switched = z.object({ ok: z.literal(true), server: serverView })

export const toolServerEndpoints = {
  listToolServers: row({
    at: 'GET /me/tool-servers',
    auth: 'session',
    access: {},
    tag,
    summary: "The organisation's own MCP servers, headers masked, with the number of their tools in each state.",
    input: {},
    output: z.object({ servers: z.array(serverView.extend({ tools: toolCounts })) }),
    errors: ['unavailable'],
    requires,
    async handle({ toolServers, toolApprovals }, _input, call) {
      const { orgId } = call.principal
      const [servers, counts] = await Promise.all([toolServers.list(orgId), toolApprovals.counts(orgId)])
      return { servers: servers.map(server => ({ ...serverViewOf(server), tools: countsView(counts.get(server.id)) })) }
    },
  }),

  createToolServer: row({
    at: 'POST /me/tool-servers',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Reads the tools of an MCP server and registers it when that succeeds. Its tools wait for approval: nobody can call them before.',
    input: { body: serverBody },
    output: z.object({ ok: z.literal(true), server: serverView, sync: syncView }),
    status: 201,
    errors: ['forbidden', 'unavailable', 'bad_request', 'bad_name', 'tool_slug_taken', 'cap', 'rate_limit_exceeded', 'places_taken'],
    requires,
    async handle({ toolServers }, { body }, call) {
      const { server, result } = await toolServers.register(call.principal.orgId, paramsOf(body), body.slug ?? null, call.signal)
      return { ok: true, server: serverViewOf(server), sync: syncViewOf(result) }
    },
  }),

  testToolServer: row({
    at: 'POST /me/tool-servers/test',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Reads the tools of an MCP server without saving anything. `ok` says whether it could be registered.',
    input: { body: serverBody.extend({ name: z.string().optional() }) },
    output: z.object({
      ok: z.boolean(),
      era: serverView.shape.era,
      tools: z.array(testedTool).describe('The first 100 of them.'),
      tools_total: z.int(),
      left_out: syncView.shape.left_out,
      error: syncView.shape.error,
      detail: syncView.shape.detail,
    }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'bad_name', 'rate_limit_exceeded', 'places_taken'],
    audit: false,
    requires,
    async handle({ toolServers }, { body }, call) {
      const look = await toolServers.test(call.principal.orgId, paramsOf({ ...body, name: body.name ?? 'test' }), body.slug ?? null, call.signal)
      if (!look.ok) return { ok: false, era: null, tools: [], tools_total: 0, left_out: [], error: look.error, detail: look.message }
      const { tools, leftOut } = look.received
      const { left_out } = syncViewOf({ ok: true, changes: [], leftOut })
      return { ok: true, era: look.era, tools: tools.slice(0, 100).map(testedToolOf), tools_total: tools.length, left_out, error: null, detail: null }
    },
  }),

  changeToolServer: row({
    at: 'PATCH /me/tool-servers/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary:
      'Changes what is named of a registered server. Its slug stays. An address at another host, port or scheme needs the header again, and ends the approval of its tools. A new address or header is tested first; if the test fails, nothing changes.',
    input: { path: serverPath, body: serverChange },
    output: z.object({ ok: z.literal(true), server: serverView, sync: syncView }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'bad_name', 'not_found', 'rate_limit_exceeded', 'places_taken'],
    requires,
    async handle({ toolServers }, { path, body }, call) {
      const { server, result } = await toolServers.change(call.principal.orgId, serverIdOf(path), changeOf(body), call.signal)
      return { ok: true, server: serverViewOf(server), sync: syncViewOf(result) }
    },
  }),

  syncToolServer: row({
    at: 'POST /me/tool-servers/{id}/sync',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Reads the tools of a registered server now. New and changed ones wait for approval. `ok` says whether the server could be read.',
    input: { path: serverPath },
    output: z.object({ ok: z.boolean(), server: serverView, sync: syncView }),
    errors: ['forbidden', 'unavailable', 'not_found', 'rate_limit_exceeded', 'places_taken'],
    requires,
    async handle({ toolServers }, { path }, call) {
      const { server, result } = await toolServers.resync(call.principal.orgId, serverIdOf(path), call.signal)
      return { ok: result.ok, server: serverViewOf(server), sync: syncViewOf(result) }
    },
  }),

  switchToolServerOff: row({
    at: 'POST /me/tool-servers/{id}/off',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Switches a server off. Running calls of its tools end, and its tools leave every list. Its approvals stay.',
    input: { path: serverPath },
    output: switched,
    errors: ['forbidden', 'unavailable', 'not_found'],
    requires,
    async handle({ toolServers }, { path }, call) {
      return { ok: true, server: serverViewOf(await toolServers.turn(call.principal.orgId, serverIdOf(path), 'off')) }
    },
  }),

  switchToolServerOn: row({
    at: 'POST /me/tool-servers/{id}/on',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Switches a server on again. Its approved tools can be called, and the gateway soon reads its tools again.',
    input: { path: serverPath },
    output: switched,
    errors: ['forbidden', 'unavailable', 'not_found'],
    requires,
    async handle({ toolServers }, { path }, call) {
      return { ok: true, server: serverViewOf(await toolServers.turn(call.principal.orgId, serverIdOf(path), 'on')) }
    },
  }),

  switchToolServersOff: row({
    at: 'POST /me/tool-servers/off',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Switches every MCP server of the organisation off. Running calls of tools end.',
    input: {},
    output: z.object({ ok: z.literal(true), switched_off: z.int().describe('Number of servers that were on.') }),
    errors: ['forbidden', 'unavailable'],
    requires,
    async handle({ toolServers }, _input, call) {
      return { ok: true, switched_off: await toolServers.turnAllOff(call.principal.orgId) }
    },
  }),

  removeToolServer: row({
    at: 'DELETE /me/tool-servers/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Removes a server with its header, definitions and approvals. Running calls of its tools end. Its slug is never used again.',
    input: { path: serverPath },
    output: z.object({ ok: z.literal(true) }),
    errors: ['forbidden', 'unavailable', 'not_found'],
    requires,
    async handle({ toolServers }, { path }, call) {
      await toolServers.remove(call.principal.orgId, serverIdOf(path))
      return { ok: true }
    },
  }),
}
