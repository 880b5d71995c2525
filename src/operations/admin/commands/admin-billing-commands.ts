/** The operator's commands about money. They run in the process that owns the database. */
import { z } from 'zod'
import type { App } from '../../../composition/gateway.ts'
import type { Promo } from '../../../gateway/billing/operator/operator-promos.ts'
import { providerId } from '../../../gateway/billing/payments/payment-ids.ts'
import { startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { inrFromUinr, uinrFromInr } from '../../../platform/values/money.ts'
import { argsOf } from '../admin-args.ts'
import type { AdminCommand } from '../admin-socket.ts'
import { flaggedView } from '../flagged-view.ts'
import { asOperator } from '../operator-act.ts'

const creditArgs = z.object({ org: z.int().positive(), inr: z.number(), ref: z.string() })
const showArgs = z.object({ org: z.int().positive(), limit: z.int().positive().max(1000).optional() })
const promoArgs = z.object({
  code: z.string(),
  bonusInr: z.number(),
  minTopupInr: z.number().optional(),
  maxRedemptions: z.int().positive().max(2_147_483_647).optional(),
  expiresAt: z.string().optional(),
})
const flaggedArgs = z.object({ org: z.int().positive().optional() })
const paymentArgs = z.object({ payment: providerId })
const promoEndArgs = z.object({ code: z.string() })

/** Runs a command about money and returns its result. Returns null for another command. */
export function billingCommand(app: App, command: AdminCommand): Promise<object> | null {
  switch (command.name) {
    case 'credit-grant':
      return giveCredit(app, 'grant', argsOf(creditArgs, command))
    case 'credit-correct':
      return giveCredit(app, 'correction', argsOf(creditArgs, command))
    case 'credit-show':
      return showCredit(app, argsOf(showArgs, command))
    case 'promo-create':
      return createPromo(app, argsOf(promoArgs, command))
    case 'promo-list':
      return listPromos(app)
    case 'promo-end':
      return endPromo(app, argsOf(promoEndArgs, command))
    case 'payments-flagged':
      return listFlagged(app, argsOf(flaggedArgs, command))
    case 'payments-credit':
      return creditPayment(app, argsOf(paymentArgs, command))
    case 'payments-settle':
      return settlePayment(app, argsOf(paymentArgs, command))
    default:
      return null
  }
}

async function giveCredit(app: App, reason: 'grant' | 'correction', { org, inr, ref }: z.output<typeof creditArgs>): Promise<object> {
  const amountUinr = uinrFromInr(inr)
  const act = { act: reason === 'grant' ? 'grantCredit' : 'correctCredit', orgId: org, target: `inr=${inr}` }
  const { credited, balanceUinr } = await asOperator(app.audit, act, () => app.operator.credits.give({ orgId: org, reason, amountUinr, ref }))
  const notes = [
    ...(credited ? [] : ['nothing was changed: this ref was credited before']),
    ...(app.operator.isBilling ? [] : ['payments are not configured, so no call asks for the balance']),
  ]
  return { org_id: org, credited, amount_inr: inr, balance_inr: inrFromUinr(balanceUinr), ...(notes.length === 0 ? {} : { note: notes.join('; ') }) }
}

async function showCredit(app: App, { org, limit }: z.output<typeof showArgs>): Promise<object> {
  const { balanceUinr, ledger } = await app.operator.credits.show(org, limit ?? 20)
  return {
    org_id: org,
    balance_inr: inrFromUinr(balanceUinr),
    payments_configured: app.operator.isBilling,
    flagged_payments: (await app.operator.payments.list(org)).map(flaggedView),
    ledger: ledger.map(row => ({
      id: Number(row.id),
      at: row.at.toISOString(),
      reason: row.reason,
      amount_inr: inrFromUinr(row.amountUinr),
      balance_after_inr: inrFromUinr(row.balanceAfterUinr),
      ref: row.ref,
    })),
  }
}

async function listFlagged(app: App, { org }: z.output<typeof flaggedArgs>): Promise<object> {
  return { payments: (await app.operator.payments.list(org ?? null)).map(flaggedView) }
}

async function creditPayment(app: App, { payment }: z.output<typeof paymentArgs>): Promise<object> {
  return asOperator(app.audit, { act: 'creditFlaggedPayment', orgId: null, target: `payment=${payment}` }, async () => {
    const { credited, orgId, amountUinr, balanceUinr } = await app.operator.payments.credit(payment)
    return {
      org_id: orgId,
      payment_id: payment,
      credited,
      amount_inr: inrFromUinr(amountUinr),
      balance_inr: inrFromUinr(balanceUinr),
      ...(credited ? {} : { note: 'nothing was changed: this payment was credited before' }),
    }
  })
}

async function settlePayment(app: App, { payment }: z.output<typeof paymentArgs>): Promise<object> {
  return asOperator(app.audit, { act: 'settlePayment', orgId: null, target: `payment=${payment}` }, async () => {
    const { settled, orgId } = await app.operator.payments.settle(payment)
    return { org_id: orgId, payment_id: payment, settled, ...(settled ? {} : { note: 'nothing was changed: this payment was settled before' }) }
  })
}

async function createPromo(app: App, { code, bonusInr, minTopupInr, maxRedemptions, expiresAt }: z.output<typeof promoArgs>): Promise<object> {
  const params = {
    code,
    bonusUinr: uinrFromInr(bonusInr),
    topupMinUinr: uinrFromInr(minTopupInr ?? 0),
    redemptionsMax: maxRedemptions ?? null,
    expiresAt: expiresAt === undefined ? null : instantOf(expiresAt),
  }
  return promoView(await asOperator(app.audit, { act: 'createPromo', orgId: null, target: targetOf(code) }, () => app.operator.promos.create(params)))
}

async function listPromos(app: App): Promise<object> {
  return { promos: (await app.operator.promos.list()).map(promoView) }
}

async function endPromo(app: App, { code }: z.output<typeof promoEndArgs>): Promise<object> {
  return promoView(await asOperator(app.audit, { act: 'endPromo', orgId: null, target: targetOf(code) }, () => app.operator.promos.end(code)))
}

/** Returns the target for the audit trail. Null for text that is not a promo code, because such text must not be stored there. */
function targetOf(code: string): string | null {
  return /^[A-Za-z0-9-]{1,32}$/.test(code) ? `promo=${code.toUpperCase()}` : null
}

/** Reads a time. A day means the end of that day in India. A time of day needs its time zone. Throws an Error for other text. */
function instantOf(text: string): Date {
  const dayMs = startOfIstDayMs(text)
  if (dayMs !== null) return new Date(dayMs + 24 * 3600_000)
  const parsed = z.iso.datetime({ offset: true }).safeParse(text)
  if (!parsed.success) throw new Error(`expires-at: "${text}" is no time; write 2026-12-31 (to the end of that day in India) or 2026-12-31T18:00:00+05:30`)
  return new Date(parsed.data)
}

const promoView = (promo: Promo): object => ({
  code: promo.code,
  state: promo.state,
  bonus_inr: inrFromUinr(promo.bonusUinr),
  min_topup_inr: inrFromUinr(promo.topupMinUinr),
  redemptions: promo.redemptions,
  max_redemptions: promo.redemptionsMax,
  expires_at: promo.expiresAt?.toISOString() ?? null,
  ended_at: promo.endedAt?.toISOString() ?? null,
  created_at: promo.createdAt.toISOString(),
})
