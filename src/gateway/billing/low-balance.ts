/**
 * The word that money runs out. It is told once when the balance falls below the threshold of the organisation, and again only after
 * a credit has lifted it to the threshold or above, or the threshold was set anew. Mail goes out at most once in 24 hours.
 */
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import { GatewayError } from '../../platform/errors.ts'
import type { Ids } from '../../platform/ids.ts'
import { inrFromUinr } from '../../platform/money.ts'
import type { Mail } from '../mail/mail.ts'
import { emit, eventId } from '../webhooks/events.ts'
import { rupeesOf } from './indian-money.ts'
import { armAgain, type LowRow, markLow } from './low-balance-queries.ts'
import { receiptReaders } from './receipt-queries.ts'

export interface LowBalanceDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly mail: Pick<Mail, 'enqueue'>
  readonly baseUrl: () => string
}

/** What an organisation has left after its balance fell. */
export interface FallenBalance {
  readonly orgId: number
  readonly balanceUinr: bigint
}

/** To be called in the transaction that took the money, which holds the prepaid counters of these organisations. Each at most once in the list. */
export type OnDebited = (tx: Tx, fallen: readonly FallenBalance[]) => Promise<void>

const mailPauseMs = 24 * 3600_000

/** Tells of balances that fell below their threshold. One statement for all of them while none did. */
export function onDebitedOf(deps: LowBalanceDeps): OnDebited {
  return async (tx, fallen) => {
    if (fallen.length === 0) return
    const nowMs = deps.clock.nowMs()
    const orgIds = fallen.map(({ orgId }) => orgId)
    const balances = fallen.map(({ balanceUinr }) => balanceUinr)
    const low = await tx.many(markLow, orgIds, balances, new Date(nowMs), new Date(nowMs - mailPauseMs))
    for (const row of low) await tell(deps, tx, row, nowMs)
  }
}

/** Arms the word again when a credit has lifted the balance to the threshold or above. In the transaction of the credit. */
export async function rearmLowBalance(tx: Tx, orgId: number, balanceUinr: bigint): Promise<void> {
  await tx.exec(armAgain, orgId, balanceUinr)
}

async function tell({ ids, mail, baseUrl }: LowBalanceDeps, tx: Tx, row: LowRow, nowMs: number): Promise<void> {
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
    // An address that takes no mail must not hold up the flush: the event is told all the same.
    await mail.enqueue(tx, letter).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
    })
  }
}

/** For people, with paise: rounded down, so that nobody is told of more than there is. */
function rupees(uinr: bigint): string {
  const uinrPerPaisa = 10_000n
  return uinr >= 0n ? rupeesOf(uinr / uinrPerPaisa) : `-${rupeesOf((uinrPerPaisa - 1n - uinr) / uinrPerPaisa)}`
}
