import type { Reply } from '../../../../platform/endpoint.ts'
import type { BuyerSnapshot, SellerSnapshot } from '../invoice-parties.ts'
import type { ReceiptRow } from '../receipt-queries.ts'
import { longMinute, rupeesOf } from '../tax/indian-money.ts'
import { paiseOf } from '../tax/invoice-tax.ts'
import { type Html, html } from './html-text.ts'
import { fact, printable, typed } from './printable.ts'

/** A captured payment with the seller and buyer of its invoice. */
export interface Receipt extends Omit<ReceiptRow, 'seller' | 'buyer'> {
  readonly seller: SellerSnapshot
  readonly buyer: BuyerSnapshot
}

/** Returns the page of a receipt for a payment. */
export function receiptPage({ paymentId, orderId, amountUinr, bonusUinr, method, capturedAt, invoiceNumber, seller, buyer }: Receipt): Reply {
  const paidAt = longMinute(capturedAt.getTime())
  return printable(
    `Receipt ${paymentId}`,
    html`<header class="top">
<address class="seller"><strong>${typed(seller.name)}</strong>${seller.lines.map(line => html`${typed(line)}<br>`)}${seller.gstin === null ? null : `GSTIN: ${seller.gstin}`}</address>
<div class="kind"><h1>Receipt</h1></div>
</header>
<section class="paid">
<h2>Amount paid</h2>
<p class="figure">${rupeesOf(paiseOf(amountUinr))}</p>
<p>${methodText(method)}, ${paidAt}</p>
</section>
<dl class="table">
${fact('Payment id', paymentId)}
${fact('Order id', orderId)}
${fact('Amount', rupeesOf(paiseOf(amountUinr)))}
${fact('Payer', typed(buyer.name))}
${fact('Address', addressOf(buyer))}
${fact('Method', methodText(method))}
${fact('Paid at', paidAt)}
${bonusUinr > 0n ? fact('Bonus credit', `${rupeesOf(bonusUinr / uinrPerPaisa)} from a promo code, on top of the amount paid`) : null}
${fact('Invoice', html`<a href="/me/invoices/${encodeURIComponent(paymentId)}">${invoiceNumber}</a>`)}
</dl>
<footer class="foot"><p>This receipt confirms the payment. It is not the invoice; that is ${invoiceNumber}.</p></footer>`,
  )
}

const uinrPerPaisa = 10_000n

function addressOf({ attention, lines, state }: BuyerSnapshot): Html | string {
  const all = [attention, ...lines, state].filter(line => line !== null)
  return all.length === 0 ? 'None was given' : html`${all.map((line, at) => html`${at === 0 ? null : html`<br>`}${typed(line)}`)}`
}

const methods: Readonly<Record<string, string>> = {
  upi: 'UPI',
  card: 'Card',
  netbanking: 'Net banking',
  wallet: 'Wallet',
  emi: 'EMI',
  cardless_emi: 'Cardless EMI',
  paylater: 'Pay later',
  bank_transfer: 'Bank transfer',
}

/** Returns the payment method in words. Returns the payment provider's own word for an unknown method. */
function methodText(method: string | null): string {
  if (method === null) return 'Online payment'
  return Object.hasOwn(methods, method) ? (methods[method] ?? method) : method
}
