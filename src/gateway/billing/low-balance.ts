/**
 * Sends the low-balance warning. It is sent once when the balance falls below the threshold of the organisation. It is sent again only after a credit has
 * raised the balance to the threshold or above, or after the threshold was changed. The gateway sends at most one such mail in 24 hours.
 */
import type { Clock } from '../../platform/clock.ts'
import { statement, type Tx } from '../../platform/db/db.ts'
import { GatewayError } from '../../platform/errors.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { Mail } from '../mail/mail.ts'
import { emit, eventId } from '../webhooks/events/events.ts'
import { receiptReaders } from './invoices/receipt-queries.ts'
import { rupeesOf } from './invoices/tax/indian-money.ts'

export interface LowBalanceDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly mail: Pick<Mail, 'enqueue'>
  readonly baseUrl: () => string
}

/** The balance of an organisation after it fell. */
export interface FallenBalance {
  readonly orgId: number
  readonly balanceUinr: bigint
}

/**
 * Call this in the transaction that took the money. The transaction holds the locks on the prepaid counters of these organisations. The list names
 * each organisation at most once.
 */
export type OnDebited = (tx: Tx, fallen: readonly FallenBalance[]) => Promise<void>

const mailPauseMs = 24 * 3600_000

/** Makes the function that sends the warnings for balances below their threshold. It costs one statement when there is nothing to send. */
export function onDebitedOf(deps: LowBalanceDeps): OnDebited {
  return async (tx, fallen) => {
    if (fallen.length === 0) return
    const nowMs = deps.clock.nowMs()
    const orgIds = fallen.map(({ orgId }) => orgId)
    const balances = fallen.map(({ balanceUinr }) => balanceUinr)
    const low = await tx.many(markLow, orgIds, balances, new Date(nowMs), new Date(nowMs - mailPauseMs))
    for (const row of low) await notify(deps, tx, row, nowMs)
  }
}

/** Arms the warning again when a credit has raised the balance to the threshold or above. Call it in the transaction of the credit. */
export async function rearmLowBalance(tx: Tx, orgId: number, balanceUinr: bigint): Promise<void> {
  await tx.exec(armAgain, orgId, balanceUinr)
}

async function notify({ ids, mail, baseUrl }: LowBalanceDeps, tx: Tx, row: LowRow, nowMs: number): Promise<void> {
  const { orgId, balanceUinr, thresholdUinr, mailDue } = row
  await emit(tx, {
    id: eventId(ids, nowMs),
    orgId,
    type: 'credit.low',
    atMs: nowMs,
    data: { balance_inr: inrFromUinr(balanceUinr), threshold_inr: inrFromUinr(thresholdUinr) },
  })
  if (!mailDue) return
  const link = `${baseUrl()}/auth?return_to=%2Fme%2Fbilling`
  for (const { email, reader, orgName } of await tx.many(receiptReaders, orgId)) {
    const letter = {
      orgId,
      to: email,
      template: 'low_balance',
      data: { orgName, balance: rupees(balanceUinr), threshold: rupees(thresholdUinr), link },
      onceKey: `low_balance:${orgId}:${nowMs}:${reader}`,
    } as const
    // An invalid address must not prevent the flush. The event is sent anyway.
    await mail.enqueue(tx, letter).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
    })
  }
}

/** Formats an amount for people, with paise. It rounds down, so that no message shows more than the balance. */
function rupees(uinr: bigint): string {
  const uinrPerPaisa = 10_000n
  return uinr >= 0n ? rupeesOf(uinr / uinrPerPaisa) : `-${rupeesOf((uinrPerPaisa - 1n - uinr) / uinrPerPaisa)}`
}

export interface LowRow {
  readonly orgId: number
  readonly balanceUinr: bigint
  readonly thresholdUinr: bigint
  /** True when the last mail is old enough that this warning is also sent by mail. */
  readonly mailDue: boolean
}

/**
 * Marks and returns those of the given organisations that are armed and whose balance is below their threshold. When two flushes see the same fall of
 * a balance, one of them marks the row. The other waits for the row's lock and then finds the row marked.
 */
const markLow = statement<[orgIds: readonly number[], balances: readonly bigint[], at: Date, mailedBefore: Date], LowRow>(
  'billing.mark_low',
  `with low as (
     select a.org_id, a.low_balance_threshold_uinr, f.balance, a.low_mailed_at is null or a.low_mailed_at <= $4::timestamptz as mail_due
     from unnest($1::int[], $2::bigint[]) as f(org_id, balance) join billing_accounts a on a.org_id = f.org_id
     where a.low_since is null and f.balance < a.low_balance_threshold_uinr
     order by a.org_id for no key update of a)
   update billing_accounts a set low_since = $3::timestamptz, low_mailed_at = case when low.mail_due then $3::timestamptz else a.low_mailed_at end
   from low where a.org_id = low.org_id
   returning a.org_id as "orgId", low.balance as "balanceUinr", low.low_balance_threshold_uinr as "thresholdUinr",
     low.mail_due as "mailDue"`,
)

const armAgain = statement<[orgId: number, balanceUinr: bigint]>(
  'billing.arm_again',
  `update billing_accounts set low_since = null
   where org_id = $1::int and low_since is not null and (low_balance_threshold_uinr is null or $2::bigint >= low_balance_threshold_uinr)`,
)
