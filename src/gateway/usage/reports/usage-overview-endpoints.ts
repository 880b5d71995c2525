import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { daySpan, figures, namedKey } from './figures-schema.ts'
import type { UsageOverview } from './usage-overview.ts'

const row = endpointOf<{ usageOverview: UsageOverview }>()

const keyUse = { today: z.object(figures), last_30_days: z.object(figures) }

/** Usage at a glance. */
export const usageOverviewEndpoints = {
  usageByKey: row({
    at: 'GET /me/usage',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: 'Requests, tokens and rupees of every key today (IST) and in the 30 days that end today, most used first, and of the organisation in total.',
    input: {},
    output: z.object({
      ...daySpan,
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
    output: z.object({ ...daySpan, days: z.array(z.object({ day: z.string(), model: z.string(), ...figures })) }),
    errors: ['database_unavailable'],
    handle: ({ usageOverview }, _, call) => usageOverview.byDay(call.principal.orgId),
  }),
}
