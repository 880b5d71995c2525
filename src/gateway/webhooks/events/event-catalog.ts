/**
 * The table of webhook events: when each event is sent, and what data it contains. The types of `emit`, the list in GET /me/webhooks, the `webhooks`
 * of the OpenAPI document and docs/guides/webhooks.md come from this table. Data contains ids, counts, amounts in rupees and times. It contains
 * nothing that a person said or typed.
 */
import { z } from 'zod'

const orgScopes = ['org', 'team', 'workspace', 'member', 'key', 'agent'] as const

/** Data of a budget that crossed a threshold. */
const budgetCrossing = z.object({
  scope: z.enum(orgScopes).describe('What the budget applies to.'),
  scope_id: z.string().describe('The id of that organisation, workspace, member, key or agent.'),
  threshold: z.int().describe('Percent of the cap: 80, 100, or a mark of warn_percent.'),
  spent_inr: z.number().describe('Spent in the period so far, in rupees.'),
  cap_inr: z.number().describe('The cap of the period, in rupees.'),
  period: z.enum(['ever', 'month', 'week', 'day']).describe('The period of the budget.'),
  resets_at: z.string().nullable().describe('The end of the period; null for ever.'),
})

/** Data of a run that reached a mark of one of its caps. */
const runCrossing = z.object({
  run_id: z.string().describe('The id that the calls of the run name.'),
  agent_id: z.int().nullable().describe('The agent that the run belongs to.'),
  key_id: z.int().nullable().describe('The key that the run belongs to, when its calls name no registered agent.'),
  cap: z.enum(['max_cost_inr', 'max_calls']).describe('The cap of the run.'),
  spent: z.number().describe('What the run has used: rupees, or calls.'),
  limit: z.number().describe('What the cap allows, in the same unit.'),
})

/** Data of a run that repeats itself. */
const runLoop = z.object({
  run_id: z.string().describe('The id that the calls of the run name.'),
  agent_id: z.int().nullable().describe('The agent that the run belongs to.'),
  key_id: z.int().nullable().describe('The key that the run belongs to, when its calls name no registered agent.'),
  kind: z.enum(['same_call', 'same_body', 'pace']).describe('What is repeated: calls of tools with their results, whole requests, or calls within minutes.'),
  count: z.int().describe('How often so far. For `pace`, the calls of this minute.'),
  rule: z.enum(['warn', 'stop']).describe('The rule of the agent or key. stop: the tenth repetition is refused; `pace` never is.'),
})

/** What a request for more budget asks for. It does not contain the reason, because a person or an agent wrote it. */
const askedBudget = {
  request_id: z.int(),
  scope: z.enum(['run', 'org', 'workspace', 'member', 'key', 'agent']).describe('run, or the scope of the budget.'),
  scope_id: z.string().nullable().describe('Whose budget it is. Null for a run.'),
  period: z.enum(['ever', 'month', 'week', 'day']).nullable().describe('The period of the budget. Null for a run.'),
  run_id: z.string().nullable().describe('The id that the calls of the run name.'),
  agent_id: z.int().nullable().describe('The agent that the run belongs to.'),
  key_id: z.int().nullable().describe('The key that the run belongs to.'),
  amount_inr: z.number().nullable().describe('Rupees. Null: it asks for calls, or nothing was granted.'),
  calls: z.int().nullable().describe('Calls of a run. Null: it asks for rupees, or nothing was granted.'),
}

/** Data of a key that was made or revoked. It does not contain the name, because a person typed it. */
const keyFacts = z.object({
  key_id: z.int(),
  prefix: z.string().describe('The start of the key, as lists show it.'),
  tier: z.string().describe('trial or standard.'),
  scope: z.string().describe('full or inference.'),
})

const accessDecision = z.object({ request_id: z.string(), decision: z.enum(['approved', 'denied']) })

const invoice = z.object({
  invoice_number: z.string().describe('The number on the invoice.'),
  payment_id: z.string().describe('The payment of the invoice.'),
  total_inr: z.number().describe('In rupees, tax included.'),
})

