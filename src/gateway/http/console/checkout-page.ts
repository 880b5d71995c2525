/**
 * The page on which an owner pays a top-up, at /console/checkout. The checkout of the payment provider is a program of another origin, so it runs here and never
 * inside the console. The policy of this page lets it reach the provider, and of this gateway only the two addresses of an order. Decision 0890 says why.
 */
import { type Reply, reply } from '../../../platform/endpoint.ts'
import { escapeHtml, page } from '../../access/pages/page-frame.ts'

export const checkoutPath = '/console/checkout'
export const checkoutScriptPath = '/console/checkout.js'

const provider = 'https://checkout.razorpay.com'
const providerApi = 'https://api.razorpay.com'
const uncached = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

const policyOf = (origin: string): string =>
  [
    "default-src 'none'",
    `script-src ${origin}${checkoutScriptPath} ${provider}`,
    // The checkout sets styles of its own elements. A style cannot read or send anything that this policy does not allow.
    "style-src 'unsafe-inline'",
    `connect-src ${origin}/me/billing/orders ${origin}/me/billing/verify ${provider} ${providerApi} https://lumberjack.razorpay.com`,
    `frame-src ${provider} ${providerApi}`,
    'img-src data: https://*.razorpay.com',
    `form-action ${providerApi}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

/** Returns the page for the amount and the code in a query. The gateway checks both again when the order is made. */
export function checkoutPage(query: URLSearchParams, baseUrl: string): Reply {
  const amount = /^\d{1,6}$/.test(query.get('amount') ?? '') ? Number(query.get('amount')) : 0
  const promo = (query.get('promo') ?? '').slice(0, 200)
  const code = promo === '' ? '' : `<p>With the code <strong>${escapeHtml(promo)}</strong>.</p>`
  const body = `<p>You pay <strong>₹${amount}</strong>, tax included. The payment opens in a window of the payment provider.</p>${code}
<button id="pay" data-amount="${amount}" data-promo="${escapeHtml(promo)}">Pay ₹${amount}</button>
<p id="said" role="status"></p><p><a href="/console/billing">Back to billing</a></p>
<script src="${provider}/v1/checkout.js"></script><script src="${checkoutScriptPath}"></script>`
  return page('Top up', body, 200, {
    ...uncached,
    'content-security-policy': policyOf(new URL(baseUrl).origin),
    'referrer-policy': 'strict-origin',
    // Banks open windows. The console keeps its own group of windows, so nothing here reaches it.
    'cross-origin-opener-policy': 'same-origin-allow-popups',
  })
}

const script = `const button = document.querySelector('#pay')
const said = document.querySelector('#said')
const post = async (path, body) => {
  const reply = await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const json = await reply.json().catch(() => ({}))
  if (!reply.ok) throw new Error(json.error?.message ?? 'The gateway answered ' + reply.status + '.')
  return json
}
const say = text => {
  said.textContent = text
  button.disabled = false
}
const proven = async paid => {
  try {
    const { balance_inr: balance, reason } = await post('/me/billing/verify', paid)
    say(reason ? 'The payment is held for the operator: ' + reason + '.' : 'Paid. Your balance is ₹' + balance + '.')
    if (!reason) button.remove()
  } catch (error) {
    say(error.message + ' If you paid, the balance grows within minutes.')
  }
}
button.onclick = async () => {
  button.disabled = true
  said.textContent = ''
  try {
    if (typeof Razorpay !== 'function') throw new Error('The checkout of the payment provider did not load. Nothing was paid.')
    const { amount: rupees, promo } = button.dataset
    const order = await post('/me/billing/orders', { amount_inr: Number(rupees), ...(promo ? { promo_code: promo } : {}) })
    const { key_id: key, order_id, amount, currency } = order
    const modal = { ondismiss: () => say('Nothing was paid.') }
    new Razorpay({ key, order_id, amount, currency, name: 'Brigade', handler: proven, modal }).open()
  } catch (error) {
    say(error.message)
  }
}
`

/** Returns the program of the page. */
export const checkoutScript = (): Reply => reply.text(script, 'text/javascript; charset=utf-8', uncached)
