/**
 * Every event that webhooks can tell of: when it fires and what it carries. The types of `emit`, the catalog of GET /me/webhooks, the
 * `webhooks` of the OpenAPI document and docs/webhooks.md are made from this table. Data is ids, counts, amounts in rupees and
 * times; nothing that a person said or typed stands in it.
 */
import { z } from 'zod'

const orgScopes = ['org', 'team', 'workspace', 'member', 'key', 'agent'] as const

/** Figures of a budget that crossed a threshold. */
const budgetCrossing = z.object({
  scope: z.enum(orgScopes),
  scope_id: z.string(),
  /** Percent of the cap. */
  threshold: z.union([z.literal(80), z.literal(100)]),
  spent_inr: z.number(),
  cap_inr: z.number(),
})

/** A key that was made or ended. Its name is what a person typed and stays at home. */
const keyFacts = z.object({
  key_id: z.int(),
  /** The start of the key that lists show. */
  prefix: z.string(),
  tier: z.string(),
  scope: z.string(),
})

interface CatalogEntry {
  readonly family: 'budget' | 'keys' | 'billing' | 'reliability' | 'test'
  /** When it fires. */
  readonly when: string
  readonly data: z.ZodObject
}

// biome-ignore format: a table reads by rows
export const eventCatalog = {
  'budget.warn': { family: 'budget', when: 'A monthly budget (organisation, workspace, member, key or agent) reaches 80 %.', data: budgetCrossing },
  'budget.block': { family: 'budget', when: 'A monthly budget reaches 100 %; calls that it governs are refused.', data: budgetCrossing },
  'usage.threshold': { family: 'budget', when: 'Mirrors every budget.warn and budget.block, also when usage on own provider keys crosses the mark.', data: budgetCrossing },
  'key.created': { family: 'keys', when: 'An API key is made.', data: keyFacts },
  'key.revoked': { family: 'keys', when: 'An API key is revoked.', data: keyFacts },
  'access.decided': { family: 'keys', when: 'An owner or admin decides a request for access. Nothing of this build asks for such decisions yet.', data: z.object({ request_id: z.string(), decision: z.enum(['approved', 'denied']) }) },
  'invoice.created': { family: 'billing', when: 'A GST tax invoice is issued for a captured top-up.', data: z.object({ invoice_number: z.string(), payment_id: z.string(), total_inr: z.number() }) },
  'payment.captured': { family: 'billing', when: 'A top-up is captured and credited.', data: z.object({ payment_id: z.string(), order_id: z.string(), amount_inr: z.number(), bonus_inr: z.number(), balance_inr: z.number() }) },
  'credit.low': { family: 'billing', when: 'The prepaid balance falls below the low-balance threshold; once until it is above it again.', data: z.object({ balance_inr: z.number(), threshold_inr: z.number() }) },
  'provider.circuit_open': { family: 'reliability', when: 'The circuit of a route opens after consecutive failures. Every organisation that subscribes is told.', data: z.object({ provider: z.string(), model: z.string(), failures: z.int(), retry_at: z.int() }) },
  'request.anomaly': { family: 'reliability', when: 'Spend, errors or tokens of the last hour are far above the hours of the seven days before.', data: z.object({ metric: z.enum(['spend', 'errors', 'tokens']), observed: z.number(), baseline: z.number(), ratio: z.number().nullable(), window_start: z.int(), window_end: z.int() }) },
  ping: { family: 'test', when: 'A test is asked for; sent to that endpoint whatever it subscribes to.', data: z.object({ message: z.string() }) },
} as const satisfies Record<string, CatalogEntry>

export type EventType = keyof typeof eventCatalog
/** What each event carries. Content-free by type. */
export type EventData = { readonly [T in EventType]: Readonly<z.input<(typeof eventCatalog)[T]['data']>> }
export type BudgetCrossing = EventData['budget.warn']
export type KeyFacts = EventData['key.created']

/** What an endpoint may subscribe to: everything but the test. */
export const subscribable = (Object.keys(eventCatalog) as EventType[]).filter(type => type !== 'ping')
