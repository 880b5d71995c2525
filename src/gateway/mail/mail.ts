import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import { countMails, insertMail } from './queries.ts'
import { isMailAddress } from './safe-text.ts'
import { checkedMailData, type MailData, type MailTemplate } from './templates.ts'

export interface MailDeps {
  readonly db: Db
  readonly clock: Clock
}

export interface NewMail<T extends MailTemplate = MailTemplate> {
  readonly orgId: number | null
  readonly to: string
  readonly template: T
  readonly data: MailData[T]
  /** A second mail with the same key is not made. */
  readonly onceKey?: string
}

/** Mail: an outbox row in the transaction of what happened, sent from there. */
export class Mail {
  readonly #deps: MailDeps
  constructor(deps: MailDeps) {
    this.#deps = deps
  }

  /**
   * Puts a mail into the outbox. It is sent if, and only if, the transaction commits. Throws `bad_email` for what is no single address;
   * values that the template cannot take are a mistake of the caller and throw too.
   */
  async enqueue<T extends MailTemplate>(tx: Tx, { orgId, to, template, data, onceKey }: NewMail<T>): Promise<void> {
    if (!isMailAddress(to)) throw fail('bad_email')
    const checked = checkedMailData(template, data)
    if (checked === null) throw new Error(`the mail template ${template} does not take these values`)
    await tx.exec(insertMail, orgId, to, template, JSON.stringify(checked), onceKey ?? null, new Date(this.#deps.clock.nowMs()))
  }

  /** How many mails wait, and how many were given up. */
  counts(): Promise<{ waiting: number; failed: number }> {
    return this.#deps.db.one(countMails)
  }
}
