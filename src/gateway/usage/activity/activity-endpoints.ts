import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { int4Max } from '../../../platform/values/row-id.ts'
import type { UsageOverview } from '../reports/usage-overview.ts'
import { type Activity, topMax } from './activity.ts'
import type { EventRow } from './activity-event-queries.ts'
import { type ActivityEvents, scanMax } from './activity-events.ts'

const row = endpointOf<{ usageOverview: UsageOverview; activity: Activity; activityEvents: ActivityEvents }>()

const pageMax = 200
const pageDefault = 50

const figures = {
  requests: z.int(),
  errors: z.int().describe('Calls that failed. A call that a client gave up does not count.'),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  tokens: z.int().describe('Prompt and completion.'),
  cost_inr: z.number().describe('What was charged. Calls on own provider keys cost 0.'),
  value_inr: z.number().describe('What the calls are worth at catalog prices; budgets count this.'),
}
const withByok = { ...figures, byok_requests: z.int().describe('Calls on own provider keys.') }
const namedKey = {
  key_id: z.int().nullable().describe('null: calls without a key.'),
  name: z.string().nullable(),
  revoked: z.boolean().nullable(),
}
const span = { from: z.string().describe('First IST day.'), to: z.string().describe('Last IST day, included.') }
const keyUse = { today: z.object(figures), last_30_days: z.object(figures) }

const number = z.coerce.number().int()
/** PostgreSQL text cannot contain U+0000, so no stored model id does. */
const modelFilter = z
  .string()
  .min(1)
  .max(300)
  .refine(text => !text.includes('\u0000'), 'holds the character U+0000, which no model id has')
  .optional()
  .describe('Only this model id.')
const keyFilter = z
  .union([z.literal('none').transform(() => 0), number.min(1).max(int4Max)])
  .optional()
  .describe('Only this key; none: only calls without a key.')

const event = z.object({
  id: z.string(),
  at: z.string().describe('When the call was admitted, ISO 8601, UTC.'),
  model: z.string(),
  provider: z.string(),
  residency: z.string(),
  status: z.int().describe('HTTP status that the client saw; 200 for a stream that began.'),
  latency_ms: z.int(),
  tokens: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost_inr: z.number(),
  value_inr: z.number(),
  key_name: z.string().nullable(),
  agent_id: z.int().nullable(),
  request_id: z.string(),
  kind: z.string(),
  outcome: z.enum(['ok', 'failed', 'client_gone', 'upstream_broke', 'cut', 'interrupted']).describe('How it ended, which a status does not say of a stream.'),
  streamed: z.boolean(),
  byok: z.boolean().describe('On an own provider key.'),
  estimated: z.boolean().describe('The provider sent no usage: tokens are an estimate.'),
  first_byte_ms: z.int().nullable(),
  cached_tokens: z.int().describe('Part of prompt_tokens.'),
  key_id: z.int().nullable(),
  agent_name: z.string().nullable(),
  agent_label: z.string().nullable().describe('Of x-br-agent-id, where it names no registered agent.'),
})

function eventView(of: EventRow): z.output<typeof event> {
  return {
    id: of.id,
    at: of.at.toISOString(),
    model: of.model,
    provider: of.provider,
    residency: of.residency,
    status: of.status,
    latency_ms: of.latencyMs,
    tokens: Number(of.promptTokens + of.completionTokens),
    prompt_tokens: Number(of.promptTokens),
    completion_tokens: Number(of.completionTokens),
    cost_inr: inrFromUinr(of.costUinr),
    value_inr: inrFromUinr(of.valueUinr),
    key_name: of.keyName,
    agent_id: of.agentId,
    request_id: of.requestId,
    kind: of.kind,
    outcome: of.outcome,
    streamed: of.streamed,
    byok: of.byok,
    estimated: of.estimated,
    first_byte_ms: of.firstByteMs,
    cached_tokens: Number(of.cachedTokens),
    key_id: of.keyId,
    agent_name: of.agentName,
    agent_label: of.agentLabel,
  }
}

