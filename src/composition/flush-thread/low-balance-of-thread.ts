/** The warnings of low balances in the thread that flushes. */
import { type OnDebited, onDebitedOf } from '../../gateway/billing/low-balance.ts'
import type { FlushFacts } from '../../gateway/limits/journal/thread/messages.ts'
import { Mail } from '../../gateway/mail/mail.ts'
import { systemClock } from '../../platform/clock.ts'
import type { StatementDb } from '../../platform/db/db.ts'
import { systemIds } from '../../platform/values/ids.ts'

/** Returns the function that writes the warnings in the transaction of the flush. The main thread sends their mails. */
export function lowBalanceOf(db: StatementDb, facts: () => FlushFacts): OnDebited {
  const clock = { ...systemClock, nowMs: () => facts().nowMs }
  return onDebitedOf({ clock, ids: systemIds, mail: new Mail({ db, clock }), baseUrl: () => facts().baseUrl })
}
