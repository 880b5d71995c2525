import { z } from 'zod'
import { capOfInr } from '../../gateway/limits/budgets/budget-amount.ts'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { paramsOf } from '../agent-rules.ts'
import { agentPath, agentView, changedAgent, idOf, mintedShape, paramsShape, tokenParamsShape } from '../agent-shapes.ts'
import type { Agents } from '../agents.ts'
import { itself } from './children.ts'

const row = endpointOf<{ agents: Agents }>()

/**
 * What the endpoints for a descendant of the calling agent have in common. They need the scope `inference`, so a token that may not call models cannot stop
 * agents.
 */
const below = {
  auth: 'key',
  access: { agentOnly: true, agentScope: 'inference' },
  tag: 'agents',
  input: { path: agentPath.extend({ childId: z.string().describe('Id of an agent below it.') }) },
  output: changedAgent,
  errors: ['forbidden', 'not_found', 'agent_revoked'],
} as const

const childName = z.string().describe('1 to 100 characters, unique among the active agents of the organisation.')
const childBudget = z.number().min(0).nullable().optional()

const capOfChild = (budgetInr: number | null | undefined, pausePath: string): bigint | null | undefined =>
  budgetInr === undefined ? undefined : capOfInr(budgetInr, { toStop: `pause the child: POST ${pausePath}` })

export const childrenEndpoints = {
  createChildAgent: row({
    at: 'POST /v1/me/agents/{id}/children',
    auth: 'key',
    access: { agentOnly: true },
    tag: 'agents',
    summary:
      'For an agent with may_delegate, by its own token: makes a child (201), or takes its child of that name again (200), and mints a token for it. A child has no more than its parents.',
    input: {
      path: agentPath,
      body: z.strictObject({
        name: childName,
        monthly_budget_inr: childBudget.describe(
          'Rupees a month; null: no limit of its own. Needed for a new child when the parent has a budget, and then within it; on a child that is there, left out is as it is.',
        ),
        ...paramsShape,
        ...tokenParamsShape,
      }),
    },
    output: z.object({ agent: agentView, ...mintedShape }),
    status: 201,
    errors: ['forbidden', 'bad_name', 'bad_request', 'not_found', 'agent_name_taken', 'agent_revoked', 'budget_not_available', 'cap', 'org_limit_reached'],
    async handle({ agents }, { path, body }, call) {
      const { agent, token, isNew } = await agents.children.create(call.principal, idOf(path), {
        name: body.name,
        rules: paramsOf(body),
        capUinr: capOfChild(body.monthly_budget_inr, '/v1/me/agents/{id}/children/{childId}/pause'),
        token: { scope: body.scope, ttlSeconds: body.ttl_s },
      })
      const view = await agents.viewOf(call.principal.orgId, agent)
      return reply.json({ agent: view, ...token }, isNew ? 201 : 200, { 'cache-control': 'no-store' })
    },
  }),

  createChildByPerson: row({
    at: 'POST /me/agents/{id}/children',
    auth: 'session',
    access: {},
    tag: 'agents',
    summary:
      'Makes a child of an agent (201). For the owner of the agent, and for owners and admins of the organisation. A child has no more than its parents.',
    input: {
      path: agentPath,
      body: z.strictObject({
        name: childName,
        monthly_budget_inr: childBudget.describe('Rupees a month; null: no limit of its own. Needed when the parent has a budget, and then within it.'),
        ...paramsShape,
      }),
    },
    output: agentView,
    status: 201,
    errors: ['forbidden', 'bad_name', 'bad_request', 'not_found', 'agent_name_taken', 'agent_revoked', 'budget_not_available', 'cap', 'org_limit_reached'],
    async handle({ agents }, { path, body }, { principal }) {
      if (principal.kind !== 'session') throw fail('no_session')
      if (body.monthly_budget_inr === 0) throw fail('bad_request', { message: '0 would lift the budget. Send null for no limit, or pause the agent.' })
      const params = { name: body.name, rules: paramsOf(body), capUinr: capOfChild(body.monthly_budget_inr, '/me/agents/{id}/pause') }
      return agents.viewOf(principal.orgId, await agents.children.createByPerson(principal, idOf(path), params))
    },
  }),

  pauseChildAgent: row({
    ...below,
    at: 'POST /v1/me/agents/{id}/children/{childId}/pause',
    summary:
      'For an agent, by its own token: pauses an agent below it, a child or a child of one. Its calls are refused and running ones cut, until it is resumed.',
    async handle({ agents }, { path }, { principal }) {
      const childId = await descendantOf(agents, principal, path)
      return { ok: true, ...(await agents.setPaused(principal.orgId, childId, true, principal)) }
    },
  }),

  resumeChildAgent: row({
    ...below,
    at: 'POST /v1/me/agents/{id}/children/{childId}/resume',
    summary: 'For an agent, by its own token: resumes an agent below it that an agent above it paused. Only a person can resume an agent that a person paused.',
    async handle({ agents }, { path }, { principal }) {
      const childId = await descendantOf(agents, principal, path)
      return { ok: true, ...(await agents.setPaused(principal.orgId, childId, false, principal)) }
    },
  }),

  revokeChildAgent: row({
    ...below,
    at: 'POST /v1/me/agents/{id}/children/{childId}/revoke',
    summary: 'For an agent, by its own token: permanently ends an agent below it, and all agents below that agent.',
    async handle({ agents }, { path }, { principal }) {
      const self = itself(principal, idOf(path))
      return { ok: true, ...(await agents.revokeBelow(self, idOf({ id: path.childId }))) }
    },
  }),
}

/**
 * Returns the id of the agent below the caller that the URL names. Throws `forbidden` when the URL names another agent as the parent. Throws
 * `not_found` when the agent is not below the caller.
 */
function descendantOf(agents: Agents, principal: Principal, path: { id: string; childId: string }): Promise<number> {
  itself(principal, idOf(path))
  return agents.descendant(principal.orgId, idOf(path), idOf({ id: path.childId }))
}
