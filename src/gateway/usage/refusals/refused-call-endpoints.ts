import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { type ErrorName, errorTable } from '../../../platform/errors.ts'
import { int4Max } from '../../../platform/values/row-id.ts'
import { whole } from '../activity/activity-parameters.ts'
import type { RefusedRow } from './refused-call-queries.ts'
import type { RefusedCalls } from './refused-calls.ts'

const row = endpointOf<{ refusedCalls: RefusedCalls }>()

const pageMax = 200
const pageDefault = 50
const id = whole.min(1).max(int4Max)

const refusal = z.object({
  hour: z.string().describe('The beginning of the hour in which the calls were refused, ISO 8601, UTC.'),
  key_id: z.int().nullable(),
  key_name: z.string().nullable(),
  agent_id: z.int().nullable().describe('The registered agent whose token made the calls.'),
  agent_name: z.string().nullable(),
  code: z.string().describe('error.code of the replies.'),
  status: z.int().nullable().describe('HTTP status of the replies. Null: an error of another version of the gateway.'),
  reason: z.string().nullable().describe('What the error means and what helps. The reply itself may have said more.'),
  scope: z.string().nullable().describe('Whose limit refused: org, team, workspace, member, key, agent or run. Null: no limit.'),
  calls: z.int(),
  first_at: z.string(),
  last_at: z.string(),
  last_request_id: z.string().describe('The x-request-id of the last of these replies.'),
})

function viewOf(of: RefusedRow): z.output<typeof refusal> {
  const entry = Object.hasOwn(errorTable, of.errorName) ? errorTable[of.errorName as ErrorName] : null
  return {
    hour: of.hour.toISOString(),
    key_id: of.keyId === 0 ? null : of.keyId,
    key_name: of.keyName,
    agent_id: of.agentId === 0 ? null : of.agentId,
    agent_name: of.agentName,
    code: entry?.code ?? of.errorName,
    status: entry?.status ?? null,
    reason: entry?.message ?? null,
    scope: of.scope === '' ? null : of.scope,
    calls: Number(of.calls),
    first_at: of.firstAt.toISOString(),
    last_at: of.lastAt.toISOString(),
    last_request_id: of.lastRequestId,
  }
}

export const refusedCallEndpoints = {
  listRefusedCalls: row({
    at: 'GET /v1/me/refused-calls',
    twin: { at: 'GET /me/refused-calls', auth: 'session', access: {} },
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'Calls that were refused before a provider was asked, by hour, credential and reason, the latest hour first. They cost nothing and have no event.',
    input: {
      query: z.object({
        from: z.string().optional().describe('IST day, YYYY-MM-DD. Only refusals of this day or later. Default: the last 31 days.'),
        key_id: id.optional().describe('Only this key.'),
        agent_id: id.optional().describe('Only this registered agent.'),
        code: z
          .string()
          .regex(/^[a-z_]{1,64}$/)
          .optional()
          .describe('Only this error.code.'),
        limit: whole.min(1).max(pageMax).optional().describe(`Rows of a page, at most ${pageMax}. Default: ${pageDefault}.`),
        cursor: z.string().optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ refusals: z.array(refusal), next_cursor: z.string().nullable().describe('Null after the last page.') }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ refusedCalls }, { query }, { principal }) {
      const { limit = pageDefault, from, key_id, agent_id, code, cursor } = query
      const { rows, nextCursor } = await refusedCalls.list(principal.orgId, { from, keyId: key_id, agentId: agent_id, code, cursor }, limit)
      return { refusals: rows.map(viewOf), next_cursor: nextCursor }
    },
  }),
}
