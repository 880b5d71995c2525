import type { Tx } from '../../../platform/db/db.ts'
import { GatewayError } from '../../../platform/errors.ts'
import type { Mail } from '../../mail/mail.ts'
import { receiptReaders } from './receipt-queries.ts'
import { longDay, rupeesOf } from './tax/indian-money.ts'
import { paiseOf } from './tax/invoice-tax.ts'

export interface PaidTopUp {
  readonly orgId: number
  readonly paymentId: string
  readonly amountUinr: bigint
  /** The time of the capture. */
  readonly at: Date
  readonly invoiceNumber: string
  /** Name of the seller on the invoice. */
  readonly seller: string
  /** Public base URL of this gateway, for the link to the invoice. */
  readonly baseUrl: string
}

/**
 * Sends the mail about a payment to every owner and to the organisation's billing address. Each recipient gets it once, even if the payment is
 * reported repeatedly. An invalid address does not prevent the credit.
 */
export async function enqueueReceipt(
  tx: Tx,
  mail: Pick<Mail, 'enqueue'>,
  { orgId, paymentId, amountUinr, at, invoiceNumber, seller, baseUrl }: PaidTopUp,
): Promise<void> {
  const path = `/me/invoices/${encodeURIComponent(paymentId)}`
  for (const { email, orgName, reader } of await tx.many(receiptReaders, orgId)) {
    const letter = {
      orgId,
      to: email,
      template: 'receipt',
      data: {
        orgName,
        amount: rupeesOf(paiseOf(amountUinr)),
        paymentId,
        invoiceNumber,
        seller,
        paidOn: longDay(at.getTime()),
        link: `${baseUrl}/auth?return_to=${encodeURIComponent(path)}`,
      },
      onceKey: `receipt:${paymentId}:${reader}`,
    } as const
    await mail.enqueue(tx, letter).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
    })
  }
}
