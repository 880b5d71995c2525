/** The operator's commands about money, on a gateway with payments. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { billingEnv, type PaymentProvider, startPaymentProvider } from '../../harness/payment-provider.ts'

let app: TestApp
let provider: PaymentProvider
const clock = movableClock()
beforeAll(async () => {
  provider = await startPaymentProvider()
  app = await startApp({ clock, env: billingEnv(provider) })
})
afterAll(async () => {
  await app.stop()
  await provider.close()
})
// biome-ignore lint/suspicious/noExplicitAny: commands answer arbitrary objects.
const run = (name: string, args: Record<string, unknown>): Promise<any> => adminHandler(app.gateway.app)({ name, args })
const lastAct = async (org?: number) => (await run('audit', { ...(org === undefined ? {} : { org }), limit: 1 })).entries[0]
const owners = new Map<number, number>()
const tiersOf = async (orgId: number): Promise<string[]> => {
  const { keys } = (await app.call('GET', '/me/keys', undefined, { cookie: await app.signIn(owners.get(orgId), orgId) })).json
  return keys.map(({ tier }: { tier: string }) => tier)
}
async function newOrg(name: string): Promise<number> {
  const { orgId, userId } = await app.otherOrg(name)
  owners.set(orgId, userId)
  return orgId
}

test('a grant is credited once, turns trial keys into standard keys, and is in the ledger and the audit trail', async () => {
  const org = await newOrg('Granted')
  expect(await tiersOf(org)).toEqual(['trial'])
  expect(await run('credit-grant', { org, inr: 500, ref: ' welcome ' })).toEqual({ org_id: org, credited: true, amount_inr: 500, balance_inr: 500 })
  expect(await tiersOf(org)).toEqual(['standard'])
  const again = await run('credit-grant', { org, inr: 500, ref: 'welcome' })
  expect(again).toMatchObject({ credited: false, balance_inr: 500, note: expect.stringContaining('nothing was changed') })
  expect(await lastAct(org)).toMatchObject({ act: 'grantCredit', target: 'inr=500', outcome: 'ok', actor: { kind: 'operator' } })
  expect(await run('credit-show', { org })).toMatchObject({
    org_id: org,
    balance_inr: 500,
    payments_configured: true,
    ledger: [{ reason: 'grant', amount_inr: 500, balance_after_inr: 500, ref: 'welcome' }],
  })
})

test('a repeated ref with another amount is refused and moves no money', async () => {
  const org = await newOrg('Refs')
  await run('credit-grant', { org, inr: 10, ref: 'ticket 7' })
  await expect(run('credit-grant', { org, inr: 11, ref: 'ticket 7' })).rejects.toThrow(/"ticket 7" is in the ledger .* with ₹10\. Nothing was changed/)
  expect(await lastAct(org)).toMatchObject({ act: 'grantCredit', outcome: 'bad_request' })
  // A correction may have the same ref as a grant, because the ref is unique only for each reason.
  expect(await run('credit-correct', { org, inr: -4.25, ref: 'ticket 7' })).toMatchObject({ credited: true, balance_inr: 5.75 })
})

test('a correction can take more than the balance, and the ledger shows the balance after each row', async () => {
  const org = await newOrg('Corrected')
  await run('credit-grant', { org, inr: 20, ref: 'a' })
  expect(await run('credit-correct', { org, inr: -30.000001, ref: 'b' })).toMatchObject({ credited: true, balance_inr: -10.000001 })
  expect(await run('credit-correct', { org, inr: 11, ref: 'c' })).toMatchObject({ credited: true, balance_inr: 0.999999 })
  const { ledger } = await run('credit-show', { org, limit: 2 })
  expect(ledger.map((row: Record<string, unknown>) => [row['reason'], row['ref'], row['amount_inr'], row['balance_after_inr']])).toEqual([
    ['correction', 'c', 11, 0.999999],
    ['correction', 'b', -30.000001, -10.000001],
  ])
})

test('invalid amounts, invalid refs and unknown organisations get an error that names them', async () => {
  const org = await newOrg('Wrong')
  await expect(run('credit-grant', { org, inr: -1, ref: 'x' })).rejects.toThrow('credit correct takes money away')
  await expect(run('credit-grant', { org, inr: 0, ref: 'x' })).rejects.toThrow('above zero')
  await expect(run('credit-correct', { org, inr: 0, ref: 'x' })).rejects.toThrow('may not be 0')
  await expect(run('credit-grant', { org, inr: 10_000_001, ref: 'x' })).rejects.toThrow('at most ₹10000000')
  await expect(run('credit-grant', { org, inr: 1, ref: '  ' })).rejects.toThrow('ref: write')
  await expect(run('credit-grant', { org, inr: 1, ref: 'two\nlines' })).rejects.toThrow('ref: write')
  await expect(run('credit-grant', { org: 999_999, inr: 1, ref: 'x' })).rejects.toThrow('no organisation 999999')
  await expect(run('credit-show', { org: 999_999 })).rejects.toThrow('no organisation 999999')
  expect(await run('credit-show', { org })).toMatchObject({ balance_inr: 0, ledger: [] })
})

test('the same grant, sent several times concurrently, moves money once', async () => {
  const org = await newOrg('Crowd')
  const given = await Promise.all(Array.from({ length: 10 }, () => run('credit-grant', { org, inr: 5, ref: 'once' })))
  expect(given.filter(({ credited }) => credited)).toHaveLength(1)
  expect((await run('credit-show', { org })).balance_inr).toBe(5)
})

test('promo codes can be created, listed with their state and ended, and they expire', async () => {
  expect(await run('promo-create', { code: 'diwali-26', bonusInr: 100, minTopupInr: 1000, maxRedemptions: 50, expiresAt: '2199-12-31' })).toMatchObject({
    code: 'DIWALI-26',
    state: 'active',
    bonus_inr: 100,
    min_topup_inr: 1000,
    redemptions: 0,
    max_redemptions: 50,
    // The end of that day in India.
    expires_at: '2199-12-31T18:30:00.000Z',
    ended_at: null,
  })
  expect(await lastAct()).toMatchObject({ act: 'createPromo', target: 'promo=DIWALI-26', outcome: 'ok' })
  const soon = new Date(clock.nowMs() + 60_000).toISOString()
  await run('promo-create', { code: 'SOON', bonusInr: 0.5, expiresAt: soon })
  clock.advance(61_000)
  await run('promo-create', { code: 'PLAIN', bonusInr: 25 })
  const ended = await run('promo-end', { code: 'plain' })
  expect(ended).toMatchObject({ code: 'PLAIN', state: 'ended' })
  clock.advance(1000)
  expect(await run('promo-end', { code: 'PLAIN' })).toEqual(ended)
  expect((await run('promo-list', {})).promos.map(({ code, state }: { code: string; state: string }) => [code, state])).toEqual([
    ['PLAIN', 'ended'],
    ['SOON', 'expired'],
    ['DIWALI-26', 'active'],
  ])
})

test('invalid codes are refused with the reason', async () => {
  await run('promo-create', { code: 'TAKEN', bonusInr: 1 })
  await expect(run('promo-create', { code: 'taken', bonusInr: 2 })).rejects.toThrow('there is a code TAKEN already')
  await expect(run('promo-create', { code: 'a b', bonusInr: 2 })).rejects.toThrow('code: 3 to 32 letters')
  await expect(run('promo-create', { code: 'ZERO', bonusInr: 0 })).rejects.toThrow('bonus-inr: write an amount above 0')
  await expect(run('promo-create', { code: 'HIGH', bonusInr: 5, minTopupInr: 100_001 })).rejects.toThrow('no top-up is larger')
  await expect(run('promo-create', { code: 'PAST', bonusInr: 5, expiresAt: '2020-01-01' })).rejects.toThrow('is past')
  await expect(run('promo-create', { code: 'WHEN', bonusInr: 5, expiresAt: 'tomorrow' })).rejects.toThrow('"tomorrow" is no time')
  await expect(run('promo-create', { code: 'HALF', bonusInr: 5, maxRedemptions: 0 })).rejects.toThrow(/^maxRedemptions/)
  await expect(run('promo-end', { code: 'NOBODY' })).rejects.toThrow('There is no promo code NOBODY')
})
