import type { Db, Tx } from '../../platform/db.ts'

export interface MailDeps {
  readonly db: Db
}

/** What each template needs to know. Names, amounts and links; never a secret that is worth more than the mail. */
export interface MailData {
  invitation: { readonly orgName: string; readonly inviter: string; readonly role: string; readonly link: string }
  key_inactivity: { readonly orgName: string; readonly keyName: string; readonly keyPrefix: string; readonly disabledOn: string; readonly link: string }
}
export type MailTemplate = keyof MailData

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
  readonly deps: MailDeps
  constructor(deps: MailDeps) {
    this.deps = deps
  }

  /** Puts a mail into the outbox. It is sent if, and only if, the transaction commits. */
  async enqueue<T extends MailTemplate>(_tx: Tx, _mail: NewMail<T>): Promise<void> {}
}
