import { askSentence } from '../../app/whom-to-ask.ts'
import type { Tone } from '../../ui/data/status.tsx'
import { dateText } from '../../ui/format/dates.ts'
import type { ApiKey } from './use-keys.ts'

/** A state of a key in words: how it looks, its name, and what it means. */
export interface StateWords {
  readonly tone: Tone
  readonly name: string
  readonly means: string
}

/** Texts of the keys. */
export const text = {
  title: 'Keys',
  intro: 'Keys let programs call models. For an agent, make an agent instead: it has a token, a budget and memory of its own.',
  create: 'New key',
  emptyTitle: 'No keys yet',
  empty: 'A key is a secret of yours. A program sends it with every call.',
  emptyCommand: 'npx brigade login',
  search: 'Search keys',
  searchHint: 'Name, id or start of a key',
  state: 'State',
  anyState: 'All that are not revoked',
  owner: 'Owner',
  owners: { any: 'All owners', me: 'Mine', other: (name: string): string => `Of ${name}` },
  sort: 'Order',
  sorts: { created: 'Newest first', name: 'By name', last_used: 'Last used first' },
  noneTitle: 'No key fits',
  none: 'No key has these filters.',
  clear: 'Clear the filters',
  name: 'Name',
  namePlaceholder: 'Laptop, build server, …',
  nameHint: 'Left empty, the key is named after the day.',
  purpose: 'What for',
  purposes: [
    { value: 'inference', label: 'Calls of models', hint: 'For an application or a coding tool. It manages nothing.' },
    { value: 'full', label: 'Everything that you may do', hint: 'For scripts and the command line. It also manages agents, memory and keys.' },
  ],
  ends: 'Ends',
  endsHint: 'A key that ends by itself is one that nobody has to remember.',
  endOptions: [
    { value: '30', label: 'In 30 days' },
    { value: '90', label: 'In 90 days' },
    { value: '365', label: 'In a year' },
    { value: '', label: 'Never' },
  ],
  limits: 'Limits',
  limitsHint: 'Budget, rate, models, workspace',
  budget: 'Budget a month',
  budgetHint: 'Rupees in a calendar month of India. Calls are refused when it is used up.',
  costPerCall: 'Most that one call may cost',
  rpm: 'Requests a minute',
  daily: 'Calls a day',
  concurrency: 'Concurrent calls',
  outputTokens: 'Output tokens of a call',
  tokensAMinute: 'Tokens a minute',
  toolsAMinute: 'Calls of tools a minute',
  toolsADay: 'Calls of tools a day',
  models: 'Models',
  modelsPlaceholder: 'All models',
  modelsHint: 'Calls of other models are refused.',
  workspace: 'Workspace',
  workspacePlaceholder: 'None',
  workspaceHint: 'Its budget then counts the calls of the key. This cannot be changed later.',
  noLimit: 'No limit',
  pin: 'Keep when unused',
  createdTitle: (name: string): string => `${name} is ready`,
  created: 'This is the only time that the key is shown. Copy it, or download it, before you close this.',
  rotatedTitle: (name: string): string => `${name} has a new secret`,
  rotated: (until: string): string => `This is the only time that it is shown. The old secret works until ${until}.`,
  connect: 'Connect',
  rotate: 'Rotate',
  rotateTitle: 'Rotate the key',
  rotateAbout: (name: string): [string, string, string] => ['Give ', name, ' a new secret. Its id, limits, budget and spend stay.'],
  overlap: 'The old secret works for',
  overlaps: [
    { value: '0', label: 'No longer: it ends now' },
    { value: '1', label: 'One day' },
    { value: '7', label: 'A week' },
  ],
  rotateWarning: 'Programs that still use the old secret fail from now on, and their running calls are cut.',
  rotateWarned: 'A secret that is older than the last one ends now.',
  disable: 'Disable',
  disabledToast: (name: string): string => `${name} is disabled. Calls with it are refused.`,
  enable: 'Enable',
  enabledToast: (name: string): string => `${name} works again.`,
  revoke: 'Revoke',
  revokeTitle: 'Revoke the key',
  revokeAbout: (name: string): [string, string, string] => [
    'This ends ',
    name,
    ' for good. Its running calls are cut, and agent tokens that were made with it end.',
  ],
  revokedToast: (name: string): string => `${name} is revoked.`,
  save: 'Save',
  savedToast: 'Saved.',
  edit: 'Edit limits',
  editHint: 'Only what you change is sent.',
  copyCurl: 'Copy as curl',
  notLoaded: 'This key is not among those loaded. It may be revoked, or further down the list.',
  membersOnly: (owners: readonly string[]): string =>
    `Owners and admins change limits, disable and revoke keys. You can rotate your own. ${askSentence(owners)}`,
} as const

/** The states of keys in words. */
export const stateWords: Readonly<Record<ApiKey['state'], StateWords>> = {
  active: { tone: 'good', name: 'Active', means: 'Calls with this key are served.' },
  notice: { tone: 'warn', name: 'Unused', means: 'Nobody used it for long. It is disabled soon unless somebody does.' },
  disabled: { tone: 'quiet', name: 'Disabled', means: 'Somebody disabled it. Calls with it are refused.' },
  disabled_inactive: { tone: 'quiet', name: 'Disabled, unused', means: 'It was disabled because nobody used it. Enable it to use it again.' },
  expired: { tone: 'bad', name: 'Ended', means: 'Its life is over. Make a new key.' },
  owner_left: { tone: 'bad', name: 'Owner left', means: 'The member whose key it is has left the organisation.' },
  revoked: { tone: 'bad', name: 'Revoked', means: 'It has ended for good.' },
}

/** Returns the state of a key in words. A key that ends within a week is a warning. */
export function stateOf(key: ApiKey, nowMs: number): StateWords {
  const words = stateWords[key.state]
  if (key.state !== 'active' || key.expires_at === null) return words
  const daysLeft = (Date.parse(key.expires_at) - nowMs) / 86_400_000
  return daysLeft < 7 ? { tone: 'warn', name: 'Ends soon', means: `It ends on ${dateText(key.expires_at)}.` } : words
}
