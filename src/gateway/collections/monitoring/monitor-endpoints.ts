import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import type { StepHealth } from './health.ts'
import { type CollectionHealth, healthDaysDefault, type Monitor } from './monitor.ts'

const row = endpointOf<{ monitor: Monitor }>()

const tag = 'collections'
const slugPath = z.object({ slug: z.string().max(256).describe('Slug of a collection of the organisation.') })

const stepHealth = z.object({
  model: z.string(),
  provider: z.string().nullable().describe('The provider that the step names; for a step that names none, the provider that answered last.'),
  uptime: z.number().min(0).max(1).nullable().describe('Share of canaries that were answered, 0 to 1; null: there were none.'),
  p95_ms: z.number().nullable().describe('Milliseconds within which 95 % of the answers came, to about 5 %; null: there were none.'),
  checks: z.int().describe('Canaries of the step.'),
  last_check: z.string().nullable().describe('ISO 8601, UTC: when the last canary was sent, also before those days.'),
  state: z.enum(['ok', 'failing', 'unknown', 'unsupported']).describe('By the last canary. unsupported: none is sent of models for images and audio.'),
  last_code: z.string().nullable().describe('Why the last canary failed, as a code; null: it did not.'),
})
const health = z.object({
  monitored: z.boolean(),
  days: z.int(),
  health: z.array(stepHealth).describe('One entry a step, in the order of the steps.'),
})
const days = z
  .string()
  .regex(/^(?:[1-9]|[1-8][0-9]|90)$/, 'must be a whole number from 1 to 90')
  .transform(Number)
  .optional()
  .describe(`How many days back, 1 to 90; default ${healthDaysDefault}.`)

export const monitorEndpoints = {
  monitorCollection: row({
    at: 'POST /me/collections/{slug}/monitor',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary:
      'Turns monitoring on or off. On: each step is called every few minutes with one token, not billed here, the first time immediately. Off keeps the history.',
    input: {
      path: slugPath,
      body: z
        .object({ monitored: z.boolean().nullish().describe('true turns it on; false, null or nothing turns it off.') })
        .nullish()
        .describe('Nothing: off.'),
    },
    output: z.object({ ok: z.literal(true), monitored: z.boolean(), note: z.string() }),
    errors: ['forbidden', 'bad_request', 'not_found', 'cap'],
    handle: async ({ monitor }, { path: { slug }, body }, call) => ({ ok: true, ...(await monitor.set(call.principal.orgId, slug, body?.monitored === true)) }),
  }),

  checkCollection: row({
    at: 'POST /me/collections/{slug}/check',
    auth: 'session',
    access: {},
    tag,
    summary: 'Sends a canary to every step now and answers the health of 7 days with it; not billed here. A round of the last 15 seconds is not repeated.',
    audit: false,
    input: { path: slugPath },
    output: health.extend({
      ok: z.literal(true),
      checked: z.boolean().describe('False: no canary was sent, for the reason in note.'),
      note: z.string(),
    }),
    errors: ['not_found'],
    async handle({ monitor }, { path: { slug } }, call) {
      const { checked, note, ...found } = await monitor.check(call.principal.orgId, slug)
      return { ok: true, checked, note, ...viewOf(found) }
    },
  }),

  collectionHealth: row({
    at: 'GET /me/collections/{slug}/health',
    auth: 'session',
    access: {},
    tag,
    summary: 'Uptime, p95 latency and last canary of each step over the last days.',
    input: { path: slugPath, query: z.object({ days }) },
    output: health,
    errors: ['bad_request', 'not_found'],
    handle: async ({ monitor }, { path: { slug }, query }, call) => viewOf(await monitor.health(call.principal.orgId, slug, query.days)),
  }),
}

const viewOf = ({ monitored, days: span, health: steps }: CollectionHealth): z.output<typeof health> => ({
  monitored,
  days: span,
  health: steps.map(stepViewOf),
})

const stepViewOf = ({ model, provider, uptime, p95Ms, checks, lastCheck, state, lastCode }: StepHealth): z.output<typeof stepHealth> => ({
  model,
  provider,
  uptime,
  p95_ms: p95Ms,
  checks,
  last_check: lastCheck?.toISOString() ?? null,
  state,
  last_code: lastCode,
})
