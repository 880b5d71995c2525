import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { settings } from '../../src/platform/config.ts'
import { deliver, newPayer } from '../gateway/billing/top-ups.ts'
import { startApp, until } from '../harness/app.ts'
import { TestBrowser } from '../harness/browser.ts'
import { startGithub } from '../harness/github-server.ts'
import { startGoogle } from '../harness/google-server.ts'
import { billingEnv, startPaymentProvider } from '../harness/payment-provider.ts'
import { startPriceServers } from '../harness/price-servers.ts'
import { startS3Server } from '../harness/s3-server.ts'

test('TEST-02 settings can replace object store, identity providers, payment provider, price list and exchange rate by stand-ins; the documents describe the signing secrets', async () => {
  const [google, github, payments, prices, s3] = await Promise.all([startGoogle(), startGithub(), startPaymentProvider(), startPriceServers(), startS3Server()])
  const env = { ...google.env, ...github.env, ...billingEnv(payments), ...prices.env, OUTBOUND_ALLOW: s3.hostPort }
  prices.prices = { data: [{ id: 'somebody/test-model', pricing: { prompt: '0.0000002', completion: '0.000001' } }] }
  const app = await startApp({ env })
  try {
    // The store is set over the API. The setting only permits its private address.
    const store = { endpoint: s3.endpoint, bucket: s3.bucket, access_key: s3.accessKey, secret_key: s3.secretKey }
    expect((await app.call('PUT', '/v1/me/memory-store', store)).status).toBe(200)
    expect((await app.call('PUT', '/v1/me/memory/o?key=agents/notes/a.md', 'kept elsewhere')).status).toBe(200)
    expect([...s3.objects.values()].map(({ bytes }) => bytes.toString())).toContain('kept elsewhere')

    for (const provider of ['google', 'github']) {
      const browser = new TestBrowser()
      await browser.follow(`${app.baseUrl}/auth/${provider}`, url => url === `${app.baseUrl}/me`)
      expect((await browser.open(`${app.baseUrl}/me`)).status, provider).toBe(200)
    }

    const payer = await newPayer(app)
    expect((await payer.verify(payments.checkout(await payer.order(500)))).json).toMatchObject({ credited: true, balance_inr: 500 })
    const captured = payments.webhook('payment.captured', { orderId: await payer.order(100) })
    expect((await deliver(app, { ...captured, headers: { ...captured.headers, 'x-razorpay-signature': '0'.repeat(64) } })).json.error.code).toBe(
      'bad_signature',
    )
    expect((await deliver(app, captured)).status).toBe(200)
    expect((await app.call('GET', '/me/billing', undefined, { cookie: payer.cookie })).json.balance_inr).toBe(600)

    const compare = () => app.call('GET', '/v1/pricing/compare?model=test-model', undefined, { token: null })
    await until(async () => (await compare()).json.models.length > 0)
    expect((await compare()).json).toMatchObject({
      usd_inr: 90,
      models: [{ inputINRPerMtok: 10, compared_with: { inputINRPerMtok: 18, outputINRPerMtok: 90 } }],
    })

    const page = readFileSync(new URL('../../docs/internals/stand-ins.md', import.meta.url), 'utf8').replaceAll('\\|', '|')
    for (const name of Object.keys(env)) {
      expect(Object.keys(settings)).toContain(name)
      expect(page, name).toContain(`\`${name}\``)
    }
    // The page says which secret signs which text, and which header has the signature.
    for (const words of ['HMAC-SHA256', 'order_id|payment_id', 'x-razorpay-signature', 'RAZORPAY_KEY_SECRET', 'RAZORPAY_WEBHOOK_SECRET'])
      expect(page).toContain(words)
  } finally {
    await app.stop()
    await Promise.all([google.stop(), github.stop(), payments.close(), prices.close(), s3.close()])
  }
}, 60_000)
