/** What the operator does with money by hand: credits, promo codes, payments that were not credited. */
import type { AppDeps, Domains } from './app-domains.ts'
import { onDebitedOf } from './gateway/billing/low-balance.ts'
import { OperatorCredits } from './gateway/billing/operator-credits.ts'
import { OperatorPromos } from './gateway/billing/operator-promos.ts'

export interface BillingDesk {
  readonly credits: OperatorCredits
  readonly promos: OperatorPromos
  /** Whether payments are configured; without them the balance is kept and asked by nobody. */
  readonly isOn: boolean
}

export function billingDesk(
  { db, clock, ids, config }: AppDeps,
  domains: Pick<Domains, 'controlLog' | 'orgs' | 'keys' | 'limits' | 'mail'>,
  baseUrl: () => string,
): BillingDesk {
  const { controlLog, orgs, keys, limits, mail } = domains
  return {
    isOn: config.RAZORPAY_KEY_ID !== null && config.RAZORPAY_KEY_SECRET !== null,
    credits: new OperatorCredits({
      db,
      clock,
      controlLog,
      orgExists: async orgId => (await orgs.find(orgId)) !== null,
      promote: (tx, orgId, at) => keys.promote(tx, orgId, at),
      onDebited: onDebitedOf({ clock, ids, mail, baseUrl }),
      flushNow: () => limits.flushNow(),
    }),
    promos: new OperatorPromos({ db, clock }),
  }
}
