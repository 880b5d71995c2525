import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import { countMails, insertMail, listUnsent, type OutboxRow, readOutbox, type UnsentRow } from './queries.ts'
import { isMailAddress } from './safe-text.ts'
import { checkedMailData, type MailData, type MailTemplate } from './templates.ts'

export interface MailDeps {
  readonly db: Pick<Db, 'one' | 'many'>
  readonly clock: Clock
}

export interface NewMail<T extends MailTemplate = MailTemplate> {
  readonly orgId: number | null
  readonly to: string
  readonly template: T
  readonly data: MailData[T]
  /** At most one mail with this key exists. A second mail with the same key is not stored. */
  readonly onceKey?: string
}

/** The outbox of mail. The transaction that causes a mail writes the mail as a row. The mail sender sends it later. */
export class Mail {
  readonly #deps: MailDeps
  constructor(deps: MailDeps) {
    this.#deps = deps
  }

  /**
   * Puts a mail into the outbox. It is sent if, and only if, the transaction commits. Throws `bad_email` unless `to` is one plain address.
   * Throws an Error for values that the template does not accept, because that is a mistake in the calling code. Returns false when a mail with the same
   * `onceKey` exists.
   */
  async enqueue<T extends MailTemplate>(tx: Tx, { orgId, to, template, data, onceKey }: NewMail<T>): Promise<boolean> {
    if (!isMailAddress(to)) throw fail('bad_email')
    const checked = checkedMailData(template, data)
    if (checked === null) throw new Error(`the mail template ${template} does not take these values`)
    return (await tx.exec(insertMail, orgId, to, template, JSON.stringify(checked), onceKey ?? null, new Date(this.#deps.clock.nowMs()))) > 0
  }

  /** Returns the number of mails that wait, and the number of mails that were given up. */
  counts(): Promise<{ waiting: number; failed: number }> {
    return this.#deps.db.one(countMails)
  }

  /** Returns what waits in the outbox, and at most `limit` mails of each kind that were not sent, for the operator. */
  async outbox(limit: number): Promise<OutboxRow & { readonly unsent: readonly UnsentRow[] }> {
    const { db, clock } = this.#deps
    const [counts, unsent] = await Promise.all([db.one(readOutbox, new Date(clock.nowMs())), db.many(listUnsent, limit)])
    return { ...counts, unsent }
  }
}
