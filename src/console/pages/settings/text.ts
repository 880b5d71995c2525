import { askSentence } from '../../app/whom-to-ask.ts'
import { dateText } from '../../ui/format/dates.ts'

/** Texts of the settings of the organisation. */
export const text = {
  title: 'Settings',
  intro: 'What holds for the whole organisation.',
  membersTitle: 'Owners and admins see the settings',
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
