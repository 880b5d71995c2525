import { lazy } from '../../ui/format/lazy.ts'
import { count } from '../../ui/format/numbers.ts'
import type { Step } from './progress.ts'

const namedMax = 4
const listOf = lazy(() => new Intl.ListFormat('en', { type: 'conjunction' }))
const anyOf = lazy(() => new Intl.ListFormat('en', { type: 'disjunction' }))

/** Texts of the wizard. */
export const text = {
  title: 'Get started',
  intro: 'Four steps to the first call of your program. You can leave and come back.',
  leave: 'Skip the setup',
  steps: { provider: 'Models', agent: 'Agent', client: 'Client', call: 'First call' } satisfies Record<Step, string>,
  stepOf: (number: number, many: number): string => `Step ${number} of ${many}`,
  done: 'done',
  back: 'Back',
  next: 'Continue',
  skip: 'Skip',

  providerTitle: 'Where do replies come from?',
  providerChoice: 'Source of replies',
  ready: (names: readonly string[]): string =>
    `Use ${listOf().format(names.length > namedMax ? [...names.slice(0, namedMax), `${names.length - namedMax} more`] : names)}`,
  readyHint: 'Their keys are here already.',
  sandbox: 'Use the sandbox',
  sandboxHint: 'Replies are simulated and no provider is paid. All else is real: agents, budgets with prices of the sandbox, limits and usage.',
  ownKey: 'Add the key of a provider',
  ownKeyHint: 'Calls go to real models on your account there. The key is tested, sealed, and never shown again.',
  provider: 'Provider',
  key: 'Key',
  keyHint: 'The gateway tests it at the provider now, and calls models with it for your organisation.',
  test: 'Test and save',
  saved: (provider: string, models: number): string => `${provider} accepts the key. It reaches ${models === 1 ? '1 model' : `${count(models)} models`}.`,
  askOwner: (owners: readonly string[]): string =>
    `Owners add keys of providers. ${owners.length === 0 ? 'Ask one of them.' : `Ask ${anyOf().format(owners)}.`}`,
  noneYet: 'This gateway has no provider yet, so no model can answer.',
  byokOff: 'The operator of this gateway adds providers.',

  agentTitle: 'Who makes the calls?',
  agentAbout: 'An agent is the identity of your program. It has a budget, rules and a memory folder of its own, and you can stop it with one click.',
  which: 'Agent',
  newAgent: 'A new agent',
  newAgentHint: 'With a name and a budget.',
  oldAgent: 'An agent that you have',
  oldAgentHint: 'Its budget and rules stay.',
  name: 'Name',
  namePlaceholder: 'reviewer, support-bot, …',
  budget: 'Budget a month',
  budgetHint: 'Rupees in a calendar month of India. Calls are refused when it is used up.',
  create: 'Create agent',
  chooseAgent: 'Agent',
  chooseHint: 'Type a part of its name.',
  madeTitle: (name: string): string => `${name} is ready`,
  madeAbout: 'The next step connects a program to it.',
  another: 'Take another agent',

  clientTitle: 'Connect your program',
  clientAbout: (agent: string | null): string => (agent === null ? 'Without an agent, a key makes the calls.' : `Its calls are those of ${agent}.`),
  connected: 'I have connected it',

  callTitle: 'Waiting for the first call',
  callAbout: (agent: string | null): string =>
    agent === null
      ? 'Send a message in your client. This page turns when the call arrives.'
      : `Send a message in your client. This page turns when a call of ${agent} arrives.`,
  try: 'Or send one with curl',
  listening: 'Listening…',
  arrivedTitle: 'Your first call arrived',
  arrived: (model: string, provider: string): string => `${model} answered through ${provider}.`,
  failedTitle: 'A call arrived, and it failed',
  failed: (model: string, status: number): string => `The call of ${model} ended with status ${status}. The page still waits for one that succeeds.`,
  facts: { model: 'Model', provider: 'Provider', cost: 'Cost', value: 'Value', tokens: 'Tokens', time: 'Time' },
  openCall: 'See the call',
  openAgent: 'Open the agent',
  overview: 'Go to the overview',
  startOver: 'Connect another client',
} as const