const capturedPayment = z.object({
  payment_id: z.string().describe('Id of the payment provider.'),
  order_id: z.string().describe('Id of the payment provider.'),
  amount_inr: z.number().describe('The amount that was paid and credited, in rupees.'),
  bonus_inr: z.number().describe('The bonus of a promo code, in rupees.'),
  balance_inr: z.number().describe('The prepaid balance afterwards, in rupees.'),
})

const lowCredit = z.object({
  balance_inr: z.number().describe('The prepaid balance, in rupees. It can be below zero.'),
  threshold_inr: z.number().describe('The low-balance threshold, in rupees.'),
})

const openCircuit = z.object({
  provider: z.string().describe('Id of the provider.'),
  model: z.string().describe('Id of the model.'),
  failures: z.int().describe('Failures in a row.'),
  retry_at: z.int().describe('When the route is tried again, in unix seconds.'),
})

const anomaly = z.object({
  metric: z.enum(['spend', 'errors', 'tokens']),
  observed: z.number().describe('In the last hour: rupees of spend, failed calls or tokens.'),
  baseline: z.number().describe('Mean per hour of the seven days before, in the same unit.'),
  ratio: z.number().nullable().describe('observed divided by baseline; null if the baseline is 0.'),
  window_start: z.int().describe('Start of the observed hour, in unix seconds.'),
  window_end: z.int().describe('End of the observed hour, in unix seconds.'),
})

const collectionAlert = z.object({
  alert_id: z.int(),
  collection_id: z.int(),
  state: z.enum(['firing', 'recovered']),
  metric: z.enum(['error_rate', 'latency_p95']),
  threshold: z.number().describe('The threshold of the alert: a share of failed canaries from 0 to 1, or milliseconds.'),
  value: z.number().describe('The value of the metric at the step where it is worst, in the unit of the threshold.'),
  model: z.string().describe('Model of that step.'),
  provider: z.string().nullable().describe('Provider that the step pins; null if it pins none.'),
  checks: z.int().describe('Number of canaries of that step that the alert checked.'),
  window_s: z.int().describe('The time span that the alert checked, in seconds.'),
})

const toolChanges = z.object({
  server_id: z.string(),
  server_slug: z.string().describe('The first part of the names of its tools.'),
  new: z.int().describe('Number of tools that the server shows for the first time. They wait for approval.'),
  changed: z.int().describe('Number of tools whose definition changed. A tool that was approved waits for approval again.'),
  gone: z.int().describe('Number of tools that the server does not show any more.'),
  returned: z.int().describe('Number of tools that were gone. With the approved definition they can be called again.'),
  tools: z
    .array(
      z.object({
        tool: z.string().describe('The name that callers use.'),
        change: z.enum(['new', 'changed', 'gone', 'returned']),
        hash: z.string().describe('SHA-256 of the definition that the server shows, in hexadecimal.'),
        approved_hash: z.string().nullable().describe('Of the approved definition; null if there is none.'),
      }),
    )
    .describe('The first 50 of them, each with `tool`, `change`, `hash` and `approved_hash`.'),
})

/** Data of a batch that has ended. */
const endedBatch = z.object({
  batch_id: z.string(),
  status: z.string().describe('As the batch shows it: completed, failed, expired, cancelled or ended.'),
  endpoint: z.string().describe('The path of its requests.'),
  model: z.string().describe('Id of the model.'),
  requests: z.int().describe('Number of its requests.'),
  completed: z.int().describe('Number of requests with an answer.'),
  failed: z.int().describe('Number of requests without one.'),
  value_inr: z.number().describe('What the budgets count, in rupees.'),
  cost_inr: z.number().describe('What the balance pays, in rupees: 0 on an own key.'),
})

interface CatalogEntry {
  readonly family: 'budget' | 'keys' | 'billing' | 'reliability' | 'tools' | 'test'
  /** When the event is sent. */
  readonly when: string
  readonly data: z.ZodObject
}

