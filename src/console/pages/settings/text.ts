import { askSentence } from '../../app/whom-to-ask.ts'
import { dateText } from '../../ui/format/dates.ts'

/** Texts of the settings of the organisation. */
export const text = {
  title: 'Settings',
  intro: 'What holds for the whole organisation, and for you.',
  introMember: 'What holds for you. Owners and admins set what holds for the organisation.',
  members: (owners: readonly string[]): string => askSentence(owners),
  currencyTitle: 'Currency beside rupees',
  currencyAbout: 'Reports and the console show it beside rupees. Budgets, balances and invoices stay in rupees.',
  shown: 'Amounts are shown in',
  currency: 'Currency',
  currencyHint: 'A code such as USD. The operator of the gateway sets the rates.',
  rupeesOnly: 'Rupees only',
  other: 'Rupees and another currency',
  currencyError: 'Type the three letters of a currency, such as USD.',
  rate: (currency: string, rate: string, asOf: string): string => `1 ${currency} is ₹${rate}, as of ${dateText(asOf)}.`,
  noRate: 'The operator has no rate for this currency any more, so only rupees are shown.',
  save: 'Save',
  currencySaved: (currency: string | null): string => (currency === null ? 'Amounts are shown in rupees only.' : `Amounts are shown in ${currency} too.`),
  zoneTitle: 'Time zone of budgets',
  zoneAbout: 'Budgets of a day, a week and a month begin and end by it. Reports stay in Indian time.',
  zone: 'Time zone',
  zoneHint: 'A name such as Europe/Berlin. The running day, week and month keep their zone until they end.',
  zoneSaved: (zone: string): string => `New days, weeks and months of budgets follow ${zone}.`,
  ownersOnly: 'Owners change it.',
  ends: { month: 'This month ends', week: 'This week ends', day: 'This day ends' },
} as const

/** Texts of the sessions of the person. */
export const sessionText = {
  title: 'Where you are signed in',
  note: 'Your own sessions, in every organisation.',
  columns: { browser: 'Browser', org: 'Organisation', created: 'Signed in', used: 'Last used', ends: 'Ends' },
  browsers: {
    edge: 'Edge',
    opera: 'Opera',
    samsung: 'Samsung Internet',
    firefox: 'Firefox',
    chrome: 'Chrome',
    safari: 'Safari',
    curl: 'curl',
    other: 'Another program',
  },
  current: 'This one',
  end: 'End',
  endTitle: 'End a session',
  endAbout: (browser: string): string => `${browser} is signed out within a second.`,
  ended: 'The session is ended.',
  endOthers: 'End all others',
  othersAbout: 'Every other browser and terminal is signed out within a second. This one stays.',
  othersEnded: (many: number): string => (many === 1 ? '1 session is ended.' : `${many} sessions are ended.`),
} as const

/** Texts of names and of unused keys. */
export const nameText = {
  save: 'Save',
  saved: 'Saved.',
  ownTitle: 'Your name',
  own: 'Name',
  ownHint: (email: string): string => `Others see it beside ${email}.`,
  orgTitle: 'Organisation',
  org: 'Name of the organisation',
  orgHint: 'It is on invitations, invoices and reports.',
  inactivityTitle: 'Unused keys',
  inactivityAbout: 'A key that nobody uses is a risk. Its owner is notified before, and can keep it.',
  inactivity: 'A key without use is',
  inactivityKinds: [
    { value: 'never', label: 'Never disabled' },
    { value: 'days', label: 'Disabled after some days' },
  ],
  days: 'Days without use',
} as const
