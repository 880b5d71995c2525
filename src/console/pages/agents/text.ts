import type { ReplyOf } from '../../api/call.ts'
import { askSentence } from '../../app/whom-to-ask.ts'
import type { Tone } from '../../ui/data/status.tsx'
import { lazy } from '../../ui/format/lazy.ts'
import { count, shortMoney } from '../../ui/format/numbers.ts'
import type { IconName } from '../../ui/icon.tsx'

type Agent = ReplyOf<'listAgentsConsole'>['agents'][number]

const listOf = lazy(() => new Intl.ListFormat('en', { type: 'conjunction' }))
const children = (many: number): string => (many === 1 ? '1 child' : `${count(many)} children`)

const agents = (many: number): string => (many === 1 ? '1 agent' : `${count(many)} agents`)

/** Texts of the agents. */
export const text = {
  title: 'Agents',
  intro: 'Agents are identities for your programs. Each has a token, a budget and a memory folder of its own.',
  introMember: 'You see all agents and act on your own. For another, ask its owner, or an owner or admin of the organisation.',
  create: 'New agent',
  createAct: 'Create agent',
  createChild: 'New child',
  childOf: (name: string): string => `New child of ${name}`,
  childHint: 'A child has no more than the agents above it, and ends with them.',
  emptyTitle: 'No agents yet',
  empty: 'Agents are identities for your programs. Each has a token, a budget and a memory folder of its own.',
  emptyCommand: 'npx brigade agent create reviewer --budget-inr 500',
  noneTitle: 'No agent fits',
  none: 'No agent has these filters.',
  clear: 'Clear the filters',
  searching: 'The search goes on…',
  search: 'Search agents',
  searchHint: 'Name or id',
  states: { all: 'All', active: 'Active', paused: 'Paused', revoked: 'Ended' },
  state: 'State',
  owner: 'Owner',
  owners: { any: 'All owners', me: 'Mine', other: (name: string): string => `Owned by ${name}` },
  family: 'Level',
  families: { any: 'All levels', none: 'Top level only', one: (name: string): string => `Children of ${name}` },
  budgetUsed: 'Budget',
  budgets: { any: 'All budgets', nearEnd: (percent: number): string => `${percent}% used or more` },
  sort: 'Order',
  sorts: { created: 'Newest first', name: 'By name', last_call: 'Last call first', spend: 'Highest spend first' },
  total: (many: number): string => (many === 1 ? '1 agent' : `${count(many)}${many >= 100_000 ? '+' : ''} agents`),
  acts: (name: string): string => `Acts of ${name}`,
  name: 'Name',
  namePlaceholder: 'reviewer, support-bot, …',
  nameTaken: 'An active agent has this name. Choose another one.',
  budget: 'Budget a month',
  budgetHint: 'Rupees in a calendar month of India. Calls are refused when it is used up.',
  childBudgetHint: 'The parent has a budget, so the child needs one within what is free of it.',
  advanced: 'Advanced',
  advancedHint: 'Children, models, limits of one call',
  mayDelegate: 'May create child agents',
  mayDelegateHint: 'With its own token, within its budget and rules, three generations deep.',
  models: 'Models',
  modelsPlaceholder: 'All models',
  modelsHint: 'Calls of other models are refused.',
  providers: 'Providers',
  providersPlaceholder: 'All providers',
  costPerCall: 'Most that one call may cost',
  outputTokens: 'Output tokens of a call',
  concurrency: 'Concurrent calls',
  tokensAMinute: 'Tokens a minute',
  toolsAMinute: 'Calls of tools a minute',
  toolsADay: 'Calls of tools a day',
  noLimit: 'No limit',
  wholeNumber: 'Type a whole number above 0, or leave it empty for no limit.',
  created: (name: string): string => `${name} is ready.`,
  createdPartly: (name: string, why: string): string => `${name} exists without a budget. ${why}`,
  pause: 'Pause',
  resume: 'Resume',
  end: 'End',
  endAgent: 'End agent',
  pausedToast: (name: string): string => `${name} is paused. Its calls are refused until you resume it.`,
  resumedToast: (name: string): string => `${name} works again, with the tokens that it has.`,
  endTitle: 'End the agent',
  endAbout: (many: number): [string, string] => [
    'This ends ',
    many === 0
      ? ' for good. Its tokens stop, and nobody can undo it.'
      : ` and ${children(many)} for good, with all agents below. Their tokens stop, and nobody can undo it.`,
  ],
  endChildren: (names: readonly string[], many: number): string =>
    `Ends too: ${listOf().format(many > names.length ? [...names, `${count(many - names.length)} more`] : names)}.`,
  endRunning: (many: number): string => `Running calls are cut${many === 0 ? '' : `: at least ${count(many)} now`}.`,
  endKept: 'Usage, calls and memory stay.',
  pauseInstead: 'To stop it for a time, pause it instead.',
  endedToast: (name: string, many: number): string => `${name} has ended${many === 0 ? '' : `, with ${children(many)}`}.`,
  many: {
    label: 'Selected agents',
    selected: (many: number): string => `${count(many)} selected`,
    clear: 'Clear the selection',
    select: (name: string): string => `Select ${name}`,
    selectAll: 'Select all that you may act on',
    full: (max: number): string => `At most ${count(max)} agents change together.`,
    titles: { pause: 'Pause several agents', resume: 'Resume several agents', end: 'End several agents' },
    acts: {
      pause: (many: number): string => `Pause ${agents(many)}`,
      resume: (many: number): string => `Resume ${agents(many)}`,
      end: (many: number): string => `End ${agents(many)}`,
    },
    about: {
      pause: 'Their calls, and those of their children, are refused until somebody resumes them. Running calls are cut.',
      resume: 'They work again, with the tokens that they have.',
      end: 'They end for good, with all agents below. Their tokens stop, running calls are cut, and nobody can undo it.',
    },
    names: (names: readonly string[], all: number): string =>
      `${listOf().format(all > names.length ? [...names, `${count(all - names.length)} more`] : names)}.`,
    children: (many: number): string => `${children(many)} of these agents ${many === 1 ? 'ends' : 'end'} too.`,
    pauseInstead: 'To stop them for a time, pause them instead.',
    unlike: (many: number): string =>
      `${many === 1 ? '1 agent is' : `${count(many)} agents are`} in this state already, and ${many === 1 ? 'is' : 'are'} left out.`,
    typed: (many: number): string => `end ${agents(many)}`,
    progress: (done: number, all: number): string => `${count(done)} of ${count(all)} done`,
    done: {
      pause: (many: number): string => `${agents(many)} ${many === 1 ? 'is' : 'are'} paused.`,
      resume: (many: number): string => `${agents(many)} ${many === 1 ? 'works' : 'work'} again.`,
      end: (many: number): string => `${agents(many)} ${many === 1 ? 'has' : 'have'} ended.`,
    },
    failed: (many: number): string => `${agents(many)} could not be changed:`,
  },
  askFor: (owner: string | null, owners: readonly string[]): string => {
    const whom = askSentence([...new Set([...(owner === null ? [] : [owner]), ...owners])])
    return `${owner === null ? 'Owners and admins of the organisation' : `${owner}, and owners and admins of the organisation,`} change this agent. ${whom}`
  },
  spentOf: (spent: number, cap: number | null): string => (cap === null ? `${shortMoney(spent)} spent` : `${shortMoney(spent)} of ${shortMoney(cap)}`),
} as const

/** A status of an agent: how it looks, its name, and what it means. */
export const statuses: Readonly<Record<Agent['status'], { tone: Tone; icon: IconName; name: string; means: string }>> = {
  active: { tone: 'good', icon: 'good', name: 'Active', means: 'Calls with its tokens are served.' },
  paused: { tone: 'warn', icon: 'pause', name: 'Paused', means: 'Its calls and those of its children are refused until somebody resumes it.' },
  revoked: { tone: 'quiet', icon: 'bad', name: 'Ended', means: 'It has ended for good. Its usage and memory stay.' },
}
