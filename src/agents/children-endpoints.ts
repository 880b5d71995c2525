import { z } from 'zod'
import { capOfInr } from '../gateway/limits/budget-amount.ts'
import { endpointOf, reply } from '../platform/endpoint.ts'
import { wishOf } from './agent-rules.ts'
import { agentPath, agentView, idOf, mintedShape, tokenWishShape, wishShape } from './agent-shapes.ts'
import type { Agents } from './agents.ts'

const row = endpointOf<{ agents: Agents }>()

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
      body: z.object({
        name: z.string().describe('1 to 100 characters, unique among the active agents of the organisation.'),
        monthly_budget_inr: z
          .number()
          .min(0)
          .nullable()
          .optional()
          .describe('Rupees a month. Needed for a new child when the parent has a budget, and then within it; on a child that is there, left out is as it is.'),
        ...wishShape,
        ...tokenWishShape,
      }),
    },
    output: z.object({ agent: agentView, ...mintedShape }),
    status: 201,
    errors: ['forbidden', 'bad_name', 'bad_request', 'not_found', 'agent_name_taken', 'agent_revoked', 'budget_not_available', 'cap'],
    async handle({ agents }, { path, body }, call) {
      const { agent, token, isNew } = await agents.children.create(call.principal, idOf(path), {
        name: body.name,
        rules: wishOf(body),
        capUinr: body.monthly_budget_inr === undefined ? undefined : capOfInr(body.monthly_budget_inr),
        token: { scope: body.scope, ttlSeconds: body.ttl_s },
      })
      const view = await agents.viewOf(call.principal.orgId, agent)
      return reply.json({ agent: view, ...token }, isNew ? 201 : 200, { 'cache-control': 'no-store' })
    },
  }),
}