export const activityEndpoints = {
  usageByKey: row({
    at: 'GET /me/usage',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: 'Requests, tokens and rupees of every key today (IST) and in the 30 days that end today, most used first, and of the organisation in total.',
    input: {},
    output: z.object({
      ...span,
      totals: z.object(keyUse),
      keys: z.array(z.object({ ...namedKey, prefix: z.string().nullable(), ...keyUse })).describe('At most 1,000; keys with usage first.'),
      other_keys: z
        .object({ count: z.int(), ...keyUse })
        .nullable()
        .describe('The sum of further keys with usage; null: none.'),
    }),
    errors: ['database_unavailable'],
    handle: ({ usageOverview }, _, call) => usageOverview.byKey(call.principal.orgId),
  }),

  usageDaily: row({
    at: 'GET /me/usage/daily',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: 'The usage of the 30 IST days that end today by day and model, oldest day first. Days without any are left out.',
    input: {},
    output: z.object({ ...span, days: z.array(z.object({ day: z.string(), model: z.string(), ...figures })) }),
    errors: ['database_unavailable'],
    handle: ({ usageOverview }, _, call) => usageOverview.byDay(call.principal.orgId),
  }),

  activity: row({
    at: 'GET /me/activity',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: `Activity in a span of IST days: by day and model, the top ${topMax} models and keys, the cost of each model by provider, totals, and what there is to filter by.`,
    input: {
      query: z.object({
        from: z.string().optional().describe('First IST day, YYYY-MM-DD. Default: the 29th before `to`.'),
        to: z.string().optional().describe('Last IST day, YYYY-MM-DD; included. Default: today. At most 366 days.'),
        model: modelFilter,
        key_id: keyFilter,
      }),
    },
    output: z.object({
      ...span,
      totals: z.object(withByok),
      days: z.array(z.object({ day: z.string(), model: z.string(), ...withByok })),
      top_models: z.array(z.object({ model: z.string(), ...withByok })),
      top_keys: z.array(z.object({ ...namedKey, ...figures })),
      model_providers: z.array(
        z.object({
          model: z.string(),
          providers: z.array(z.object({ provider: z.string(), requests: z.int(), tokens: z.int(), cost_inr: z.number(), value_inr: z.number() })),
        }),
      ),
      models: z.array(z.string()).describe('Every model of the span, whatever is filtered.'),
      keys: z.array(z.object(namedKey)).describe('Keys of the span, whatever is filtered; the 1,000 with most value.'),
    }),
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ activity }, { query }, call) =>
      activity.report(call.principal.orgId, { from: query.from, to: query.to, model: query.model, keyId: query.key_id }),
  }),

  activityEvents: row({
    at: 'GET /me/activity/events',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: 'Single calls, newest first, without content. Failed calls are included, with their status and zero tokens.',
    input: {
      query: z.object({
        before: z.string().optional().describe('next_before of the page before.'),
        limit: number.min(1).max(pageMax).optional().describe(`Events of a page, at most ${pageMax}. Default: ${pageDefault}.`),
        model: modelFilter,
        key_id: keyFilter,
        agent_id: number.min(1).max(int4Max).optional().describe('Only this registered agent.'),
        status: z.enum(['failed']).optional().describe('failed: only calls that failed.'),
      }),
    },
    output: z.object({
      events: z.array(event),
      next_before: z
        .string()
        .nullable()
        .describe(
          `Where the next page begins; null after the last page. With filters a page looks at ${scanMax} events and may be short, or empty, before that.`,
        ),
    }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ activityEvents }, { query }, call) {
      const filters = { model: query.model, keyId: query.key_id, agentId: query.agent_id, isFailed: query.status === 'failed' }
      const { rows, nextBefore } = await activityEvents.page(call.principal.orgId, query.before, query.limit ?? pageDefault, filters)
      return { events: rows.map(eventView), next_before: nextBefore }
    },
  }),
}
