import { z } from 'zod'
import { type At, endpointOf, reply } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import { int4Max } from '../platform/values/row-id.ts'
import { paramsOf } from './agent-rules.ts'
import { agentPath, agentView, changedAgent, idOf, mintedShape, paramsShape, runParam, runParamsShape, tokenParamsShape } from './agent-shapes.ts'
import type { Agents } from './agents.ts'
import { familyView, filterOf, listQuery, pageDefault } from './listing/list-shapes.ts'
import { jwksMaxAgeSeconds } from './tokens/signing-keys.ts'

const row = endpointOf<{ agents: Agents }>()

/** The twin of a row that changes an agent. The handler checks that a plain member owns the agent. */
const byPerson = (at: At) => ({ at, auth: 'session', access: {} }) as const

export const agentEndpoints = {
  listAgents: row({
    at: 'GET /v1/me/agents',
    twin: { at: 'GET /me/agents', auth: 'session', access: {} },
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'agents',
    summary: 'The agent identities of the organisation with their owners, monthly budgets and spend, active ones first.',
    input: { query: listQuery },
    output: z.object({
      agents: z.array(agentView),
      next_cursor: z
        .string()
        .nullable()
        .optional()
        .describe('Null after the last page. Left out when the whole list is there and the request asked for no page.'),
      total_estimate: z
        .int()
        .optional()
        .describe('Number of agents that match, among 100,000 at most. Only on a first page, and not with budget_used_percent.'),
    }),
    errors: ['bad_request'],
    async handle({ agents }, { query }, { principal }) {
      const { orgId } = principal
      const filter = filterOf(query, principal)
      // A program that asks for no page gets the whole list of a small organisation, as in the first version.
      const isPaged = principal.kind === 'session' || Object.values(query).some(value => value !== undefined)
      const limit = query.limit ?? (isPaged ? pageDefault : undefined)
      const [page, total] = await Promise.all([
        agents.list(orgId, { ...filter, limit }),
        isPaged && query.cursor === undefined && query.budget_used_percent === undefined ? agents.total(orgId, filter) : undefined,
      ])
      const next = isPaged || page.nextCursor !== null ? { next_cursor: page.nextCursor } : {}
      return { agents: page.agents, ...next, ...(total === undefined ? {} : { total_estimate: total }) }
    },
  }),

  getAgent: row({
    at: 'GET /v1/me/agents/{id}',
    twin: { at: 'GET /me/agents/{id}', auth: 'session', access: {} },
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'agents',
    summary: 'One agent with its family: the agents above it, and its newest active children.',
    input: { path: agentPath },
    output: familyView,
    errors: ['not_found'],
    handle: ({ agents }, { path }, call) => agents.family(call.principal.orgId, idOf(path)),
  }),

  createAgent: row({
    at: 'POST /v1/me/agents',
    twin: byPerson('POST /me/agents'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Makes an agent identity (201). If an active one has that name, sets the given fields on it and returns it (200).',
    input: {
      body: z.strictObject({
        name: z.string().describe('1 to 100 characters, unique among the active agents of the organisation.'),
        ...paramsShape,
        ...runParamsShape,
      }),
    },
    output: agentView,
    status: 201,
    errors: ['forbidden', 'bad_name', 'bad_request', 'org_limit_reached'],
    async handle({ agents }, { body }, call) {
      const { agent, isNew } = await agents.createOrReuse(call.principal, body.name, paramsOf(body))
      return reply.json(agent, isNew ? 201 : 200)
    },
  }),

  updateAgent: row({
    at: 'PATCH /v1/me/agents/{id}',
    twin: byPerson('PATCH /me/agents/{id}'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary:
      'Changes the rules of an agent: models, providers, cost and length of one call, concurrent calls, caps of runs. Owners and admins also name its owner. A field that is left out stays; null removes its rule.',
    input: {
      path: agentPath,
      body: z.strictObject({
        ...paramsShape,
        ...runParamsShape,
        owner_uid: z.int().min(1).max(int4Max).optional().describe('The active member who answers for the agent from now on. For owners and admins.'),
      }),
    },
    output: changedAgent,
    errors: ['forbidden', 'not_found', 'bad_request', 'agent_revoked'],
    handle: async ({ agents }, { path, body }, call) => ({
      ok: true,
      ...(await agents.update(call.principal.orgId, idOf(path), { ...paramsOf(body), ownerUser: body.owner_uid }, call.principal)),
    }),
  }),

  mintAgentToken: row({
    at: 'POST /v1/me/agents/{id}/token',
    twin: byPerson('POST /me/agents/{id}/token'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Mints a short-lived token of this agent, with all scopes or fewer. The limits of the key that mints it, or that a person names, apply too.',
    input: {
      path: agentPath,
      body: z.strictObject({
        ...tokenParamsShape,
        key_id: z
          .int()
          .min(1)
          .max(int4Max)
          .optional()
          .describe('With a session: the API key of yours that binds the token. The token ends with it. An API key binds with itself.'),
        run: runParam.describe('Id of the run that all calls with this token belong to, and all calls with tokens that are made from it.'),
      }),
    },
    output: z.object(mintedShape),
    errors: ['forbidden', 'not_found', 'agent_revoked', 'bad_request'],
    async handle({ agents }, { path, body }, call) {
      const minted = await agents.tokens.mint(call.principal, idOf(path), {
        scope: body.scope,
        ttlSeconds: body.ttl_s,
        keyId: body.key_id,
        runId: body.run,
      })
      return reply.json(minted, 200, { 'cache-control': 'no-store' })
    },
  }),

  revokeAgent: row({
    at: 'POST /v1/me/agents/{id}/revoke',
    twin: byPerson('POST /me/agents/{id}/revoke'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Kill switch: ends the agent and its children. Their tokens stop immediately and their running calls are cut. This cannot be undone.',
    input: { path: agentPath },
    output: changedAgent,
    errors: ['forbidden', 'not_found'],
    handle: async ({ agents }, { path }, call) => ({ ok: true, ...(await agents.revoke(call.principal.orgId, idOf(path), call.principal)) }),
  }),

  pauseAgent: row({
    at: 'POST /v1/me/agents/{id}/pause',
    twin: byPerson('POST /me/agents/{id}/pause'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Pauses an agent: its calls and those of its children are refused with agent_paused and running ones are cut, until it is resumed.',
    input: { path: agentPath },
    output: changedAgent,
    errors: ['forbidden', 'not_found', 'agent_revoked'],
    handle: async ({ agents }, { path }, call) => ({ ok: true, ...(await agents.setPaused(call.principal.orgId, idOf(path), true, call.principal)) }),
  }),

  resumeAgent: row({
    at: 'POST /v1/me/agents/{id}/resume',
    twin: byPerson('POST /me/agents/{id}/resume'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Resumes a paused agent; its tokens work again. Only an owner or admin can resume an agent that an owner or admin paused.',
    input: { path: agentPath },
    output: changedAgent,
    errors: ['forbidden', 'not_found', 'agent_revoked'],
    handle: async ({ agents }, { path }, call) => ({ ok: true, ...(await agents.setPaused(call.principal.orgId, idOf(path), false, call.principal)) }),
  }),

  setAgentBudget: row({
    at: 'POST /v1/me/agents/{id}/budget',
    twin: byPerson('POST /me/agents/{id}/budget'),
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: "Sets the monthly budget of an agent in rupees (IST month); null clears it, and with a key 0 too. A child's fits into its parent's.",
    input: { path: agentPath, body: z.strictObject({ monthly_budget_inr: z.number().min(0).nullable() }) },
    output: changedAgent,
    errors: ['forbidden', 'not_found', 'bad_request', 'agent_revoked', 'budget_not_available'],
    async handle({ agents }, { path, body }, { principal }) {
      // The contract of keys lets 0 clear a budget. At the console, a person who types 0 means the opposite.
      if (principal.kind === 'session' && body.monthly_budget_inr === 0)
        throw fail('bad_request', { message: '0 would lift the budget. Send null for no limit, or pause the agent.' })
      return { ok: true, ...(await agents.setBudget(principal.orgId, idOf(path), body.monthly_budget_inr, principal)) }
    },
  }),

  jwks: row({
    at: 'GET /.well-known/jwks.json',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'The public keys of agent tokens: the current one, the next one, and retired ones whose tokens may still be alive.',
    input: {},
    output: z.object({
      keys: z.array(z.object({ kty: z.string(), crv: z.string(), x: z.string(), y: z.string(), kid: z.string(), alg: z.string(), use: z.string() })),
    }),
    errors: ['database_unavailable'],
    handle: async ({ agents }) => reply.json({ keys: await agents.signingKeys.published() }, 200, { 'cache-control': `public, max-age=${jwksMaxAgeSeconds}` }),
  }),
}
