import { z } from 'zod'
import { type Call, endpointOf } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { pageHeaders, replyWithPage } from '../../../platform/public-page.ts'
import type { PublicUsage } from './public-usage.ts'

const row = endpointOf<{ publicUsage: PublicUsage }>()

const ranking = z.array(z.object({ model: z.string(), requests: z.int(), tokens: z.int(), rank: z.int().describe('1 is the most used.') }))

export const modelStatsEndpoints = {
  modelStats: row({
    at: 'GET /v1/models/{id+}/stats',
    auth: 'public',
    access: {},
    tag: 'catalog',
    summary: 'How a model performed in the last 7 IST days, today included, over all organisations; null without data. At most a few minutes old.',
    input: { path: z.object({ id: z.string().max(256) }), headers: pageHeaders },
    output: z.object({
      model: z.string(),
      window: z.literal('7d'),
      success_rate: z
        .number()
        .nullable()
        .describe('Served calls among those that were served or failed, 0 to 1. What the client did wrong or gave up is neither.'),
      p50_latency_ms: z.int().nullable().describe('Of served calls, from the request to the end of the reply; true within 4.5 %.'),
      p95_latency_ms: z.int().nullable(),
      tokens_per_second: z.number().nullable().describe('Completion tokens a second of served calls, over the same time.'),
      requests: z.int(),
    }),
    errors: ['model_not_found', 'invalid_api_key'],
    async handle({ publicUsage }, { path, headers }, call) {
      checkReader(publicUsage, call)
      return replyWithPage(await publicUsage.stats(path.id), headers['if-none-match'], publicUsage.isPublic)
    },
  }),
  rankings: row({
    at: 'GET /v1/rankings',
    auth: 'public',
    access: {},
    tag: 'catalog',
    summary: 'The models that are used most, by tokens, in the last 7 and 30 IST days, over all organisations. At most a few minutes old.',
    input: { headers: pageHeaders },
    output: z.object({ windows: z.object({ '7d': ranking, '30d': ranking }) }),
    errors: ['invalid_api_key'],
    async handle({ publicUsage }, { headers }, call) {
      checkReader(publicUsage, call)
      return replyWithPage(await publicUsage.rankings(), headers['if-none-match'], publicUsage.isPublic)
    },
  }),
}

function checkReader({ isPublic }: PublicUsage, { principal }: Call): void {
  if (isPublic || principal !== null) return
  throw fail('invalid_api_key', {
    message: 'This gateway shows what its models are used for to callers with an API key or agent token only. Send one.',
    headers: { 'www-authenticate': 'Bearer realm="brigade"' },
  })
}
