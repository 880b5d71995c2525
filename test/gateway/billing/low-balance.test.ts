/** The low-balance warning: real calls spend the balance, real top-ups raise it, and the owners are notified once. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { onDebitedOf } from '../../../src/gateway/billing/low-balance.ts'
import { Mail } from '../../../src/gateway/mail/mail.ts'
import { renderMail } from '../../../src/gateway/mail/templates.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { longThinkers, usageWorth } from '../../harness/long-thinkers.ts'
import { billingEnv, type PaymentProvider, startPaymentProvider } from '../../harness/payment-provider.ts'
import { newPayer, notify, type Payer } from './top-ups.ts'

const lowEvents = statement<[orgId: number], { data: { balance_inr: number; threshold_inr: number } }>(
  'test.low_events',
  `select data as "data" from webhook_events where org_id = $1::int and type = 'credit.low' order by seq`,
)
const lowMails = statement<[orgId: number], { to: string; data: Record<string, string> }>(
  'test.low_mails',
  `select to_address as "to", data as "data" from emails where org_id = $1::int and template = 'low_balance' order by id`,
)
const setMailedEarlier = statement<[orgId: number]>(
  'test.set_mailed_earlier',
  `update billing_accounts set low_mailed_at = null, low_since = null where org_id = $1::int`,
)

const hourMs = 3600_000
const clock = movableClock()
let app: TestApp
let provider: PaymentProvider

beforeAll(async () => {
  provider = await startPaymentProvider()
  app = await startApp({ env: billingEnv(provider), clock, operatorFile: urls => longThinkers(urls) })
})
afterAll(async () => {
  await app.stop()
  await provider.close()
})
beforeEach(() => {
  // One call costs ₹40.
  app.alpha.script(() => ({ usage: usageWorth(40) }))
})

const events = async (orgId: number) => (await app.db.many(lowEvents, orgId)).map(({ data }) => data)
const mails = (orgId: number) => app.db.many(lowMails, orgId)

async function setThreshold(payer: Payer, inr: number | null, cookie = payer.cookie): Promise<void> {
  const set = await app.call('POST', '/me/billing/settings', { low_balance_threshold_inr: inr }, { cookie })
  expect(set.status).toBe(200)
}

async function keyOf(payer: Payer): Promise<string> {
  const base = { workspaceId: null, name: 'caller', scope: 'full', rpmLimit: null, dailyLimit: null } as const
  return (await app.gateway.app.keys.create({ orgId: payer.orgId, userId: payer.userId, ...base })).key
}

async function topUp(payer: Payer, inr: number): Promise<void> {
  const orderId = await payer.order(inr)
  expect((await notify(app, provider, 'payment.captured', { orderId })).status).toBe(200)
}

/** Spends ₹40 and waits until the charge is written. */
async function spend(key: string): Promise<void> {
  const reply = await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'hello' }] }, { token: key })
  expect(reply.status).toBe(200)
  await app.gateway.app.limits.flushNow()
}

