import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import type { Whoami } from './whoami.ts'

const row = endpointOf<{ whoami: Whoami }>()

export const accessEndpoints = {
  whoami: row({
    at: 'GET /v1/me/whoami',
    auth: 'key',
    access: {},
    tag: 'identity',
    summary: 'Who this credential is: organisation, user, key, agent, scope, limits.',
    input: {},
    output: z.object({
      principal: z.object({ kind: z.enum(['key', 'agent']), id: z.int(), name: z.string() }),
      org: z.object({ id: z.int(), name: z.string() }),
      user: z.object({ id: z.int() }).nullable(),
      workspace_id: z.int().nullable(),
      agent: z.object({ id: z.int(), name: z.string() }).nullable(),
      key: z.object({ id: z.int(), name: z.string() }),
      role: z.enum(['member', 'admin', 'owner']).nullable(),
      scope: z.string().describe('Of a key full or inference; of an agent token what it is good for, with spaces between.'),
      token_expires_at: z.string().nullable(),
      limits: z.object({ rpm_limit: z.int().nullable(), daily_limit: z.int().nullable() }),
      budget: z
        .object({
          scope: z.string(),
          id: z.string(),
          period: z.string(),
          cap_inr: z.number(),
          spent_inr: z.number(),
          remaining_inr: z.number(),
          state: z.string(),
          resets_at: z.string().nullable(),
        })
        .nullable()
        .describe('Of the budgets that bind this credential the one with the least left; null without one.'),
      credit: z
        .object({
          balance_inr: z.number(),
          trial: z.boolean().describe("The key is on trial: free on the platform's models in India, nothing else is paid for it."),
        })
        .nullable()
        .describe('Prepaid credit of the organisation; null where nothing is prepaid.'),
      memory: z.object({ configured: z.boolean() }),
      version: z.string(),
    }),
    errors: [],
    handle: ({ whoami }, _input, call) => whoami.describe(call.principal),
  }),
}
