import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { parsedObject } from '../../../platform/values/json.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { CallRow, EventRow } from './activity-event-queries.ts'
import { type ActivityEvents, scanMax } from './activity-events.ts'
import { callFilters, whole } from './activity-parameters.ts'
import { routesOf } from './call-routes.ts'

const row = endpointOf<{ activityEvents: ActivityEvents }>()

const pageMax = 200
const pageDefault = 50

const outcomes = ['ok', 'failed', 'client_gone', 'upstream_broke', 'cut', 'interrupted'] as const
const kinds = ['chat', 'messages', 'responses', 'gemini', 'embeddings', 'image', 'transcription', 'speech', 'rerank', 'moderation', 'tool', 'batch'] as const

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
  outcome: z.enum(outcomes).describe('How it ended, which a status does not say of a stream.'),
  streamed: z.boolean(),
  byok: z.boolean().describe('On an own provider key.'),
  estimated: z.boolean().describe('The provider sent no usage: tokens are an estimate.'),
  first_byte_ms: z.int().nullable(),
  cached_tokens: z.int().describe('Part of prompt_tokens.'),
  key_id: z.int().nullable(),
  agent_name: z.string().nullable(),
  agent_label: z.string().nullable().describe('Of x-br-agent-id, where it names no registered agent.'),
  uid: z.int().nullable().describe('Person of the key.'),
  workspace_id: z.int().nullable(),
  run_id: z.string().nullable().describe('The run that the call names.'),
  tags: z.record(z.string(), z.string()).describe('Of x-br-tags.'),
  cached: z.boolean().describe('Whether the reply cache served the call, which then cost nothing.'),
  saved_inr: z.number().describe('What a provider would have cost, by the price of the call that made the reply.'),
})

const tagsOf = (text: string | null): Record<string, string> => (text === null ? {} : (parsedObject(text) as Record<string, string> | null)) ?? {}

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
    uid: of.userId,
    workspace_id: of.workspaceId,
    run_id: of.runId,
    tags: tagsOf(of.tags),
    cached: of.savedUinr !== null,
    saved_inr: inrFromUinr(of.savedUinr ?? 0n),
  }
}

const route = z.object({
  provider: z.string(),
  model: z.string(),
  residency: z.string(),
  byok: z.boolean(),
  outcome: z.enum(['answered', ...outcomes.slice(1)]).describe('answered, failed, or how the call ended on this route.'),
  reason: z.string().nullable().describe('Status or class of a failure; for the last attempt, the status that the client saw.'),
  ms: z.int().describe('Milliseconds of the attempt; for the last attempt, the rest of latency_ms.'),
})

const wholeCall = event.extend({
  member_name: z.string().nullable(),
  workspace_name: z.string().nullable(),
  cache_write_tokens: z.int().describe('Part of prompt_tokens.'),
  reasoning_tokens: z.int().describe('Part of completion_tokens.'),
  images: z.int(),
  audio_seconds: z.int(),
  characters: z.int().describe('Spoken characters.'),
  searches: z.int().describe('Rankings of at most 100 documents, as the provider counts them.'),
  routes: z.array(route).describe('The attempts in order. Of calls of earlier versions, only the last.'),
})

const callView = (of: CallRow): z.output<typeof wholeCall> => ({
  ...eventView(of),
  member_name: of.memberName,
  workspace_name: of.workspaceName,
  cache_write_tokens: Number(of.cacheWriteTokens),
  reasoning_tokens: Number(of.reasoningTokens),
  images: of.images,
  audio_seconds: of.audioSeconds,
  characters: Number(of.characters),
  searches: of.searches,
  routes: [...routesOf(of)],
})

export const eventEndpoints = {
  activityEvents: row({
    at: 'GET /me/activity/events',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: 'Single calls, newest first, without content. Failed calls are included, with their status and zero tokens.',
    input: {
      query: z.object({
        before: z.string().optional().describe('next_before of the page before.'),
        limit: whole.min(1).max(pageMax).optional().describe(`Events of a page, at most ${pageMax}. Default: ${pageDefault}.`),
        from: z.string().optional().describe('First IST day, YYYY-MM-DD.'),
        to: z.string().optional().describe('Last IST day, YYYY-MM-DD; included.'),
        ...callFilters,
        kind: z.enum(kinds).optional().describe('Only calls of this kind.'),
        outcome: z.enum(outcomes).optional().describe('Only calls that ended like this.'),
        tag: z.string().max(200).optional().describe('Only calls with this tag, as key=value.'),
        status: z.enum(['failed']).optional().describe('failed: only calls that count as errors.'),
        request_id: z
          .string()
          .min(1)
          .max(100)
          .refine(text => !text.includes('\u0000'), 'holds the character U+0000, which no id has')
          .optional()
          .describe('Only the calls of this request, in one page.'),
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
      const { before, limit = pageDefault, status, key_id, agent_id, uid, workspace_id, request_id, ...same } = query
      const ids = { keyId: key_id, agentId: agent_id, userId: uid, workspaceId: workspace_id, requestId: request_id }
      const { rows, nextBefore } = await activityEvents.page(call.principal.orgId, before, limit, { ...same, ...ids, isFailed: status === 'failed' })
      return { events: rows.map(eventView), next_before: nextBefore }
    },
  }),

  activityCall: row({
    at: 'GET /me/activity/events/{request_id}',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary:
      'What is kept of the calls of one request, with the routes that were tried and without content. Most requests make one call, the image panel several.',
    input: { path: z.object({ request_id: z.string().describe('The x-request-id of the reply.') }) },
    output: z.object({ request_id: z.string(), calls: z.array(wholeCall).describe('Oldest first.') }),
    errors: ['not_found', 'database_unavailable'],
    async handle({ activityEvents }, { path }, call) {
      const rows = await activityEvents.calls(call.principal.orgId, path.request_id)
      return { request_id: path.request_id, calls: rows.map(callView) }
    },
  }),
}