describe('a low balance', () => {
  test('BILL-15 when a call takes the balance below the threshold, owners and the billing address get one mail; another warning comes only after a top-up', async () => {
    const payer = await newPayer(app)
    const { orgId } = payer
    const second = await app.newMember('owner', { orgId })
    await app.newMember('admin', { orgId })
    await app.call('POST', '/me/billing/profile', { billing_email: 'bills@payer.test' }, { cookie: payer.cookie })
    await topUp(payer, 250)
    const key = await keyOf(payer)
    await setThreshold(payer, 200)
    // The balance falls from 250 to 210 (not below the threshold), to 170 (below) and to 130 (still below).
    await spend(key)
    expect([await events(orgId), await mails(orgId)]).toEqual([[], []])
    await spend(key)
    expect(await events(orgId)).toEqual([{ balance_inr: 170, threshold_inr: 200 }])
    await spend(key)
    expect(await events(orgId)).toHaveLength(1)
    const sent = await mails(orgId)
    expect(sent.map(({ to }) => to).sort()).toEqual(['bills@payer.test', expect.stringMatching(/^owner@payer/), second.email])
    const letter = renderMail('low_balance', sent[0]?.data)
    expect(letter?.subject).toMatch(/₹170\.00 left/)
    for (const part of [letter?.text, letter?.html]) expect(part).toMatch(/₹170\.00[\s\S]*₹200\.00[\s\S]*%2Fme%2Fbilling/)

    // The top-up raises the balance above the threshold, so the warning is armed again. The next crossing sends an event. It sends a mail only when
    // the last mail is a day old.
    await topUp(payer, 100)
    await spend(key)
    expect(await events(orgId)).toEqual([
      { balance_inr: 170, threshold_inr: 200 },
      { balance_inr: 190, threshold_inr: 200 },
    ])
    expect(await mails(orgId)).toHaveLength(3)
    await topUp(payer, 100)
    clock.advance(24 * hourMs)
    // The balance falls from 290 to 250, 210 and 170.
    for (let i = 0; i < 3; i++) await spend(key)
    expect((await events(orgId)).at(-1)).toEqual({ balance_inr: 170, threshold_inr: 200 })
    expect([(await events(orgId)).length, (await mails(orgId)).length]).toEqual([3, 6])
  })

  test('a top-up to below the threshold and setting the same threshold do not arm the warning again; setting another threshold does', async () => {
    const payer = await newPayer(app)
    const { orgId } = payer
    await topUp(payer, 200)
    const key = await keyOf(payer)
    await setThreshold(payer, 1000)
    // The balance was below the threshold before the threshold was set. The next call causes the warning.
    expect(await events(orgId)).toEqual([])
    await spend(key)
    expect(await events(orgId)).toEqual([{ balance_inr: 160, threshold_inr: 1000 }])
    await topUp(payer, 100)
    await setThreshold(payer, 1000)
    await spend(key)
    expect(await events(orgId)).toHaveLength(1)
    await setThreshold(payer, 900)
    await spend(key)
    expect((await events(orgId)).at(-1)).toEqual({ balance_inr: 180, threshold_inr: 900 })
    // The threshold is cleared, so no more warnings are sent.
    await setThreshold(payer, null)
    await spend(key)
    expect(await events(orgId)).toHaveLength(2)
    expect(await mails(orgId)).toHaveLength(1)
  })

  test('money that the operator takes can cause the warning, and a balance below zero is shown as a negative number', async () => {
    const payer = await newPayer(app)
    await setThreshold(payer, 0.01)
    const { credits } = app.gateway.app.operator
    await credits.give({ orgId: payer.orgId, reason: 'grant', amountUinr: 5_000_000n, ref: 'start' })
    await credits.give({ orgId: payer.orgId, reason: 'correction', amountUinr: -5_001_234n, ref: 'slip' })
    expect(await events(payer.orgId)).toEqual([{ balance_inr: -0.001234, threshold_inr: 0.01 }])
    expect((await mails(payer.orgId))[0]?.data).toMatchObject({ balance: '-₹0.01', threshold: '₹0.01' })
  })

  test('when many processes charge concurrently, one sends the warning; an invalid mail address delays no charge', async () => {
    const payer = await newPayer(app)
    const { orgId } = payer
    await setThreshold(payer, 10)
    await app.db.script(`update users set email = 'not, an address' where id = ${payer.userId}`)
    const onDebited = onDebitedOf({ clock, ids: systemIds, mail: new Mail({ db: app.db, clock }), baseUrl: () => app.baseUrl })
    const low = { orgId, balanceUinr: 9_990_000n }
    for (let round = 1; round <= 3; round++) {
      await Promise.all(Array.from({ length: 8 }, () => app.db.tx(tx => onDebited(tx, [low, { orgId: app.orgId, balanceUinr: 0n }]))))
      expect(await events(orgId)).toHaveLength(round)
      await app.db.exec(setMailedEarlier, orgId)
    }
    expect(await mails(orgId)).toEqual([])
    expect(await events(app.orgId)).toEqual([])
  })
})
