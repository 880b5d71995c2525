import { shellText } from '../../text/common.ts'
import { percent, shortCount, wholeMoney } from '../../ui/format/numbers.ts'

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
  tokens: 'Tokens this month',
  tokensNote: 'Prompt and completion',
  chart: 'By day and model',
  metrics: { spend: 'Spend', calls: 'Calls', tokens: 'Tokens' },
  chartEmpty: 'No calls in the last 30 days.',
  models: 'Top models',
  keys: 'Top keys',
  budgets: 'Budgets',
  budgetsNote: 'Reset at midnight India time on the 1st',
  attention: 'Needs attention',
  calm: 'All is well: no budget is near its end, and every route answers.',
  budgetNear: (name: string, share: number): string => `The budget of ${name} is used to ${percent(share)}.`,
  budgetUsed: (name: string): string => `The budget of ${name} is used up. Its calls are refused until the month ends.`,
  circuit: (model: string, provider: string): string => `${provider} fails for ${model}. Calls use other routes until a probe succeeds.`,
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
