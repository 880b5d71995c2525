import type { ReplyOf } from '../../api/call.ts'
import type { Tone } from '../../ui/data/status.tsx'

type Finding = ReplyOf<'operatorDoctor'>['findings'][number]
export type Organisation = ReplyOf<'operatorOrganisations'>['organisations'][number]
export type KeyTest = ReplyOf<'testPlatformKey'>
export type Withheld = ReplyOf<'operatorMaintenance'>['withheld'][number]
export type Unsent = ReplyOf<'operatorOutbox'>['unsent'][number]
export type Webhook = ReplyOf<'operatorBacklog'>['webhooks'][number]

/** A state as its look and its word. */
interface Word {
  readonly tone: Tone
  readonly name: string
}

export const findingWords: Readonly<Record<Finding['state'], Word>> = {
  ok: { tone: 'good', name: 'Ok' },
  warning: { tone: 'warn', name: 'Warning' },
  wrong: { tone: 'bad', name: 'Wrong' },
}

export const organisationWords: Readonly<Record<Organisation['state'], Word>> = {
  active: { tone: 'good', name: 'Active' },
  idle: { tone: 'quiet', name: 'Idle' },
  empty: { tone: 'warn', name: 'No member' },
}

export const keyWords: Readonly<Record<KeyTest['status'], Word>> = {
  ok: { tone: 'good', name: 'Works' },
  rejected: { tone: 'bad', name: 'Refused' },
  unreachable: { tone: 'warn', name: 'No answer' },
}

/** Returns what a test of a key has found, in one sentence. */
export function testText({ status, proven, models, why }: KeyTest): string {
  if (status === 'rejected') return 'The provider refuses this key. Set another one and start the gateway again.'
  if (status === 'unreachable') return `The provider could not be asked: ${why ?? 'unknown error'}.`
  if (proven === false) return 'The provider answers. It has no call that would have told a wrong key.'
  return models === null || models === 0
    ? 'The provider accepts this key.'
    : `The provider accepts this key. It reaches ${models} ${models === 1 ? 'model' : 'models'}.`
}

/** Texts of the page Health. */
export const text = {
  title: 'Health',
  intro: 'The state of this installation, for its operators. It shows nothing that an organisation keeps.',
  notOperatorTitle: 'This page is for operators',
  notOperator: 'OPERATOR_EMAILS does not list your address, or this sign-in did not prove it. Ask the person who runs this gateway, or sign in again.',
  doctor: 'Doctor',
  doctorNote: 'What brigade doctor checks',
  doctorAgain: 'Check again',
  fine: (count: number): string => `${count} checks found nothing.`,
  allFindings: 'Checks that found nothing',
  keys: 'Provider keys',
  keysNote: 'Keys of the operator. A test is free.',
  keysNone: 'No provider key is set. Set <PROVIDER>_API_KEY and start the gateway again.',
  testKey: 'Test',
  testOf: (name: string): string => `Test the key at ${name}`,
  untested: 'Not tested since the start',
  maintenance: 'Routes out of use',
  maintenanceNote: 'Calls on own keys use them all the same',
  maintenanceNone: 'Every route may be used.',
  withhold: 'Take a route out of use',
  withholdAbout: 'Calls on the keys of the operator do not use the route until the time is over. A model without another route cannot be called meanwhile.',
  withholdAct: 'Take out of use',
  route: 'Route',
  routePlaceholder: 'provider/model',
  span: 'For',
  spans: [
    { value: '600', label: '10 minutes' },
    { value: '3600', label: 'An hour' },
    { value: '86400', label: 'A day' },
    { value: '604800', label: '7 days' },
  ],
  release: 'Release',
  releaseTitle: 'Release the route?',
  releaseAbout: (route: string): readonly [string, string, string] => ['Calls use ', route, ' again, in every process.'],
  withheldToast: (route: string): string => `${route} is out of use.`,
  releasedToast: (route: string): string => `${route} is in use again.`,
  setBy: { operator: 'by an operator', gateway: 'by the gateway' },
  outbox: 'Outbox of mail',
  outboxOff: 'SMTP_URL is not set, so mail waits.',
  waiting: 'Waiting',
  oldest: 'Oldest',
  dueNow: 'Due now',
  failed: 'Given up in 90 days',
  unsent: 'Mails that were not sent',
  mailState: { waiting: { tone: 'warn', name: 'Waits' }, failed: { tone: 'bad', name: 'Given up' } } as Readonly<Record<Unsent['state'], Word>>,
  backlog: 'Webhook deliveries',
  open: 'To send',
  late: 'Late by',
  dead: 'Given up in a day',
  disabled: 'Endpoints disabled',
  endpoints: 'Endpoints',
  webhooks: 'Endpoints with problems',
  webhooksNone: 'No endpoint has a problem.',
  organisations: 'Organisations',
  organisationsNote: (from: string, to: string): string => `Sums from ${from} to ${to}, in days of India`,
  search: 'Search organisations',
  searchHint: 'Name or id',
  sort: 'Order',
  sorts: { newest: 'Newest first', oldest: 'Oldest first', name: 'By name' },
  noneTitle: 'No organisation fits',
  none: 'No organisation has this name or id.',
  clear: 'Clear the search',
} as const
