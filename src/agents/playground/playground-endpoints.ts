import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { agentScopes } from '../../platform/security/principal.ts'
import { agentView, mintedShape } from '../agent-shapes.ts'
import type { Agents } from '../agents.ts'

const row = endpointOf<{ agents: Agents }>()

export const playgroundEndpoints = {
  mintPlaygroundToken: row({
    at: 'POST /me/playground/token',
    auth: 'session',
    access: {},
    tag: 'agents',
    summary: "A token of the caller's playground agent for 15 minutes. The agent and its key are made with the first token, with a small monthly budget.",
    input: {
      body: z.strictObject({
        scope: z
          .string()
          .max(200)
          .optional()
          .describe(`Some of "${agentScopes.join(' ')}", with spaces between them. Left out: inference.`),
      }),
    },
    output: z.object({ agent: agentView, ...mintedShape }),
    errors: ['bad_request', 'forbidden', 'agent_name_taken', 'org_limit_reached'],
    async handle({ agents }, { body }, { principal }) {
      if (principal.kind !== 'session') throw fail('no_session')
      const { agent, token } = await agents.playgrounds.token(principal, body.scope)
      return reply.json({ agent, ...token }, 200, { 'cache-control': 'no-store' })
    },
  }),
}
