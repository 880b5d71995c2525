/** The fields of a data-protection impact assessment. */
import { z } from 'zod'
import { period, residency } from '../attestation/attestation-shape.ts'

const share = z.object({ requests: z.int(), pct: z.number() })

const mix = z.object({
  india: share,
  global: share,
  unknown: share.describe('Of providers whose place is not known; never counted as India.'),
  declared: share.describe('On servers of the organisation, which says itself that they are in India; never counted as India.'),
})

const counts = { requests: z.int(), prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() }

const openness = z.enum(['open', 'permissive', 'closed', 'unknown']).describe('Of the model, as the catalog says; unknown where it does not.')

const purpose = z.enum(['text generation', 'embeddings', 'image generation', 'transcription', 'speech', 'ranking', 'moderation', 'unknown'])

const agentFigures = { ...counts, residency: mix }

/** An assessment: what processed an organisation's data, and which data is stored. It never has content of calls. */
export const dpia = z.object({
  schema: z.literal('brigade.dpia.v1'),
  issuer: z.string(),
  org_id: z.int(),
  org_name: z.string(),
  window: z.string(),
  generated_at: z.string(),
  period,
  total_requests: z.int(),
  residency: mix,
  purposes: z.array(z.object({ purpose, requests: z.int(), models: z.int() })),
  models: z.array(z.object({ model: z.string(), openness, purpose, providers: z.array(z.string()), ...counts, residency: mix })),
  providers: z.array(
    z.object({ provider: z.string(), name: z.string(), own: z.boolean().describe('A server of the organisation.'), ...counts, residency: mix }),
  ),
  content_retention: z.object({
    mode: z.enum(['zero', 'window']),
    days: z.int(),
    stored: z.string(),
    where: z.string(),
    readable_by: z.string(),
  }),
  usage_records: z.object({ kept_days: z.int(), stored: z.string() }),
  memory: z.object({ configured: z.boolean(), store: z.enum(['s3', 'folder']).nullable(), stored: z.string() }),
  other_records: z.array(z.object({ what: z.string(), stored: z.string(), kept: z.string() })).describe('All else that is kept, and for how long.'),
  audit_log: z
    .array(
      z.object({
        model: z.string(),
        provider: z.string(),
        residency,
        openness,
        purpose,
        own_key: z.boolean().describe("On a key of the organisation's own at the provider."),
        ...counts,
        errors: z.int(),
        first_day: z.string(),
        last_day: z.string(),
      }),
    )
    .describe('Which algorithm processed data, where, and when.'),
  token_counts: z
    .array(z.object({ model: z.string(), provider: z.string(), residency, requests: z.int() }))
    .describe('Prompts that were sent out to have their tokens counted; no calls, and in none of the other figures.'),
  agents: z.array(z.object({ agent_id: z.int(), name: z.string().nullable(), ...agentFigures })).describe('Registered agents, the busiest first.'),
  agent_labels: z.array(z.object({ label: z.string(), ...agentFigures })).describe('Values of x-br-agent-id that name no registered agent.'),
  without_agent: z.object(agentFigures),
  agents_capped: z.boolean().describe('True: agents and labels with fewer calls are left out of the two lists.'),
  unlisted_agent_requests: z.int().describe('Calls of those that are left out.'),
})

export type Dpia = z.output<typeof dpia>
export type ResidencyMix = z.output<typeof mix>
export type Purpose = z.output<typeof purpose>
