import { askSentence } from '../../app/whom-to-ask.ts'
import type { Tone } from '../../ui/data/status.tsx'
import { count } from '../../ui/format/numbers.ts'
import type { IconName } from '../../ui/icon.tsx'
import type { ProviderRow, ProviderState } from './search.ts'

const models = (many: number): string => (many === 1 ? '1 model' : `${count(many)} models`)

/** Texts of the page of providers. */
export const text = {
  title: 'Providers',
  intro: 'Who answers the calls. The operator sets keys for the whole gateway, and your organisation adds keys of its own.',
  introAsk: (owners: readonly string[]): string => `Only owners add keys. ${askSentence(owners, 'owner')}`,
  off: 'This gateway takes no keys of organisations. Its operator sets the keys.',
  add: 'Add a key',
  search: 'Search providers',
  searchHint: 'Name',
  state: 'State',
  states: { all: 'All', ready: 'Ready', own: 'Own keys', none: 'Not set up' } satisfies Record<ProviderState | 'all', string>,
  noneTitle: 'No provider fits',
  none: 'No provider has these filters.',
  clear: 'Clear the filters',
  columns: { provider: 'Provider', state: 'State', key: 'Your key', models: 'Models', place: 'Place', tested: 'Accepted' },
  india: 'India',
  global: 'Worldwide',
  models,
  closed: 'It takes no key of an organisation.',
  untried: 'Nobody has tried Brigade against the real service of this provider yet. Test your key before you rely on it.',
  missing: (names: readonly string[]): string => `The operator of the gateway sets ${new Intl.ListFormat('en').format(names)} to open it for everybody.`,
  unknown: 'There is no such provider.',
  own: 'Your key',
  noKey: 'Your organisation has no key here.',
  mask: 'Key',
  label: 'Label',
  labelHint: 'For people, such as the team that pays.',
  noLabel: 'none',
  found: 'Models found',
  accepted: 'Accepted by the provider',
  unverified: 'never: the provider has no call that would tell a wrong key',
  created: 'Saved',
  always: 'Use it first',
  alwaysHint: 'Calls use this key before the one of the operator, and the provider bills you. Otherwise it serves what the operator has no key for.',
  alwaysOn: (name: string): string => `Calls use your ${name} key first.`,
  alwaysOff: (name: string): string => `Calls use your ${name} key where the operator has none.`,
  labelSaved: 'The label is saved.',
  save: 'Save',
  test: 'Test now',
  tests: {
    ok: { tone: 'good', text: 'The provider accepted the key. Its models were read again.' },
    rejected: { tone: 'bad', text: 'The provider refused the key. Calls with it fail. Replace it, or remove it.' },
    unreachable: { tone: 'warn', text: 'The provider did not answer. Nothing has changed; try again later.' },
  } satisfies Record<string, { readonly tone: Tone; readonly text: string }>,
  replace: 'Replace',
  remove: 'Remove',
  removeTitle: 'Remove the key?',
  removeAbout: (name: string): string => `Calls stop using your ${name} key immediately. Calls that only this key can serve fail.`,
  removeKeeps: 'The key itself stays valid at the provider. Revoke it there if nobody needs it.',
  removed: (name: string): string => `Your ${name} key is removed.`,
  callThem: 'Send one of these ids as the model of a call.',
  more: (many: number): string => `and ${count(many)} more`,
} as const

/** The fields of credentials: the name that the gateway takes, its label, and whether it is a secret. Google's are a file. */
export const credentialFields: Readonly<Record<'aws' | 'google' | 'entra', readonly (readonly [name: string, label: string, isSecret: boolean])[]>> = {
  aws: [
    ['access_key_id', 'Access key id', false],
    ['secret_access_key', 'Secret access key', true],
    ['session_token', 'Session token, if there is one', true],
  ],
  google: [],
  entra: [
    ['tenant_id', 'Tenant id', false],
    ['client_id', 'Client id', false],
    ['client_secret', 'Client secret', true],
  ],
}

/** Texts of the form for a key. */
export const formText = {
  title: 'Add a key of a provider',
  replaceTitle: (name: string): string => `Replace the ${name} key`,
  provider: 'Provider',
  choose: 'Choose a provider',
  what: 'What do you have?',
  key: 'Key',
  aKey: 'A key',
  aKeyHint: 'One secret text from the page of the provider.',
  keyHint: 'It is sealed, and nobody sees it again. The provider tests it before it is saved.',
  kinds: {
    aws: { label: 'An access key of AWS', hint: 'Brigade signs each call with it.' },
    google: { label: 'A service account of Google', hint: 'The JSON file that Google makes.' },
    entra: { label: 'A client secret of Entra', hint: 'Tenant, application and its secret.' },
  },
  file: 'The file of the service account',
  fileHint: 'Paste the JSON. Only its values are used: no address in it is followed.',
  fileWrong: 'This is not the JSON of a service account.',
  values: { resource: 'Resource', region: 'Region', project: 'Project', location: 'Location' } as Readonly<Record<string, string>>,
  valueHints: {
    resource: 'The name before the host of your resource, such as acme.',
    region: 'Such as ap-south-1.',
    project: 'The id of the project.',
    location: 'Such as asia-south1 or eu.',
  } as Readonly<Record<string, string>>,
  models: 'Deployments or models',
  modelsHint: 'One a line. Only those that the provider does not list itself.',
  more: 'More',
  moreHint: 'Label, order, further models',
  act: 'Test and save',
  saved: (name: string, found: number): string => `The ${name} key works, and reaches ${models(found)}.`,
  savedUnverified: (name: string): string => `The ${name} key is saved. The provider has no call that would tell a wrong key.`,
}

/** The state of a provider in words. */
export function stateOf({ own, isConfigured, isUntried }: ProviderRow): {
  readonly tone: Tone
  readonly icon: IconName
  readonly name: string
  readonly means: string
} {
  if (own?.always_use === true) return { tone: 'good', icon: 'key', name: 'Your key first', means: 'Calls use the key of your organisation first.' }
  if (isConfigured) return { tone: 'good', icon: 'good', name: 'Ready', means: 'The gateway calls it for everybody.' }
  if (own !== null) return { tone: 'good', icon: 'key', name: 'Your key', means: 'Calls use the key of your organisation.' }
  if (isUntried) return { tone: 'quiet', icon: 'info', name: 'Untried', means: text.untried }
  return { tone: 'quiet', icon: 'pause', name: 'Not set up', means: 'Nobody has given a key for it yet.' }
}
