import type { Command } from 'commander'
import type { ShownFlagged } from '../../../operations/admin/flagged-view.ts'
import { printJson, printLine, printResult, printTable, rupees } from '../../command-output.ts'
import { amount, count, number } from '../../option-values.ts'

type RunAdmin = (command: { name: string; args: Readonly<Record<string, unknown>> }) => Promise<object>
interface JsonFlag {
  readonly json?: boolean
}

interface ShownCredit {
  readonly org_id: number
  readonly balance_inr: number
  readonly payments_configured: boolean
  readonly flagged_payments: readonly ShownFlagged[]
  readonly ledger: readonly { at: string; reason: string; amount_inr: number; balance_after_inr: number; ref: string | null }[]
}
interface ShownPromo {
  readonly code: string
  readonly state: string
  readonly bonus_inr: number
  readonly min_topup_inr: number
  readonly redemptions: number
  readonly max_redemptions: number | null
  readonly expires_at: string | null
}

/** Adds the commands `brigade admin credit …`, `promo …` and `payments …`. `runAdmin` runs a command in the process that owns the database. */
export function addBillingCommands(admin: Command, runAdmin: RunAdmin): void {
  addCreditCommands(admin.command('credit').description('credit that you add or remove, and the rows of a balance'), runAdmin)
  addPaymentCommands(admin.command('payments').description('payments that do not match their order, and what to do with them'), runAdmin)
  addPromoCommands(admin.command('promo').description('codes that add a bonus to a top-up'), runAdmin)
}

function addCreditCommands(credit: Command, runAdmin: RunAdmin): void {
  const withAmount = (command: Command): Command =>
    command
      .requiredOption('--org <id>', 'id of the organisation', count)
      .requiredOption('--inr <inr>', 'rupees', number)
      .requiredOption('--ref <text>', 'what it is for; the organisation reads it in its ledger, and the same ref moves money once')
      .option('--json', 'print JSON')
  withAmount(credit.command('grant').description('give an organisation credit; its trial keys become standard keys')).action(
    async ({ json, ...args }: JsonFlag) => printResult(await runAdmin({ name: 'credit-grant', args }), json === true),
  )
  withAmount(credit.command('correct').description('put a balance right: --inr=-50 takes ₹50 away')).action(async ({ json, ...args }: JsonFlag) =>
    printResult(await runAdmin({ name: 'credit-correct', args }), json === true),
  )
  credit
    .command('show')
    .description('balance and the newest rows of the ledger')
    .requiredOption('--org <id>', 'id of the organisation', count)
    .option('--limit <n>', 'rows, at most 1000 (default 20)', count)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: JsonFlag) => {
      const shown = (await runAdmin({ name: 'credit-show', args })) as ShownCredit
      if (json === true) printJson(shown)
      else printCredit(shown)
    })
}

function printCredit({ org_id: orgId, balance_inr: balance, payments_configured: isOn, flagged_payments: flagged, ledger }: ShownCredit): void {
  printLine(`organisation ${orgId}: ₹${rupees([balance])[0]}${isOn ? '' : ' (payments are not configured, so no call checks it)'}`)
  if (flagged.length > 0) printLine(`payments to look at: ${flagged.length}, see brigade admin payments flagged --org ${orgId}`)
  if (ledger.length === 0) {
    printLine('the ledger is empty')
    return
  }
  // Both columns have the same number of decimals, so that a change of less than a paisa is visible.
  const shown = rupees(ledger.flatMap(row => [row.amount_inr, row.balance_after_inr]))
  printTable(
    [{ head: 'AT' }, { head: 'WHY' }, { head: '₹', align: 'right' }, { head: 'BALANCE ₹', align: 'right' }, { head: 'REF' }],
    ledger.map((row, at) => [row.at, row.reason, shown[2 * at] ?? '', shown[2 * at + 1] ?? '', row.ref ?? '']),
  )
}

function addPaymentCommands(payments: Command, runAdmin: RunAdmin): void {
  payments
    .command('flagged')
    .description('what was paid and not credited, why, and what to do')
    .option('--org <id>', 'of this organisation only', count)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: JsonFlag) => {
      const shown = (await runAdmin({ name: 'payments-flagged', args })) as { payments: readonly ShownFlagged[] }
      if (json === true) printJson(shown)
      else printFlagged(shown.payments)
    })
  payments
    .command('credit')
    .description('credit a flagged payment after all, with an invoice over what was paid')
    .requiredOption('--payment <id>', 'id of the payment')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: JsonFlag) => printResult(await runAdmin({ name: 'payments-credit', args }), json === true))
  payments
    .command('settle')
    .description('take a payment off the list: you have given the money back, or put the balance right')
    .requiredOption('--payment <id>', 'id of the payment')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: JsonFlag) => printResult(await runAdmin({ name: 'payments-settle', args }), json === true))
}

function addPromoCommands(promo: Command, runAdmin: RunAdmin): void {
  promo
    .command('create')
    .description('make a code; each organisation uses it once, with a top-up')
    .requiredOption('--code <code>', '3 to 32 letters, digits and dashes; capitals make no difference')
    .requiredOption('--bonus-inr <inr>', 'the bonus on a top-up', amount)
    .option('--min-topup-inr <inr>', 'the smallest top-up that gets it', amount)
    .option('--max-redemptions <n>', 'organisations that may use it', count)
    .option('--expires-at <time>', '2026-12-31, to the end of that day in India, or 2026-12-31T18:00:00+05:30')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: JsonFlag) => printResult(await runAdmin({ name: 'promo-create', args }), json === true))
  promo
    .command('list')
    .description('all codes, newest first')
    .option('--json', 'print JSON')
    .action(async ({ json }: JsonFlag) => {
      const shown = (await runAdmin({ name: 'promo-list', args: {} })) as { promos: readonly ShownPromo[] }
      if (json === true) printJson(shown)
      else printPromos(shown.promos)
    })
  promo
    .command('end')
    .description('end a code; orders that were made with it are credited without a bonus')
    .requiredOption('--code <code>', 'the code')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: JsonFlag) => printResult(await runAdmin({ name: 'promo-end', args }), json === true))
}

function printPromos(promos: readonly ShownPromo[]): void {
  if (promos.length === 0) {
    printLine('there is no promo code')
    return
  }
  const bonuses = rupees(promos.map(promo => promo.bonus_inr))
  const least = rupees(promos.map(promo => promo.min_topup_inr))
  printTable(
    [
      { head: 'CODE' },
      { head: 'STATE' },
      { head: 'BONUS ₹', align: 'right' },
      { head: 'FROM ₹', align: 'right' },
      { head: 'USED', align: 'right' },
      { head: 'EXPIRES' },
    ],
    promos.map(({ code, state, redemptions, max_redemptions: most, expires_at: expires }, at) => [
      code,
      state,
      bonuses[at] ?? '',
      least[at] ?? '',
      most === null ? String(redemptions) : `${redemptions} of ${most}`,
      expires ?? 'never',
    ]),
  )
}

/** Prints each payment in three lines. */
function printFlagged(payments: readonly ShownFlagged[]): void {
  if (payments.length === 0) printLine('no payment is flagged')
  for (const { payment_id: id, org_id: orgId, at, amount, currency, why, what_to_do: todo } of payments) {
    printLine(`${id}  organisation ${orgId}  ${currency} ${currency === 'INR' ? (amount / 100).toFixed(2) : `${amount} (smallest units)`}  ${at}`)
    printLine(`  why: ${why}`)
    printLine(`  do:  ${todo}`)
  }
}