// biome-ignore format: a table reads by rows
export const eventCatalog = {
  'budget.warn': { family: 'budget', when: 'A budget (organisation, workspace, member, key or agent) reaches 80 %, or another mark of its warn_percent.', data: budgetCrossing },
  'budget.block': { family: 'budget', when: 'A budget reaches 100 %. Brigade refuses the calls of that budget.', data: budgetCrossing },
  'usage.threshold': { family: 'budget', when: 'Repeats every budget.warn and budget.block, also when usage on own provider keys crosses the threshold.', data: budgetCrossing },
  'run.warn': { family: 'budget', when: 'A run reaches 80 % of its cap on cost or calls.', data: runCrossing },
  'run.held': { family: 'budget', when: 'A run reaches its cap on cost or calls. Brigade refuses its calls until the cap is raised.', data: runCrossing },
  'run.loop': { family: 'budget', when: 'A run repeats itself. It is sent once for each run and kind.', data: runLoop },
  'budget.requested': { family: 'budget', when: 'An agent, a key or a person asks for more budget, or for a higher cap of a run.', data: z.object({ ...askedBudget, expires_at: z.string().describe('From then on nobody can decide the request.') }) },
  'budget.decided': { family: 'budget', when: 'A person grants or refuses a request for more budget.', data: z.object({ ...askedBudget, decision: z.enum(['granted', 'refused']), until: z.string().nullable().describe('The end of the increase. Null: it was refused.') }) },
  'key.created': { family: 'keys', when: 'An API key is made.', data: keyFacts },
  'key.revoked': { family: 'keys', when: 'An API key is revoked.', data: keyFacts },
  'access.decided': { family: 'keys', when: 'An owner or admin decides a request for access. This version makes no such requests yet.', data: accessDecision },
  'invoice.created': { family: 'billing', when: 'A GST tax invoice is issued for a captured top-up.', data: invoice },
  'payment.captured': { family: 'billing', when: 'A top-up is captured and credited.', data: capturedPayment },
  'credit.low': { family: 'billing', when: 'The prepaid balance falls below the low-balance threshold. It is sent once, until the balance is above the threshold again.', data: lowCredit },
  'provider.circuit_open': { family: 'reliability', when: 'The circuit of a route opens after consecutive failures. The organisation whose calls failed receives it. When a second organisation sees the failures, every other subscribed organisation receives it too.', data: openCircuit },
  'request.anomaly': { family: 'reliability', when: 'Spend, errors or tokens of the last hour are far above the hours of the seven days before.', data: anomaly },
  'collection.alert': { family: 'reliability', when: 'Canaries of a collection reach the threshold of an alert, stay there for the cool-down, or are below it again.', data: collectionAlert },
  'tool.changed': { family: 'tools', when: 'An MCP server of the organisation shows new or changed tools, or some are gone or back. An owner or admin approves definitions.', data: toolChanges },
  'batch.completed': { family: 'reliability', when: 'A batch has ended with answers, and is charged.', data: endedBatch },
  'batch.failed': { family: 'reliability', when: 'A batch has ended without any answer.', data: endedBatch },
  ping: { family: 'test', when: 'Somebody requests a test. It is sent to that endpoint, whatever it subscribes to.', data: z.object({ message: z.string().describe('Always the same text.') }) },
} as const satisfies Record<string, CatalogEntry>

export type EventType = keyof typeof eventCatalog
/** The data of each event. No event contains content of calls. */
export type EventData = { readonly [T in EventType]: Readonly<z.input<(typeof eventCatalog)[T]['data']>> }
export type BudgetCrossing = EventData['budget.warn']
export type KeyFacts = EventData['key.created']

/** The events that an endpoint may subscribe to: all events except `ping`. */
export const subscribable = (Object.keys(eventCatalog) as EventType[]).filter(type => type !== 'ping')
