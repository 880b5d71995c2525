import type { ReplyOf } from '../../api/call.ts'
import type { IconName } from '../../ui/icon.tsx'

export type Call = ReplyOf<'activityEvents'>['events'][number]
export type WholeCall = ReplyOf<'activityCall'>['calls'][number]
export type Outcome = Call['outcome']

/** How an outcome is shown: an icon and a word, and a sentence that says what happened. */
export interface OutcomeText {
  readonly icon: IconName
  readonly tone: 'good' | 'warn' | 'bad' | 'quiet'
  readonly word: string
  readonly means: string
}

/** The ends that a call can have. */
export const outcomes: Readonly<Record<Outcome, OutcomeText>> = {
  ok: { icon: 'good', tone: 'good', word: 'Answered', means: 'A provider answered to the end.' },
  failed: { icon: 'bad', tone: 'bad', word: 'Failed', means: 'No provider served the call.' },
  client_gone: { icon: 'leave', tone: 'quiet', word: 'Client left', means: 'The client closed the connection before the answer was complete.' },
  upstream_broke: { icon: 'bad', tone: 'bad', word: 'Broke off', means: 'The provider began to answer, and its stream ended too early.' },
  cut: {
    icon: 'warn',
    tone: 'warn',
    word: 'Cut',
    means: 'Brigade ended the call: a budget was spent, a key or an agent was revoked, or the process shut down.',
  },
  interrupted: { icon: 'warn', tone: 'warn', word: 'Interrupted', means: 'The process that served the call died. The figures are those known until then.' },
}

export const outcomeNames = Object.keys(outcomes) as readonly Outcome[]

/** The kinds of calls. */
export const kinds = {
  chat: 'Chat',
  messages: 'Messages',
  responses: 'Responses',
  embeddings: 'Embeddings',
  image: 'Image',
  transcription: 'Transcription',
  speech: 'Speech',
  rerank: 'Ranking',
  moderation: 'Moderation',
  tool: 'Tool',
} as const
export type Kind = keyof typeof kinds
export const kindNames = Object.keys(kinds) as readonly Kind[]

const isStatus = /^\d{3}$/

/** What a status of a provider means, for a person who asks why a call failed. */
const statusWords: Readonly<Record<string, string>> = {
  400: 'it did not accept the request',
  401: 'it does not accept the key of the gateway',
  402: 'the account of the gateway there has no money left',
  403: 'it refuses the key or the model',
  404: 'it does not know the model',
  408: 'it took too long',
  413: 'the request is too large for it',
  429: 'too many calls, or its quota is used up',
  500: 'it failed inside',
  502: 'its servers did not answer',
  503: 'it is overloaded or down',
  504: 'it took too long',
  529: 'it is overloaded',
}

/** Texts of the page of calls. */
export const text = {
  title: 'Calls',
  intro: 'Every call that reached a provider, newest first, and those that no provider could serve.',
  shown: 'Which calls',
  reached: 'Calls',
  refused: 'Refused',
  refusedIntro: 'Calls of models that Brigade refused before it asked a provider. They cost nothing.',
  refusedColumns: { hour: 'Hour', caller: 'Agent and key', why: 'Why', calls: 'Calls', last: 'Last' },
  refusedEmptyTitle: (span: string): string => `No call was refused, ${span}`,
  refusedEmpty: 'A call that is refused for its rights, limits, budget or request is counted here within seconds.',
  refusedScopes: {
    org: 'limit of the organisation',
    team: 'limit of the organisation',
    workspace: 'limit of the workspace',
    member: 'limit of the person',
    key: 'limit of the key',
    agent: 'limit of the agent',
    run: 'limit of the run',
  } as Readonly<Record<string, string>>,
  copyLast: 'Copy the last request id',
  more: 'Show more',
  search: 'Search by request id',
  searchHint: 'Paste the x-request-id of a reply and press Enter. The gateway searches all days.',
  requestId: 'Request',
  outcome: 'Outcome',
  kind: 'Kind',
  live: 'Live',
  liveOn: 'New calls appear by themselves.',
  liveWaits: 'Live waits while you scroll. Go to the top to continue.',
  liveHelp: 'Reads new calls every few seconds. It waits while you scroll or look at another tab.',
  columns: {
    time: 'Time',
    caller: 'Agent and key',
    model: 'Model and provider',
    kind: 'Kind',
    tokens: 'Tokens',
    value: 'Value',
    latency: 'Latency',
    outcome: 'Outcome',
  },
  noKey: 'Without a key',
  noAgent: 'No agent',
  firstByte: (duration: string): string => `${duration} to first byte`,
  ownKey: 'Own provider key',
  emptyTitle: (span: string): string => `No calls, ${span}`,
  empty: 'Choose more days, or make a call. It appears here when it ends.',
  start: 'Get started',
  noMatchTitle: 'No call fits',
  noMatch: 'No call of these days fits the filters.',
  noRequest: 'No call of this organisation has this request id. A call appears when it ends. A call that was refused is counted under Refused.',
  continueTitle: 'Nothing among the calls looked at so far',
  continueHint: 'The gateway looked at a part of the days. Older calls may fit.',
  continueAct: 'Continue',
  continueBelow: 'Older calls may fit the filters.',
  clear: 'Clear filters',
  clearSearch: 'Clear the search',
  next: 'Next call',
  previous: 'Previous call',
  peekTitle: 'Call',
  why: (provider: string, reason: string): string => {
    const known = statusWords[reason]
    if (known !== undefined) return `${provider} answered ${reason}: ${known}.`
    return isStatus.test(reason) ? `${provider} answered with status ${reason}.` : `${provider}: ${reason.replaceAll('_', ' ')}.`
  },
  whyLabel: 'Why it failed',
  routes: 'Routes tried',
  routesHint: 'In this order. Each attempt has its own time.',
  call: (place: number, count: number): string => `Call ${place} of ${count}`,
  status: (status: string): string => `Status ${status}`,
  notKept: 'Prompts and answers are not stored.',
  kept: (days: number): string =>
    `Your organisation keeps prompts and answers sealed for ${days} days. The console does not show them. The operator does, with a line in the audit trail:`,
  keptCommand: (orgId: number, requestId: string): string => `npx brigade admin content --org ${orgId} --request ${requestId}`,
  curl: 'Show as curl',
  curlHint: 'the same as JSON',
  copyId: 'Copy the request id',
  facts: {
    time: 'Admitted',
    request: 'Request id',
    id: 'Event id',
    model: 'Model',
    provider: 'Provider',
    residency: 'Where it was served',
    kind: 'Kind',
    streamed: 'Streamed',
    status: 'Status for the client',
    latency: 'Latency',
    firstByte: 'First byte',
    value: 'Value',
    cost: 'Charged',
    prompt: 'Tokens of the prompt',
    cached: 'of them cached',
    written: 'of them written to the cache',
    completion: 'Tokens of the answer',
    reasoning: 'of them reasoning',
    images: 'Images',
    audio: 'Seconds of audio',
    characters: 'Spoken characters',
    estimated: 'Tokens are',
    key: 'Key',
    agent: 'Agent',
    person: 'Person',
    workspace: 'Workspace',
  },
  yes: 'Yes',
  no: 'No',
  estimate: 'an estimate; the provider sent none',
  residencies: { india: 'India', global: 'Global' } as Readonly<Record<string, string>>,
  none: '–',
} as const
