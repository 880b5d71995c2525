import { count, exactMoney, money } from '../../ui/format/numbers.ts'

const secondMs = 1_000

const reasons: Readonly<Record<string, string>> = {
  pinned_provider: 'The request names the provider.',
  request_fallbacks: 'The request names its models in order.',
  saved_chain: 'The organisation saved a chain for this model.',
  upstream_key: 'The request brings its own provider key.',
  own_key: 'The organisation has its own key for this provider.',
  own_key_first: 'The organisation uses its own key first.',
  only_route: 'It is the only route that can serve this call.',
  optimize_price: 'It is the cheapest route that can serve this call.',
  optimize_latency: 'It is the fastest route that can serve this call.',
  optimize_throughput: 'It is the route with the most tokens a second.',
  optimize_weights: 'It has the best sum of the weights in the request.',
  not_measured_yet: 'No route was measured yet, so this one is tried.',
  lowest_latency: 'It is the fastest of the models that can answer.',
  cheapest: 'It is the cheapest of the models that can answer.',
  cheapest_with_tools: 'It is the cheapest of the models that call tools.',
  tool_call_reliability: 'It calls tools most reliably.',
  cheapest_reasoning: 'It is the cheapest of the models that reason.',
  cheapest_vision: 'It is the cheapest of the models that see pictures.',
  cheapest_india_resident: 'It is the cheapest of the models in India.',
  largest_window: 'It reads the most text.',
}

/** Writes the rule that chose the first route as a sentence. A rule that this page does not know is shown with its name. */
export function reasonText(reason: string): string {
  const rank = /^rank_(\d+)_of_(\w+)$/.exec(reason)
  if (rank !== null) return `It has place ${rank[1]} in the ranking for ${rank[2]}.`
  return reasons[reason] ?? `The rule is ${reason.replaceAll('_', ' ')}.`
}

/** Writes a duration in little room. */
export const duration = (ms: number): string => (ms < secondMs ? `${count(ms)} ms` : `${(ms / secondMs).toFixed(ms < 10 * secondMs ? 2 : 1)} s`)

/** Texts of the playground. */
export const text = {
  title: 'Playground',
  intro: 'Try models with your own playground agent, within its small budget. Messages and answers are only on this page: reload it, and they are gone.',
  model: 'Model',
  modelBeside: 'Second model',
  modelPlaceholder: 'Search models',
  compare: 'Compare',
  compareEnd: 'One model',
  clear: 'Clear',
  code: 'Get code',
  settings: 'Settings',
  settingsSet: 'changed',
  system: 'System message',
  systemPlaceholder: 'You are a helpful reviewer…',
  temperature: 'Temperature',
  temperatureHint: '0 to 2',
  temperatureError: 'Type a number from 0 to 2, or leave it empty.',
  maxTokens: 'Most output tokens',
  maxTokensHint: 'Of one answer',
  maxTokensError: 'Type a whole number above 0, or leave it empty.',
  defaultValue: 'Default of the model',
  message: 'Message',
  messagePlaceholder: 'Ask something…',
  send: 'Send',
  stop: 'Stop',
  keys: 'Enter sends, Shift + Enter makes a new line',
  emptyTitle: 'Say something to a model',
  empty: 'Each answer shows its provider, time, tokens and cost, and why the call took its route.',
  starters: [
    { title: 'Explain', prompt: 'Explain in three sentences what a model gateway does, for a person who has never heard of one.' },
    { title: 'Write', prompt: 'Write a polite two-line reply to a customer whose delivery is two days late.' },
    { title: 'Code', prompt: 'Write a TypeScript function that groups an array of objects by one of their fields. Show one example.' },
  ],
  you: 'You',
  answerOf: (model: string): string => `Answer of ${model}`,
  thinking: 'Thinking',
  waiting: 'Waiting for the first word…',
  stopped: 'Stopped. What was written until then is charged.',
  nothing: 'The answer is empty.',
  facts: {
    provider: 'Provider',
    time: 'Time',
    first: 'First word',
    tokens: 'Tokens',
    cost: 'Cost',
    left: 'Left of the budget',
  },
  tokens: (prompt: number, completion: number): string => `${count(prompt)} in, ${count(completion)} out`,
  cost: (cost: number, value: number | null): string => (value === null || value === cost ? money(cost) : `${money(cost)} (value ${money(value)})`),
  exactCost: exactMoney,
  call: 'See the call',
  why: 'Why this route',
  fixProvider: 'Add a provider',
  fixBudget: 'Open the playground agent',
  codeTitle: 'The same call in code',
  codeAbout: 'It sends what the message field and the settings say now, with the messages above. Put a key into BRIGADE_KEY.',
  noModel: 'Choose a model first.',
  finished: (model: string): string => `The answer of ${model} is complete.`,
} as const
