import type { ReplyOf } from '../../api/call.ts'
import type { Tone } from '../../ui/data/status.tsx'
import { money } from '../../ui/format/numbers.ts'

/** Texts of billing. */
export const text = {
  title: 'Billing',
  intro: 'The balance pays for calls on the keys of the gateway. Calls on your own provider keys take nothing from it.',
  ownersOnly: 'Owners pay and change billing.',
  tabs: { balance: 'Balance', invoices: 'Invoices', details: 'Details' },
  topUp: 'Top up',
  balance: 'Balance',
  threshold: 'Low below',
  noThreshold: 'no notice',
  spent: 'Spent in 30 days',
  calls: 'Calls in 30 days',
  ledger: 'Ledger',
  ledgerEmpty: 'No movement yet',
  ledgerHint: 'A top-up is the first one.',
  payments: 'Payments',
  columns: { what: 'What', reference: 'Reference', amount: 'Amount', after: 'Balance after', time: 'When', payment: 'Payment', state: 'State', bonus: 'Bonus' },
  reasons: {
    usage: 'Calls',
    topup: 'Top-up',
    promo: 'Bonus of a code',
    grant: 'Credit of the operator',
    correction: 'Correction',
    refund: 'Refund',
    chargeback: 'Chargeback',
  } satisfies Record<Entry['reason'], string> as Readonly<Record<Entry['reason'], string>>,
  invoices: {
    title: 'Invoices',
    empty: 'No invoice yet',
    hint: 'Each top-up has one.',
    columns: { number: 'Number', date: 'Date', taxable: 'Taxable', tax: 'Tax', total: 'Total', open: '' },
    open: 'Invoice',
    receipt: 'Receipt',
  },
  top: {
    title: 'Top up',
    amount: 'Amount in rupees',
    amountHint: 'Whole rupees, from 100 to 1,00,000, tax included.',
    amountError: 'Type whole rupees, from 100 to 100000.',
    promo: 'Promo code',
    check: 'Check the code',
    bonus: (inr: number): string => `The code brings ${money(inr)} more.`,
    needsAddress: 'Set the billing address first: it is on the invoice.',
    address: 'Set the address',
    pay: 'Pay in a new tab',
    about: 'The payment opens on a page of its own, because the program of the payment provider does not run inside the console. Come back here afterwards.',
  },
  address: {
    title: 'Billing address',
    none: 'No address yet.',
    name: 'Person or company',
    line1: 'Street',
    line2: 'Second line',
    pin: 'PIN code',
    pinHint: 'Six digits. City and state are filled in.',
    pinUnknown: 'This PIN code is not known. Type city and state.',
    city: 'City',
    state: 'State',
    save: 'Save the address',
    saved: 'The address is on invoices from now on.',
  },
  profile: {
    title: 'On invoices',
    legal: 'Legal name',
    email: 'Mail address for bills',
    gstin: 'GSTIN',
    gstinOff: 'The operator accepts no GSTIN yet.',
    check: 'Check the GSTIN',
    valid: (state: string, pan: string): string => `It has a valid form: ${state}, PAN ${pan}.`,
    save: 'Save',
    saved: 'Saved. It applies to the next invoice.',
    none: '–',
  },
  low: {
    title: 'Low balance',
    about: 'Owners get a mail, and webhooks an event, when the balance falls below it.',
    field: 'Notice below',
    none: 'No notice',
    save: 'Save',
    saved: 'Saved.',
  },
} as const

type Entry = ReplyOf<'billing'>['ledger'][number]
type Payment = ReplyOf<'billing'>['payments'][number]

/** The state of a payment, in words. */
export const paymentShown: Readonly<Record<Payment['status'], { readonly tone: Tone; readonly word: string; readonly means: string }>> = {
  captured: { tone: 'good', word: 'Credited', means: 'The amount is on the balance, and the invoice is made.' },
  failed: { tone: 'bad', word: 'Failed', means: 'The provider took nothing.' },
  flagged: { tone: 'warn', word: 'Being checked', means: 'It does not match its order. The operator decides.' },
  settled: { tone: 'quiet', word: 'Settled', means: 'The operator settled it without a credit.' },
}
