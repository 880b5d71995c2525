import { z } from 'zod'
import { endpointOf, reply } from '../platform/endpoint.ts'
import { paramsOf } from './agent-rules.ts'
import { agentPath, agentView, changedAgent, idOf, mintedShape, paramsShape, tokenParamsShape } from './agent-shapes.ts'
import type { Agents } from './agents.ts'
import { jwksMaxAgeSeconds } from './tokens/signing-keys.ts'

const row = endpointOf<{ agents: Agents }>()

const pageMax = 200
const pageDefault = 50

export const agentEndpoints = {
  listAgents: row({
    at: 'GET /v1/me/agents',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'agents',
    summary: 'The agent identities of the organisation with their monthly budgets and spend, active ones first.',
    input: {
      query: z.object({
        limit: z.coerce.number().int().min(1).max(pageMax).optional().describe(`Agents of one page, at most ${pageMax}. Left out: the first 1,000 in one.`),
        cursor: z.string().optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({
      agents: z.array(agentView),
      next_cursor: z
        .string()
        .nullable()
        .optional()
        .describe('Null after the last page. Left out when the whole list is there and the request asked for no page.'),
    }),
    errors: ['bad_request'],
    async handle({ agents }, { query }, call) {
      const isPaged = query.limit !== undefined || query.cursor !== undefined
      const page = await agents.list(call.principal.orgId, { cursor: query.cursor, limit: query.limit ?? (isPaged ? pageDefault : undefined) })
      return { agents: page.agents, ...(isPaged || page.nextCursor !== null ? { next_cursor: page.nextCursor } : {}) }
    },
  }),

  createAgent: row({
    at: 'POST /v1/me/agents',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Makes an agent identity (201). If an active one has that name, sets the given fields on it and returns it (200).',
    input: {
      body: z.strictObject({
        name: z.string().describe('1 to 100 characters, unique among the active agents of the organisation.'),
        ...paramsShape,
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
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary:
      'Changes the rules of an agent: models, providers, cost and length of one call, concurrent calls. A field that is left out stays; null removes its rule.',
    input: { path: agentPath, body: z.strictObject(paramsShape) },
    output: changedAgent,
    errors: ['forbidden', 'not_found', 'bad_request', 'agent_revoked'],
    handle: async ({ agents }, { path, body }, call) => ({
      ok: true,
      ...(await agents.update(call.principal.orgId, idOf(path), paramsOf(body), call.principal)),
    }),
  }),

  mintAgentToken: row({
    at: 'POST /v1/me/agents/{id}/token',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Mints a short-lived token of this agent, with all scopes or fewer. The limits of the minting key apply too.',
    input: { path: agentPath, body: z.strictObject(tokenParamsShape) },
    output: z.object(mintedShape),
    errors: ['forbidden', 'not_found', 'agent_revoked', 'bad_request'],
    async handle({ agents }, { path, body }, call) {
      const minted = await agents.tokens.mint(call.principal, idOf(path), { scope: body.scope, ttlSeconds: body.ttl_s })
      return reply.json(minted, 200, { 'cache-control': 'no-store' })
    },
  }),

  revokeAgent: row({
    at: 'POST /v1/me/agents/{id}/revoke',
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
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: "Sets the monthly budget of an agent in rupees (IST month); null or 0 clears it. A child's fits into its parent's.",
    input: { path: agentPath, body: z.strictObject({ monthly_budget_inr: z.number().min(0).nullable() }) },
    output: changedAgent,
    errors: ['forbidden', 'not_found', 'bad_request', 'agent_revoked', 'budget_not_available'],
    handle: async ({ agents }, { path, body }, call) => ({
      ok: true,
      ...(await agents.setBudget(call.principal.orgId, idOf(path), body.monthly_budget_inr, call.principal)),
    }),
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
