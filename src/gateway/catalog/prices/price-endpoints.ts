import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { pageHeaders, replyWithPage } from '../../../platform/public-page.ts'
import type { PriceComparison } from './price-comparison.ts'

const row = endpointOf<{ priceComparison: PriceComparison }>()

const prices = { inputINRPerMtok: z.number(), outputINRPerMtok: z.number() }

export const priceEndpoints = {
  comparePrices: row({
    at: 'GET /v1/pricing/compare',
    auth: 'public',
    access: {},
    tag: 'catalog',
    summary:
      'Prices of this gateway and of another router, in ₹ per million tokens, for models that both have. Fetched at most once an hour; an empty list without data.',
    input: {
      query: z.object({ model: z.string().max(256).optional().describe('Id of a model of GET /v1/models: that one only.') }),
      headers: pageHeaders,
    },
    output: z.object({
      currency: z.literal('INR'),
      usd_inr: z.number().nullable().describe('Rupees for one US dollar, as applied to their prices.'),
      source: z.string().nullable().describe('Host of their price list; null: this gateway compares with nobody.'),
      fetched_at: z.string().nullable().describe('When their price list was fetched.'),
      age_hours: z.int().nullable().describe('Whole hours since the older of the list and the rate was fetched.'),
      stale: z.boolean().describe('True when it is older than it should be because the source is away, or was never there.'),
      models: z.array(
        z.object({
          model: z.string(),
          provider: z.string().describe('Of our cheapest route.'),
          ...prices,
          compared_with: z.object({ id: z.string().describe('Their id of the model.'), ...prices }),
          difference_percent: z
            .object({ input: z.number().nullable(), output: z.number().nullable() })
            .describe('Ours against theirs; below 0 we are cheaper. Null: theirs is free.'),
        }),
      ),
    }),
    errors: ['model_not_found'],
    handle: async ({ priceComparison }, { query, headers }) => replyWithPage(await priceComparison.page(query.model), headers['if-none-match']),
  }),
}
