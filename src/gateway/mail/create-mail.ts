import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Log } from '../../platform/observe/log.ts'
import { Mail } from './mail.ts'
import { MailSender } from './mail-sender.ts'
import { smtpDelivery } from './smtp.ts'

export interface MailDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
}

/** Returns the outbox and its sender. Throws ConfigError if SMTP_URL or MAIL_FROM is invalid. No mail is sent before the sender is started. */
export function createMail({ db, clock, log, config }: MailDeps): { mail: Mail; mailSender: MailSender } {
  const deliver = config.SMTP_URL === null ? null : smtpDelivery(config.SMTP_URL, config.MAIL_FROM)
  return { mail: new Mail({ db, clock }), mailSender: new MailSender({ db, clock, log, deliver, pollMs: config.MAIL_POLL_MS }) }
}
