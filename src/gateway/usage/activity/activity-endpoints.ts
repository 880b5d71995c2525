import { z } from 'zod'
import { endpointOf, reply } from '../../../platform/endpoint.ts'
import { daySpan, figures, namedKey } from '../reports/figures-schema.ts'
import { csvType } from '../reports/usage-csv.ts'
import { type Activity, topMax } from './activity.ts'
import { eventsDaysMax, eventsMax, hourSpanDaysMax } from './activity-filters.ts'
import { callFilters } from './activity-parameters.ts'
import { callersMax } from './activity-sum-queries.ts'

const row = endpointOf<{ activity: Activity }>()

const withByok = { ...figures, byok_requests: z.int().describe('Calls on own provider keys.') }
const ofModel = { model: z.string(), ...withByok }
const others = z.int().describe('Of how many others this row is the sum; 0 for a row of its own.')
const noSums = `null when no sums answer the filters and the span has more than ${eventsMax} calls or ${eventsDaysMax} days.`
const percentiles = {
  calls: z.int().describe('Served calls.'),
  p50_ms: z.int().nullable().describe('Within 4.5 %. null without served calls.'),
  p95_ms: z.int().nullable().describe('Within 4.5 %. null without served calls.'),
}
const hour = z.int().describe('Hour of the IST day, 0 to 23.')

export const activityEndpoints = {
  activity: row({
    at: 'GET /me/activity',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: `Activity in a span of IST days: by day or hour and model, the top ${topMax} models, keys, agents and members, the cost of each model by provider, latencies, totals, and what there is to filter by.`,
    input: {
      query: z.object({
        from: z.string().optional().describe('First IST day, YYYY-MM-DD. Default: the 29th before `to`; with group=hour: `to`.'),
        to: z.string().optional().describe('Last IST day, YYYY-MM-DD; included. Default: today. At most 366 days.'),
        group: z
          .enum(['day', 'hour'])
          .optional()
          .describe(`hour: \`hours\` as well, for at most ${hourSpanDaysMax} days of the last 32. Hours are those of IST days.`),
        ...callFilters,
        format: z.enum(['json', 'csv']).optional().describe('csv: a line a day or hour, model and provider.'),
      }),
    },
    output: z.object({
      ...daySpan,
      group: z.enum(['day', 'hour']),
      totals: z.object(withByok),
      days: z.array(z.object({ day: z.string(), ...ofModel })),
      hours: z
        .array(z.object({ day: z.string(), hour, at: z.string().describe('When the hour begins, ISO 8601, UTC.'), ...ofModel }))
        .optional()
        .describe('With group=hour. Hours without calls are left out.'),
      top_models: z.array(z.object(ofModel)),
      top_keys: z
        .array(z.object({ ...namedKey, ...figures }))
        .nullable()
        .describe(noSums),
      by_agent: z
        .array(z.object({ agent_id: z.int().nullable(), name: z.string().nullable(), others, ...figures }))
        .nullable()
        .describe(
          `The ${callersMax} registered agents with most value, calls without one (agent_id null, others 0), and all other agents in one row. null with key_id alone.`,
        ),
      by_member: z
        .array(
          z.object({ uid: z.int().nullable(), name: z.string().nullable(), email: z.string().nullable().describe('Of a present member.'), others, ...figures }),
        )
        .nullable()
        .describe(`The ${callersMax} people with most value, calls of keys without a person, and all other people in one row. null with key_id alone.`),
      model_providers: z.array(
        z.object({
          model: z.string(),
          providers: z.array(z.object({ provider: z.string(), requests: z.int(), tokens: z.int(), cost_inr: z.number(), value_inr: z.number() })),
        }),
      ),
      latency: z
        .object({ ...percentiles, by: z.array(z.object({ day: z.string(), hour: hour.nullable(), ...percentiles })) })
        .nullable()
        .describe(noSums),
      models: z.array(z.string()).describe('Every model of the span, whatever is filtered.'),
      keys: z.array(z.object(namedKey)).describe('Keys of the span, whatever is filtered; the 1,000 with most value.'),
    }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ activity }, { query }, call) {
      const { from, to, group, model, provider, key_id: keyId, agent_id: agentId, uid: userId, workspace_id: workspaceId } = query
      const asked = { from, to, group, model, provider, keyId, agentId, userId, workspaceId }
      if (query.format !== 'csv') return activity.report(call.principal.orgId, asked)
      const { name, text } = await activity.csv(call.principal.orgId, asked)
      return reply.text(text, csvType, { 'content-disposition': `attachment; filename="${name}"` })
    },
  }),
}
