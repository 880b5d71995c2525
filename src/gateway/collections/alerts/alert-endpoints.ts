import { z } from 'zod'
import { endpointOf, reply } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import type { AlertRow } from './alert-queries.ts'
import type { Alerts } from './alerts.ts'

const row = endpointOf<{ alerts: Alerts }>()

const tag = 'collections'
const slug = z.string().max(256).describe('Slug of a collection of the organisation.')
const noStore = { 'cache-control': 'no-store' }

const alertView = z.object({
  id: z.int(),
  metric: z.enum(['error_rate', 'latency_p95']),
  threshold: z.number().describe('error_rate: share of failed canaries, 0 to 1. latency_p95: milliseconds.'),
  channel: z.enum(['email', 'webhook']),
  target: z.string().optional().describe('Address of a member, or URL. Absent: the owners, or every webhook that receives collection.alert.'),
  firing: z.boolean().describe('At the threshold or above, by the last round.'),
  firing_since: z.string().nullable().describe('ISO 8601, UTC.'),
  last_told_at: z.string().nullable().describe('ISO 8601, UTC: when it was last told that it fires.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

const listedAlert = alertView.extend({
  heard: z
    .boolean()
    .describe(
      'Whether the alert would reach anybody now. False: the webhook of the URL is gone, disabled or not subscribed, no webhook receives collection.alert, or no mail is sent.',
    ),
})

export const alertEndpoints = {
  listAlerts: row({
    at: 'GET /me/collections/{slug}/alerts',
    auth: 'session',
    access: {},
    tag,
    summary: 'The alerts of a collection, oldest first.',
    input: { path: z.object({ slug }) },
    output: z.object({ alerts: z.array(listedAlert) }),
    errors: ['not_found'],
    handle: async ({ alerts }, { path }, call) => ({
      alerts: (await alerts.list(call.principal.orgId, path.slug)).map(alert => ({ ...alertViewOf(alert), heard: alert.isHeard })),
    }),
  }),

  createAlert: row({
    at: 'POST /me/collections/{slug}/alerts',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary:
      'Notifies by mail or webhook when canaries of a step fail too often or take too long. It notifies once, again after a cool-down, and when it is over.',
    input: {
      path: z.object({ slug }),
      body: z.object({
        metric: z.enum(['error_rate', 'latency_p95']),
        threshold: z.number().describe('error_rate: share of failed canaries from 0 to 1, so 5 % is 0.05. latency_p95: milliseconds.'),
        channel: z.enum(['email', 'webhook']),
        target: z
          .string()
          .nullish()
          .describe(
            'email: address of a member; default: the owners. webhook: an https URL; default: every webhook of the organisation that receives collection.alert.',
          ),
      }),
    },
    output: alertView.extend({
      ok: z.literal(true),
      webhook_id: z.int().optional().describe('The webhook of the URL.'),
      secret: z.string().optional().describe('Signing secret of a webhook that was made for the URL. It is shown once.'),
      note: z.string().optional(),
    }),
    status: 201,
    errors: ['forbidden', 'bad_request', 'not_found', 'cap', 'rate_limit_exceeded'],
    async handle({ alerts }, { path, body }, call) {
      const { orgId, userId } = call.principal
      if (userId === null) throw fail('forbidden')
      const { alert, secret, webhookId, note } = await alerts.create(orgId, userId, path.slug, { ...body, target: body.target ?? null })
      const more = { ...(webhookId === null ? {} : { webhook_id: webhookId }), ...(secret === null ? {} : { secret }), ...(note === null ? {} : { note }) }
      return reply.json({ ok: true, ...alertViewOf(alert), ...more }, 201, noStore)
    },
  }),

  deleteAlert: row({
    at: 'DELETE /me/collections/{slug}/alerts/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Removes an alert. A webhook that was made for it stays.',
    input: { path: z.object({ slug, id: z.string().describe('Id of the alert.') }) },
    output: z.object({ ok: z.literal(true) }),
    errors: ['forbidden', 'not_found'],
    async handle({ alerts }, { path }, call) {
      await alerts.remove(call.principal.orgId, path.slug, path.id)
      return { ok: true }
    },
  }),
}

const alertViewOf = ({ id, metric, threshold, channel, target, firingSince, notifiedAt, createdAt }: AlertRow): z.output<typeof alertView> => ({
  id,
  metric,
  threshold,
  channel,
  ...(target === null ? {} : { target }),
  firing: firingSince !== null,
  firing_since: firingSince?.toISOString() ?? null,
  last_told_at: notifiedAt?.toISOString() ?? null,
  created_at: createdAt.toISOString(),
})
