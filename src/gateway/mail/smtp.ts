import type { Transporter } from 'nodemailer'
import { ConfigError } from '../../platform/config.ts'
import type { Secret } from '../../platform/security/secret.ts'
import { isMailAddress, oneLine } from './safe-text.ts'
import type { RenderedMail } from './templates.ts'

export interface OutgoingMail extends RenderedMail {
  readonly to: string
  /** The part of the Message-ID before the host, without angle brackets. It is the same for every attempt to send the mail. */
  readonly messageName: string
}

/** Sends a mail to the server. Rejects with an SmtpError. */
export type Deliver = (mail: OutgoingMail, signal: AbortSignal) => Promise<void>

/**
 * The reason why the server did not accept a mail. The error contains the failed step and the server's status. It contains neither the mail nor the
 * server's text.
 */
export class SmtpError extends Error {
  override readonly name = 'SmtpError'
  /** True when the server says that the mailbox does not exist. Another attempt cannot succeed then. */
  readonly isFinal: boolean
  constructor(what: string, isFinal: boolean) {
    super(what)
    this.isFinal = isFinal
  }
}

/**
 * The time limits of a delivery. We chose these values. No call waits for mail, so a slow server may take its time, but it must not use up the whole
 * round of the sender.
 */
const connectTimeoutMs = 10_000
const silenceTimeoutMs = 20_000

/** Returns the name and address in MAIL_FROM, which is `Brigade <no-reply@example.com>` or an address alone. Throws ConfigError. */
export function senderOf(mailFrom: string): { name: string; address: string } {
  const [, name = '', address = ''] = /^\s*(?:"?([^"<>]*?)"?\s*<([^<>]+)>)\s*$/.exec(mailFrom) ?? ['', '', mailFrom.trim()]
  if (!isMailAddress(address)) throw new ConfigError(`MAIL_FROM must be an address, or a name and an address as in "Brigade <no-reply@example.com>".`)
  return { name: oneLine(name), address }
}

/** Returns a function that sends over SMTP. Throws ConfigError for an invalid URL or sender. It does not connect before the first mail. */
export function smtpDelivery(smtpUrl: Secret, mailFrom: string): Deliver {
  const url = smtpUrl.reveal()
  if (!URL.canParse(url) || !/^smtps?:$/.test(new URL(url).protocol) || new URL(url).hostname === '')
    throw new ConfigError('SMTP_URL must be an smtp:// or smtps:// URL, such as smtps://user:password@mail.example.com:465.')
  const from = senderOf(mailFrom)
  const host = from.address.split('@')[1] ?? 'localhost'
  // The mail library is loaded with the first mail, because most gateways send no mail.
  let transport: Promise<Transporter> | null = null
  const load = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url,
      connectionTimeout: connectTimeoutMs,
      greetingTimeout: connectTimeoutMs,
      socketTimeout: silenceTimeoutMs,
      // The library must never read a file or a URL, because the gateway wrote all content of a mail itself.
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }
  return async ({ to, subject, text, html, messageName }, signal) => {
    const message = {
      from,
      to: { name: '', address: to },
      subject,
      text,
      html,
      messageId: `<${messageName}@${host}>`,
      headers: { 'auto-submitted': 'auto-generated' },
    }
    try {
      transport ??= load()
      const sender = await transport
      await sender.sendMail({ ...message, signal })
    } catch (error) {
      throw smtpError(error)
    }
  }
}

function smtpError(thrown: unknown): SmtpError {
  const { code, responseCode, command, response } = thrown as { code?: unknown; responseCode?: unknown; command?: unknown; response?: unknown }
  const what = [code, responseCode, command].filter(part => /^[\w .-]{1,40}$/.test(String(part ?? ''))).join(' ')
  // RFC 3463: codes 5.1.x describe the address of the mailbox.
  return new SmtpError(what === '' ? 'not delivered' : what, typeof response === 'string' && /^5\d\d[ -]5\.1\.\d/.test(response))
}
