import { shellText } from '../../text/common.ts'
import { percent, shortCount, wholeMoney } from '../../ui/format/numbers.ts'
import { latencyText } from '../activity/latency.ts'

const listOf = new Intl.ListFormat('en', { type: 'conjunction' })

/** Texts of the overview. */
export const text = {
  title: 'Overview',
  intro: (org: string): string => `What ${org} uses and spends. ${shellText.days}`,
  spend: 'Spend this month',
  spendNote: (forecastInr: number): string => `${wholeMoney(forecastInr)} at this pace`,
  charged: (cost: string): string => `${cost} was charged.`,
  callsNote: (calls: number): string => `${shortCount(Math.round(calls))} a day`,
  valueHelp: 'The value of calls at catalog prices, which budgets count. Calls on own provider keys cost nothing here and count with their value.',
  calls: 'Calls this month',
  errors: 'Failed calls',
  errorNote: (errors: number, calls: number): string => (calls === 0 ? 'No calls yet' : `${percent(errors / calls)} of calls`),
  latency: 'Latency p95',
  latencyHelp: '95 of 100 served calls of the last 30 days took at most this time, from admission to the last byte.',
  latencyNote: (p50Ms: number | null): string => (p50Ms === null ? 'No served calls yet' : `${latencyText(p50Ms)} at the median`),
  chart: 'By day and model',
  metrics: { spend: 'Spend', calls: 'Calls', tokens: 'Tokens' },
  chartEmpty: 'No calls in the last 30 days.',
  models: 'Top models',
  agents: 'Top agents',
  noAgents: 'No agent has made a call in this time.',
  people: 'Top people',
  noPeople: 'No call of this time belongs to a person.',
  keys: 'Top keys',
  recentErrors: 'Recent failures',
  allErrors: 'All failures',
  noErrors: 'No call has failed in the days that are kept.',
  budgets: 'Budgets',
  budgetsNote: 'Reset at midnight India time on the 1st',
  attention: 'Needs attention',
  attentionPart: (parts: readonly string[]): string => `Not checked, because it could not be read: ${listOf.format(parts)}.`,
  checked: { health: 'the routes', budgets: 'budgets', keys: 'keys', webhooks: 'webhooks', members: 'invitations' },
  calm: 'All is well: no budget is near its end, and every route answers.',
  budgetNear: (name: string, share: number): string => `The budget of ${name} is used to ${percent(share)}.`,
  budgetUsed: (name: string): string => `The budget of ${name} is used up. Its calls are refused until its period ends.`,
  circuit: (model: string, provider: string): string => `${provider} fails for ${model}. Calls use other routes until a probe succeeds.`,
  webhookOff: (url: string): string => `The webhook ${url} is disabled, because its deliveries failed.`,
  keyEnds: (name: string, when: string): string => `The key ${name} ends ${when}.`,
  keyUnused: (name: string): string => `Nobody uses the key ${name}. It is disabled soon.`,
  invited: (many: number): string => (many === 1 ? '1 invitation waits for an answer.' : `${many} invitations wait for an answer.`),
  process: {
    draining: 'This process is about to end and takes no new calls.',
    database_away: 'The database is away. Calls go on for a while without it.',
    journal_full: 'Usage waits to be written, and no more can be kept. Calls are refused.',
  },
  noCalls: 'Make your first call',
  noCallsHint: 'Four steps connect a program of yours. Then usage and spend appear here.',
  start: 'Get started',
  createKey: 'Create a key',
  firstCall: (origin: string): string =>
    `curl ${origin}/v1/chat/completions \\\n  -H "authorization: Bearer $BRIGADE_KEY" \\\n  -H "content-type: application/json" \\\n  -d '{"model":"auto","messages":[{"role":"user","content":"Hello"}]}'`,
  noKey: 'Calls without a key',
} as const
