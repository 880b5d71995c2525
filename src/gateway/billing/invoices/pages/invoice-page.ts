import type { Reply } from '../../../../platform/endpoint.ts'
import { type BuyerSnapshot, type InvoiceDocument, type SellerSnapshot, stateOfGstin } from '../invoice-parties.ts'
import { amountInWords } from '../tax/amount-in-words.ts'
import { isTerritory, stateName } from '../tax/gst-states.ts'
import { groupedRupees, longDay, rupeesOf } from '../tax/indian-money.ts'
import { type Html, html } from './html-text.ts'
import { fact, printable, typed } from './printable.ts'

/**
 * Returns the page of an issued invoice. When the seller is registered, the page has the particulars of Rule 46 of the CGST Rules. An unregistered
 * seller may not charge tax or issue a tax invoice, and the page says so.
 */
export function invoicePage(invoice: InvoiceDocument): Reply {
  const { number, issuedAt, paymentId, seller, buyer, placeOfSupply } = invoice
  const isTaxInvoice = seller.gstin !== null
  const title = isTaxInvoice ? 'Tax invoice' : 'Invoice'
  return printable(
    `${title} ${number}`,
    html`<header class="top">
${sellerBlock(seller)}
<div class="kind"><h1>${title}</h1><p class="mark">Original for recipient</p></div>
</header>
<dl class="facts">
${fact('Invoice number', number)}
${fact('Invoice date', longDay(issuedAt.getTime()))}
${fact('Payment', paymentId)}
${isTaxInvoice ? fact('Reverse charge', 'No') : null}
</dl>
<section class="parties">
<div class="party"><h2>Billed to</h2>${buyerBlock(buyer)}</div>
${placeOfSupply === '' ? null : html`<div class="party"><h2>Place of supply</h2><strong>${stateText(placeOfSupply)}</strong></div>`}
</section>
${itemTable(invoice)}
${sums(invoice)}
<footer class="foot">
<p>${
      isTaxInvoice
        ? 'Tax is not payable on reverse charge. Taxes are rounded to the nearest paisa; the taxable value takes up the difference, so the parts are the total exactly.'
        : 'The seller is not registered under GST. No tax is charged on this invoice and none is contained in its amount.'
    }</p>
<p>Issued electronically under the Information Technology Act, 2000. No signature is required.</p>
</footer>`,
  )
}

function sellerBlock({ name, lines, gstin }: SellerSnapshot): Html {
  const state = stateOfGstin(gstin)
  return html`<address class="seller"><strong>${typed(name)}</strong>${lines.map(line => html`${typed(line)}<br>`)}${
    gstin === null || state === null ? null : html`GSTIN: ${gstin}<br>State: ${stateText(state)}`
  }</address>`
}

function buyerBlock({ name, attention, lines, state, stateCode, country, gstin }: BuyerSnapshot): Html {
  const stateLine =
    state === null || stateCode === null ? null : html`${typed(state)} (${stateCode})${country === null ? null : `, ${countryName(country)}`}<br>`
  return html`<address><strong>${typed(name)}</strong>${attention === null ? null : html`${typed(attention)}<br>`}${lines.map(
    line => html`${typed(line)}<br>`,
  )}${stateLine}${gstin === null ? null : `GSTIN: ${gstin}`}</address>`
}

function itemTable({ item, taxablePaise }: InvoiceDocument): Html {
  const amount = item.gstPercent === 0 ? 'Amount (₹)' : 'Taxable value (₹)'
  return html`<table>
<thead><tr><th scope="col">Description of service</th><th scope="col" class="code">SAC</th><th scope="col" class="amount">${amount}</th></tr></thead>
<tbody><tr><td>${item.description}</td><td class="code">${item.sac}</td><td class="amount">${groupedRupees(taxablePaise)}</td></tr></tbody>
</table>`
}

function sums(invoice: InvoiceDocument): Html {
  const { totalPaise, issuedAt } = invoice
  return html`<section class="sums">
<div class="words"><h2>Total in words</h2><p>${amountInWords(totalPaise)}</p><h2>Payment</h2><p>Paid in full on ${longDay(issuedAt.getTime())}</p></div>
<dl>${taxLines(invoice)}<div class="total"><dt>Total</dt><dd>${rupeesOf(totalPaise)}</dd></div></dl>
</section>`
}

function taxLines({ item, placeOfSupply, taxablePaise, cgstPaise, sgstPaise, igstPaise, kind }: InvoiceDocument): Html[] {
  if (kind === 'none') return []
  const taxable = fact('Taxable value', rupeesOf(taxablePaise))
  if (kind === 'inter') return [taxable, fact(`IGST ${item.gstPercent} %`, rupeesOf(igstPaise))]
  const half = item.gstPercent / 2
  return [taxable, fact(`CGST ${half} %`, rupeesOf(cgstPaise)), fact(`${isTerritory(placeOfSupply) ? 'UTGST' : 'SGST'} ${half} %`, rupeesOf(sgstPaise))]
}

function stateText(code: string): string {
  const name = stateName(code)
  return name === null ? code : `${name} (${code})`
}

function countryName(code: string): string {
  return code === 'IN' ? 'India' : code
}
