/** The outbox and who sends it. */
import type { AppDeps } from './app-domains.ts'
import { Mail } from './gateway/mail/mail.ts'
import { MailSender } from './gateway/mail/mail-sender.ts'
import { smtpDelivery } from './gateway/mail/smtp.ts'

/** Throws ConfigError when SMTP_URL or MAIL_FROM cannot work. Nothing is sent before the sender is started. */
export function createMail({ db, clock, log, config }: AppDeps): { mail: Mail; mailSender: MailSender } {
  const deliver = config.SMTP_URL === null ? null : smtpDelivery(config.SMTP_URL, config.MAIL_FROM)
  return { mail: new Mail({ db, clock }), mailSender: new MailSender({ db, clock, log, deliver, pollMs: config.MAIL_POLL_MS }) }
}
