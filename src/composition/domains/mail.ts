/** Constructs the outbox and its sender. */
import { Mail } from '../../gateway/mail/mail.ts'
import { MailSender } from '../../gateway/mail/mail-sender.ts'
import { smtpDelivery } from '../../gateway/mail/smtp.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Log } from '../../platform/observe/log.ts'

interface MailStart {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
}

/** Returns the outbox and its sender. Throws ConfigError if SMTP_URL or MAIL_FROM is invalid. No mail is sent before the sender is started. */
export function createMail({ db, clock, log, config }: MailStart): { mail: Mail; mailSender: MailSender } {
  const deliver = config.SMTP_URL === null ? null : smtpDelivery(config.SMTP_URL, config.MAIL_FROM)
  return { mail: new Mail({ db, clock }), mailSender: new MailSender({ db, clock, log, deliver, pollMs: config.MAIL_POLL_MS }) }
}
