import { askSentence } from '../../app/whom-to-ask.ts'
import type { Tone } from '../../ui/data/status.tsx'
import { shortMoney } from '../../ui/format/numbers.ts'
import type { BudgetState } from './search.ts'

/** Texts of the list of budgets. */
export const text = {
  title: 'Budgets',
  increase: 'Granted beside it',
  increaseUntil: (inr: number, until: string): string => `${shortMoney(inr)} until ${until}`,
  intro: (reset: string): string => `A call must fit into every budget that applies to it. Those of a month start again on ${reset}, midnight in India.`,
  create: 'Set a budget',
  search: 'Search budgets',
  searchHint: 'Name or id of what it binds',
  state: 'State',
  anyState: 'All states',
  scope: 'What it binds',
  anyScope: 'Everything',
  scopes: { org: 'Organisation', team: 'Organisation', workspace: 'Workspace', member: 'Member', key: 'Key', agent: 'Agent' },
  periods: { ever: 'In total', month: 'A month', week: 'A week', day: 'A day' },
  period: 'Period',
  never: 'Never',
  scopesMany: { org: 'The organisation', workspace: 'Workspaces', member: 'Members', key: 'Keys', agent: 'Agents' },
  name: 'Name',
  used: 'Used',
  spent: 'Spent',
  held: 'Held',
  heldHelp: 'Reserved by calls that run now. What a call does not use comes back when it ends.',
  inDoubt: 'In doubt',
  inDoubtHelp: 'Of calls whose end is not known yet. It is counted as spent until it is.',
  left: 'Left',
  budget: 'Budget',
  strict: 'Strict',
  strictOn: 'Yes: spending never passes the budget',
  strictOff: 'No: the calls that run can pass it a little',
  resets: 'Starts again',
  edit: (name: string): string => `Change the budget of ${name}`,
  change: 'Change the budget',
  emptyTitle: 'No budget is set',
  empty: 'Keys, agents and people spend without a limit. Begin with one for the organisation.',
  emptyCommand: 'npx brigade budget',
  noneTitle: 'No budget fits',
  none: 'No budget has these filters.',
  clear: 'Clear the filters',
  notLoaded: 'This budget is not among those loaded. It may have been lifted, or is further down the list.',
  open: { org: '', team: '', workspace: 'Open the workspace', member: 'Open the member', key: 'Open the key', agent: 'Open the agent' },
  which: 'Which one',
  whichHint: 'Name or id',
  choose: 'Choose what the budget binds.',
  close: 'Close',
  membersTitle: 'Owners and admins see the budgets',
  members: (owners: readonly string[]): string => `Your keys and agents show their budgets on their own pages. ${askSentence(owners)}`,
} as const

/** The states of budgets in words. */
export const stateWords: Readonly<Record<BudgetState, { readonly tone: Tone; readonly name: string; readonly means: string }>> = {
  blocked: { tone: 'bad', name: 'Used up', means: 'Calls are refused until the period ends, or until somebody raises the budget.' },
  warned: { tone: 'warn', name: 'Nearly used up', means: 'At least 80 percent are spent.' },
  under: { tone: 'good', name: 'Has room', means: 'Less than 80 percent are spent.' },
}
