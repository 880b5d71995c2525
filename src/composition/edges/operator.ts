/** Constructs the operator's services. With them, the operator reads and changes money, webhooks and usage of all organisations. */

import { onDebitedOf } from '../../gateway/billing/low-balance.ts'
import { OperatorCredits } from '../../gateway/billing/operator/operator-credits.ts'
import { OperatorPromos } from '../../gateway/billing/operator/operator-promos.ts'
import { FlaggedPayments } from '../../gateway/billing/payments/flagged-payments.ts'
import { UsageRollups } from '../../gateway/usage/rollups/rollup-rebuild.ts'
import { OperatorWebhooks } from '../../gateway/webhooks/operator-webhooks.ts'
import { isBilling } from '../../platform/config.ts'
import type { AppDeps } from '../deps.ts'
import { captureDepsOf } from '../domains/billing.ts'
import type { Domains } from '../domains.ts'

export interface OperatorServices {
  readonly credits: OperatorCredits
  readonly promos: OperatorPromos
  readonly payments: FlaggedPayments
  readonly webhooks: OperatorWebhooks
  /** The sums that reports read. */
  readonly usage: UsageRollups
  /** True when payments are configured. Otherwise the balance is kept, but no call is checked against it. */
  readonly isBilling: boolean
}

export function operatorServices(
  { db, clock, ids, config }: AppDeps,
  { controlLog, orgs, keys, limits, mail, audit }: Pick<Domains, 'controlLog' | 'orgs' | 'keys' | 'limits' | 'mail' | 'audit'>,
  baseUrl: () => string,
): OperatorServices {
  return {
    isBilling: isBilling(config),
    credits: new OperatorCredits({
      db,
      clock,
      controlLog,
      orgExists: async orgId => (await orgs.find(orgId)) !== null,
      promote: (tx, orgId, at) => keys.promote(tx, orgId, at),
      onDebited: onDebitedOf({ clock, ids, mail, baseUrl }),
      journal: limits,
    }),
    promos: new OperatorPromos({ db, clock }),
    payments: new FlaggedPayments({
      db,
      clock,
      controlLog,
      capture: captureDepsOf({ clock, ids, config, mail, keys, audit, baseUrl }),
    }),
    webhooks: new OperatorWebhooks({ db, clock }),
    usage: new UsageRollups({ db, clock, keepDays: config.USAGE_KEEP_DAYS, journal: limits }),
  }
}
