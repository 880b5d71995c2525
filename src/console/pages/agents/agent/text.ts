import { dayText } from '../../../ui/format/dates.ts'
import { lazy } from '../../../ui/format/lazy.ts'
import { count, money, shortMoney, wholeMoney } from '../../../ui/format/numbers.ts'
import type { AgentTab } from '../agent-tabs.ts'
import type { Agent } from '../use-agents.ts'

const listOf = lazy(() => new Intl.ListFormat('en', { type: 'disjunction' }))
const namedMax = 4

/** Writes a few ids, and how many more there are. */
const idsText = (ids: readonly string[]): string => listOf().format(ids.length > namedMax ? [...ids.slice(0, namedMax), `${ids.length - namedMax} more`] : ids)

/** Texts of the page of an agent. */
export const text = {
  tabs: {
    overview: 'Overview',
    connect: 'Connect',
    family: 'Family',
    tokens: 'Tokens',
    memory: 'Memory',
    calls: 'Calls',
    rules: 'Rules',
    tools: 'Tools',
  } satisfies Record<AgentTab, string>,
  crumbs: 'Agents above',
  ownedBy: (name: string | null): string => (name === null ? 'Nobody owns it' : `Owned by ${name}`),
  you: 'you',
  copyLink: 'Copy link',
  copyId: 'Copy id',
  copyCurl: 'Copy as curl',
  copied: 'Copied.',
  more: 'More acts',
  pausedNote: 'Paused: its calls and those of its children are refused. Its tokens work again when somebody resumes it.',
  endedNote: 'This agent has ended for good. Its usage, calls and memory stay.',
  playgroundNote: 'The agent of a person for the playground. Only that person gets tokens of it.',

  budget: 'Budget this month',
  resets: (day: string): string => `Resets on ${dayText(day)} at midnight India time`,
  setBudget: 'Set budget',
  budgetTitle: 'Budget of the agent',
  budgetLabel: 'Budget a month',
  budgetHint: 'Rupees in a calendar month of India. Calls are refused when it is used up. A budget below what is spent refuses calls until the month ends.',
  save: 'Save',
  savedToast: 'Saved.',
  spent: 'Spent',
  held: 'Held',
  heldHelp: 'Reserved by calls that run now.',
  inDoubt: 'In doubt',
  inDoubtHelp: 'Of calls whose end is not known yet. It is freed or counted within minutes.',
  left: 'Left',
  noLimit: 'No limit',
  forecast: (inr: number, capInr: number | null): string =>
    `${wholeMoney(inr)} by the end of the month at this pace${capInr !== null && inr > capInr ? `, ${wholeMoney(inr - capInr)} more than the budget` : ''}.`,

  chart: 'Spend by day and model',
  callsChart: 'Calls by day and model',
  chartNote: 'Last 30 days, as India counts them',
  chartEmpty: 'No calls in the last 30 days.',
  spend: 'Spend',
  calls: 'Calls',
  lastCalls: 'Last calls',
  allCalls: 'All calls',
  noCalls: 'No calls yet',
  noCallsHint: 'Make a token and call a model with it. The call appears here.',
  makeToken: 'Make a token',
  rules: 'Rules',
  rulesNote: 'For every token of it',
  changeRules: 'Change rules',

  familyTitle: 'Family',
  familyNote: 'Agents above, this one, and its children',
  noFamily: 'This agent has no parents and no children.',
  allotted: (taken: number, cap: number): string =>
    `Budgets of its children take ${shortMoney(taken)} of ${shortMoney(cap)}. ${shortMoney(Math.max(0, cap - taken))} is free for more.`,
  moreChildren: (shown: number, all: number): string => `The ${count(shown)} newest of ${count(all)} children are shown.`,
  allChildren: 'Show all in the list',
  deepest: 'A family has three generations below the first agent, so this agent has no children.',
  thisAgent: 'this agent',

  mint: 'Make a token',
  mintNote: 'Short-lived, with all scopes or fewer',
  scopes: 'What the token may do',
  scopeHints: {
    inference: ['Call models', 'Chat, messages, responses, embeddings, images, audio.'],
    'memory:read': ['Read memory', 'What the organisation and this agent keep.'],
    'memory:write': ['Write memory', 'Its own folder, and shared ones.'],
    'usage:read': ['Read usage', 'Usage, budgets and the list of agents.'],
    'tools:call': ['Call tools', 'Those of MCP servers that its rules allow.'],
  },
  noScope: 'Choose at least one.',
  life: 'Lives for',
  lives: [
    { value: '', label: 'As long as this gateway allows (15 minutes by default)' },
    { value: '300', label: '5 minutes' },
    { value: '60', label: '1 minute' },
  ],
  key: 'Bound to your key',
  keyHint: 'The limits of the key apply to the token, too, and the token ends with it.',
  noKey: 'A token is bound to a key of yours, whose limits apply and with which it ends. You have none among the newest keys.',
  noKeyMake: 'The new key calls models, manages nothing, and ends after 30 days.',
  makeKey: 'Make a key for tokens',
  keyName: (agent: string): string => `Tokens of ${agent}`,
  keyMade: (name: string): string => `${name} is ready`,
  keySecret:
    'Tokens need only the id of the key, so you may close this. This is the only time that its secret is shown. With it, a program calls models without a token.',
  minted: (name: string): string => `A token of ${name}`,
  mintedAbout: (until: string): string => `This is the only time that the token is shown. It ends at ${until}.`,
  notYoursMint: 'Nobody gets tokens of this agent but the person whose playground it is.',
  connect: 'Connect',
  connectNote: 'With its budget and its rules',
  playgroundConnect: 'The console alone calls as this agent. Make another agent for a program.',
  endedMint: 'An agent that has ended gets no tokens.',
  refresh: 'A program gets new tokens by itself with the toolkit, or with the command line:',
  verify: 'Verify a token elsewhere',
  verifyNote: 'With the public keys of this gateway',
  verifyAbout: 'Another service checks the signature, the issuer and the time. Only the gateway knows whether the agent was ended.',
  claims: 'What a token says',
  claimRows: {
    sub: 'The agent',
    act: 'The agents above, which let it act',
    org: 'The organisation',
    key_id: 'The key that binds it',
    scope: 'What it may do',
    exp: 'When it ends',
  },

  changes: {
    title: 'What it wrote',
    note: (days: number): string => `Last ${days} days, as India counts them`,
    none: (days: number): string => `It wrote nothing in the last ${days} days.`,
    today: 'Today',
    yesterday: 'Yesterday',
    many: (many: number): string => (many === 1 ? '1 change' : `${count(many)} changes`),
    made: 'New',
    show: 'Show changes',
    hide: 'Hide changes',
    of: (key: string): string => `of ${key}`,
    before: 'Before',
    after: 'After',
    nothing: 'Before: there was no object',
    side: (what: string, who: string | null, when: string): string => `${what}: ${who === null ? '' : `${who}, `}${when}`,
    beforeGone: 'The version before is not kept any more, or is further back. The page of the object has all versions.',
    notCompared: 'These versions are too long, or are not text. The page of the object has both.',
    cut: 'It wrote more than is shown. The objects below lead to all versions.',
  },

  memory: 'Objects',
  memoryNote: 'Last written by this agent',
  memoryVersions: 'Versions',
  memoryCompare: 'Compare',
  memoryVersionsOf: (key: string) => `Compare the versions of ${key}`,
  memoryEmpty: 'It has written nothing',
  memoryHint: 'Agents keep notes with the tool memory_write, or with a token that may write memory.',
  memoryOff: 'Memory is not set up',
  memoryOffHint: 'An owner or admin chooses a folder or a bucket for the memory of the organisation.',
  written: 'An agent wrote this. Read it as information, not as instructions.',

  callsNote: 'Prompts and answers are not stored.',
  all: 'All',
  failed: 'Failed',
  outcome: 'Outcome',
  callsEmpty: 'No calls',
  callsEmptyHint: 'No call has these filters on the days that are kept.',
  failedEmpty: 'No call of this agent has failed.',

  rulesTitle: 'Rules of its calls',
  rulesAbout: 'They apply from the next call on, to every token, and to all agents below. Only what you change is sent.',
  owner: 'Owner',
  ownerHint: 'The member who answers for the agent and acts on it.',
  ownerNobody: 'Nobody',
  adminRules: 'Limits that an owner or admin of the organisation set are loosened only by owners and admins.',
} as const

/** Returns the rules of an agent as sentences, the narrowest first. */
export function rulesInWords(agent: Agent): string[] {
  const { allowed_models: models, allowed_providers: providers, max_cost_inr_per_call: cost } = agent
  const { max_output_tokens: tokens, max_concurrency: concurrency, tpm_limit: tokensAMinute } = agent
  return [
    models === null ? 'Every model that its key allows' : `Only the model${models.length === 1 ? '' : 's'} ${idsText(models)}`,
    providers === null ? 'Served by any provider' : `Served only by ${idsText(providers)}`,
    ...(cost === null ? [] : [`At most ${money(cost)} a call`]),
    ...(tokens === null ? [] : [`At most ${count(tokens)} output tokens a call`]),
    ...(concurrency === null ? [] : [`At most ${count(concurrency)} ${concurrency === 1 ? 'call' : 'calls'} at the same time`]),
    ...(tokensAMinute === null ? [] : [`At most ${count(tokensAMinute)} tokens a minute`]),
    agent.may_delegate ? 'It may create child agents' : 'It creates no child agents',
  ]
}
