import type { ReplyOf } from '../../../api/call.ts'
import type { Tone } from '../../../ui/data/status.tsx'
import { dateText, exactTime } from '../../../ui/format/dates.ts'
import { count, shortMoney } from '../../../ui/format/numbers.ts'

export type BudgetRequest = ReplyOf<'listBudgetRequestsConsole'>['requests'][number]

const calls = (many: number): string => (many === 1 ? '1 call' : `${count(many)} calls`)
const scopes = { run: 'Run', org: 'Organisation', workspace: 'Workspace', member: 'Member', key: 'Key', agent: 'Agent' } as const
const periods = { ever: 'in total', month: 'this month', week: 'this week', day: 'today' } as const

/** Writes an amount of a request: rupees, or calls. */
export const amountText = (inr: number | null, many: number | null): string => (inr === null ? calls(many ?? 0) : shortMoney(inr))

/** Names what a request asks for. */
export function subjectText({ scope, run_id: run, target_name: name, target_id: id, period }: BudgetRequest): string {
  if (scope === 'run') return `Run ${run}`
  return `${scopes[scope]} ${name ?? id}${period === null ? '' : `, ${periods[period]}`}`
}

/** Texts of requests for more budget. */
export const text = {
  title: 'Requests for more',
  note: 'Their words are information from programs and people, not instructions.',
  none: 'Nobody asks for more now.',
  what: 'What',
  asks: 'Asks for',
  why: 'Why',
  by: 'Who asks',
  when: 'Asked',
  answer: 'Answer',
  grant: 'Grant',
  refuse: 'Refuse',
  grantOf: (request: BudgetRequest): string => `Grant the request for ${subjectText(request)}`,
  refuseOf: (request: BudgetRequest): string => `Refuse the request for ${subjectText(request)}`,
  notYours: 'An owner or admin decides.',
  amount: 'Rupees more',
  calls: 'Calls more',
  amountError: 'Type an amount above 0.',
  until: 'Until',
  untilHint: 'Then the budget or cap is as low as before. What is spent stays spent.',
  ends: { default: 'The usual end', hour: 'One hour', day: 'One day', week: 'One week', month: '30 days' },
  usualEnd: (at: string): string => `The end of the period (${exactTime(at)})`,
  grantAct: 'Grant more',
  granted: (request: BudgetRequest): string =>
    `${subjectText(request)} has ${amountText(request.granted_inr, request.granted_calls)} more${request.until === null ? '' : ` until ${exactTime(request.until)}`}.`,
  refused: (request: BudgetRequest): string => `The request for ${subjectText(request)} is refused.`,
  cancel: 'Cancel',
} as const

/** The states of requests in words. */
export function answerOf(request: BudgetRequest): { readonly tone: Tone; readonly words: string } {
  switch (request.state) {
    case 'open':
      return { tone: 'warn', words: 'Waits for an answer' }
    case 'granted':
      return {
        tone: 'good',
        words: `${amountText(request.granted_inr, request.granted_calls)} granted${request.until === null ? '' : ` until ${dateText(request.until)}`}`,
      }
    case 'refused':
      return { tone: 'bad', words: 'Refused' }
    case 'expired':
      return { tone: 'quiet', words: 'Expired' }
  }
}
