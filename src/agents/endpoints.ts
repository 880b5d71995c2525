import { z } from 'zod'
import { endpointOf, reply } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import { type Agents, agentIdOf } from './agents.ts'
import { jwksMaxAgeSeconds } from './signing-keys.ts'

const row = endpointOf<{ agents: Agents }>()

const agentView = z.object({
  id: z.int(),
  name: z.string(),
  status: z.enum(['active', 'revoked']),
  monthly_budget_inr: z.number().nullable().describe('Monthly limit in rupees; null = none.'),
  spend_month_inr: z.number().describe('Usage value of the running month (IST) in rupees.'),
  may_delegate: z.boolean().describe('Whether the agent may make child agents of its own.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})
const agentPath = z.object({ id: z.string().describe('Agent id.') })

/** The id in the path; a text that can be no id is an agent that does not exist. */
function idOf(path: { id: string }): number {
  const id = agentIdOf(path.id)
  if (id === null) throw fail('not_found', { message: 'There is no such agent.' })
  return id
}

export const agentEndpoints = {
  listAgents: row({
    at: 'GET /v1/me/agents',
    auth: 'key',
    access: {},
    tag: 'agents',
    summary: 'The agent identities of the organisation with their monthly budgets and spend, active ones first.',
    input: {},
    output: z.object({ agents: z.array(agentView) }),
    errors: [],
    handle: async ({ agents }, _input, call) => ({ agents: await agents.list(call.principal.orgId) }),
  }),

  createAgent: row({
    at: 'POST /v1/me/agents',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Makes an agent identity (201), or returns the active one of that name (200).',
    input: {
      body: z.object({
        name: z.string().describe('1 to 100 characters, unique among the active agents of the organisation.'),
        may_delegate: z.boolean().optional().describe('Let the agent make child agents. Default: false.'),
      }),
    },
    output: agentView,
    status: 201,
    errors: ['forbidden', 'bad_name'],
    async handle({ agents }, { body }, call) {
      const { agent, isNew } = await agents.createOrReuse(call.principal, body.name, body.may_delegate === undefined ? {} : { mayDelegate: body.may_delegate })
      return reply.json(agent, isNew ? 201 : 200)
    },
  }),

  mintAgentToken: row({
    at: 'POST /v1/me/agents/{id}/token',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Mints a short-lived token that acts as this agent on every endpoint. The limits of the minting key bind it too.',
    input: { path: agentPath },
    output: z.object({
      access_token: z.string(),
      token: z.string().describe('The same as access_token.'),
      token_type: z.literal('Bearer'),
      expires_in: z.int().describe('Seconds.'),
      expires_at: z.string().describe('ISO 8601, UTC.'),
      agent_id: z.int(),
      scope: z.string(),
    }),
    errors: ['forbidden', 'not_found', 'agent_revoked'],
    async handle({ agents }, { path }, call) {
      return reply.json(await agents.tokens.mint(call.principal, idOf(path)), 200, { 'cache-control': 'no-store' })
    },
  }),

  revokeAgent: row({
    at: 'POST /v1/me/agents/{id}/revoke',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Kill switch: ends the agent and its children. Their tokens stop at once and their running calls are cut. There is no way back.',
    input: { path: agentPath },
    output: agentView,
    errors: ['forbidden', 'not_found'],
    handle: ({ agents }, { path }, call) => agents.revoke(call.principal.orgId, idOf(path)),
  }),

  setAgentBudget: row({
    at: 'POST /v1/me/agents/{id}/budget',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Sets the monthly budget of an agent in rupees (IST month); null or 0 clears it.',
    input: { path: agentPath, body: z.object({ monthly_budget_inr: z.number().min(0).nullable() }) },
    output: agentView,
    errors: ['forbidden', 'not_found', 'bad_request', 'agent_revoked'],
    handle: ({ agents }, { path, body }, call) => agents.setBudget(call.principal.orgId, idOf(path), body.monthly_budget_inr),
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
