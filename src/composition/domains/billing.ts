import { type Billing, createBilling } from '../../gateway/billing/create-billing.ts'
import { sellerOf } from '../../gateway/billing/invoices/invoice-seller.ts'
import { onDebitedOf } from '../../gateway/billing/low-balance.ts'
import type { CaptureDeps } from '../../gateway/billing/payments/captures.ts'
import type { AppParts } from '../parts.ts'

/** Connects billing to keys, mail and the audit trail. */
export function billingServices(parts: AppParts): Billing {
  return createBilling({ ...parts, journal: parts.limits, capture: captureDepsOf(parts) })
}

/** Returns what happens, in addition to moving the money, when a payment is captured or returned. */
export function captureDepsOf({
  clock,
  ids,
  config,
  mail,
  keys,
  audit,
  baseUrl,
}: Pick<AppParts, 'clock' | 'ids' | 'config' | 'mail' | 'keys' | 'audit' | 'baseUrl'>): CaptureDeps {
  return {
    ids,
    mail,
    seller: sellerOf(config),
    promote: (tx, orgId, at) => keys.promote(tx, orgId, at),
    onDebited: onDebitedOf({ clock, ids, mail, baseUrl }),
    onReturned: (tx, orgId, act, target) => audit.recordIn(tx, { orgId, actor: 'system', act, target, sourceIp: null, requestId: null }, 'ok'),
    baseUrl,
  }
}
