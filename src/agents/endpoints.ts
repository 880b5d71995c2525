import { z } from 'zod'
import { endpointOf, reply } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import { agentScopes } from '../platform/principal.ts'
import { int4Max, rowId } from '../platform/row-id.ts'
import { wishOf } from './agent-rules.ts'
import type { Agents } from './agents.ts'
import { jwksMaxAgeSeconds } from './signing-keys.ts'

const row = endpointOf<{ agents: Agents }>()

const agentView = z.object({
  id: z.int(),
  name: z.string(),
  status: z.enum(['active', 'revoked']),
  monthly_budget_inr: z.number().nullable().describe('Monthly limit in rupees; null = none.'),
  spend_month_inr: z.number().describe('Usage value of the running month (IST) in rupees.'),
  may_delegate: z.boolean().describe('Whether the agent may make child agents of its own.'),
  allowed_models: z.array(z.string()).nullable(),
  allowed_providers: z.array(z.string()).nullable(),
  max_cost_inr_per_call: z.number().nullable(),
  max_output_tokens: z.int().nullable(),
  max_concurrency: z.int().nullable(),
  created_at: z.string().describe('ISO 8601, UTC.'),
})
/** Most models or providers that a rule may name, and the length of an id. */
const idsMax = 100
const idLengthMax = 200
const concurrencyMax = 100_000
/** A cap of one call in rupees: between these, rupees and micro-rupees convert both ways without loss. */
const costInrMin = 0.000001
const costInrMax = 1_000_000_000
const pageMax = 200
const pageDefault = 50

const allowed = z
  .array(
    z
      .string()
      .trim()
      .min(1)
      .max(idLengthMax)
      .regex(/^\P{Cc}*$/u, 'must not hold control characters'),
  )
  .min(1)
  .max(idsMax)
  .nullable()
  .optional()
/** What may be ruled for an agent. Left out: as it is; null: no rule. */
const wishShape = {
  may_delegate: z.boolean().optional().describe('Let the agent make child agents. Default: false.'),
  allowed_models: allowed.describe('Model ids that its calls may use; null = all that its key may.'),
  allowed_providers: allowed.describe('Provider ids that may serve its calls, byoe:<slug> for servers of the organisation; null = all that its key may.'),
  max_cost_inr_per_call: z
    .number()
    .min(costInrMin)
    .max(costInrMax)
    .nullable()
    .optional()
    .describe('Most rupees that one call may cost in the worst case; null = no rule.'),
  max_output_tokens: z.int().min(1).max(int4Max).nullable().optional().describe('Most output tokens of one call, reasoning included; null = no rule.'),
  max_concurrency: z.int().min(1).max(concurrencyMax).nullable().optional().describe('Most calls at once, over all processes; null = no rule.'),
}

/** What may be asked of a token. */
const tokenWishShape = {
  scope: z
    .string()
    .max(200)
    .optional()
    .describe(`Some of "${agentScopes.join(' ')}", with spaces between them. Left out: all.`),
  ttl_s: z.int().min(1).optional().describe('Seconds until it ends, at most AGENT_TOKEN_TTL_S, which it is when left out.'),
}

const agentPath = z.object({ id: z.string().describe('Agent id.') })

/** The id in the path; a text that can be no id is an agent that does not exist. */
function idOf(path: { id: string }): number {
  const id = rowId(path.id)
  if (id === null) throw fail('not_found', { message: 'There is no such agent.' })
  return id
}

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
      next_cursor: z.string().nullable().optional().describe('Null behind the last page. Left out where everything is there and no page was asked for.'),
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
    summary: 'Makes an agent identity (201), or returns the active one of that name (200), on which it sets what is given.',
    input: {
      body: z.object({
        name: z.string().describe('1 to 100 characters, unique among the active agents of the organisation.'),
        ...wishShape,
      }),
    },
    output: agentView,
    status: 201,
    errors: ['forbidden', 'bad_name', 'bad_request'],
    async handle({ agents }, { body }, call) {
      const { agent, isNew } = await agents.createOrReuse(call.principal, body.name, wishOf(body))
      return reply.json(agent, isNew ? 201 : 200)
    },
  }),

  updateAgent: row({
    at: 'PATCH /v1/me/agents/{id}',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Changes what is ruled for an agent: models, providers, cost and length of one call, calls at once. What is left out stays, null lifts a rule.',
    input: { path: agentPath, body: z.object(wishShape) },
    output: agentView,
    errors: ['forbidden', 'not_found', 'bad_request', 'agent_revoked'],
    handle: ({ agents }, { path, body }, call) => agents.update(call.principal.orgId, idOf(path), wishOf(body)),
  }),

  mintAgentToken: row({
    at: 'POST /v1/me/agents/{id}/token',
    auth: 'key',
    access: { scope: 'full' },
    tag: 'agents',
    summary: 'Mints a short-lived token that acts as this agent, everywhere or for less. The limits of the minting key bind it too.',
    input: { path: agentPath, body: z.object(tokenWishShape) },
    output: z.object({
      access_token: z.string(),
      token: z.string().describe('The same as access_token.'),
      token_type: z.literal('Bearer'),
      expires_in: z.int().describe('Seconds.'),
      expires_at: z.string().describe('ISO 8601, UTC.'),
      agent_id: z.int(),
      scope: z.string(),
    }),
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
