/** What the operator sees and does by hand with money, webhooks and usage, over all organisations. */
import type { AppDeps } from './app-deps.ts'
import type { Domains } from './app-domains.ts'
import { FlaggedPayments } from './gateway/billing/flagged-payments.ts'
import { sellerOf } from './gateway/billing/invoice-seller.ts'
import { onDebitedOf } from './gateway/billing/low-balance.ts'
import { OperatorCredits } from './gateway/billing/operator-credits.ts'
import { OperatorPromos } from './gateway/billing/operator-promos.ts'
import { UsageSums } from './gateway/usage/rollup-rebuild.ts'
import { OperatorWebhooks } from './gateway/webhooks/operator-webhooks.ts'
import { isBilling } from './platform/config.ts'

export interface OperatorDesk {
  readonly credits: OperatorCredits
  readonly promos: OperatorPromos
  readonly payments: FlaggedPayments
  readonly webhooks: OperatorWebhooks
  /** The sums that reports read. */
  readonly usage: UsageSums
  /** Whether payments are configured; without them the balance is kept and asked by nobody. */
  readonly isBilling: boolean
}

export function operatorDesk(
  { db, clock, ids, config }: AppDeps,
  { controlLog, orgs, keys, limits, mail }: Pick<Domains, 'controlLog' | 'orgs' | 'keys' | 'limits' | 'mail'>,
  baseUrl: () => string,
): OperatorDesk {
  return {
    isBilling: isBilling(config),
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
    payments: new FlaggedPayments({
      db,
      clock,
      controlLog,
      capture: { ids, mail, seller: sellerOf(config), promote: (tx, orgId, at) => keys.promote(tx, orgId, at), baseUrl },
    }),
    webhooks: new OperatorWebhooks({ db, clock }),
    usage: new UsageSums({ db, clock, keepDays: config.USAGE_KEEP_DAYS, flushNow: () => limits.flushNow() }),
  }
}
