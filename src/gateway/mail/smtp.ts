import type { Transporter } from 'nodemailer'
import { ConfigError } from '../../platform/config.ts'
import type { Secret } from '../../platform/security/secret.ts'
import { isMailAddress, oneLine } from './safe-text.ts'
import type { RenderedMail } from './templates.ts'

export interface OutgoingMail extends RenderedMail {
  readonly to: string
  /** Without angle brackets and host: the same for every attempt at the same mail. */
  readonly messageName: string
}

/** Sends a mail to the server. Rejects with an SmtpError. */
export type Deliver = (mail: OutgoingMail, signal: AbortSignal) => Promise<void>

/** Why a mail was not taken, without its content: what failed and the server's status, not its words. */
export class SmtpError extends Error {
  override readonly name = 'SmtpError'
  /** The server says that there is no such mailbox: sending again cannot help. */
  readonly isFinal: boolean
  constructor(what: string, isFinal: boolean) {
    super(what)
    this.isFinal = isFinal
  }
}

/** Ours: mail is no part of a call, so a slow server may take its time, but not the sender's whole round. */
const connectTimeoutMs = 10_000
const silenceTimeoutMs = 20_000

/** The sender's name and address from MAIL_FROM, `Brigade <no-reply@example.com>` or an address alone. Throws ConfigError. */
export function senderOf(mailFrom: string): { name: string; address: string } {
  const [, name = '', address = ''] = /^\s*(?:"?([^"<>]*?)"?\s*<([^<>]+)>)\s*$/.exec(mailFrom) ?? ['', '', mailFrom.trim()]
  if (!isMailAddress(address)) throw new ConfigError(`MAIL_FROM must be an address, or a name and an address as in "Brigade <no-reply@example.com>".`)
  return { name: oneLine(name), address }
}

/** Sends over SMTP. Throws ConfigError for a URL or sender that cannot work; whether the server is there shows with the first mail. */
export function smtpDelivery(smtpUrl: Secret, mailFrom: string): Deliver {
  const url = smtpUrl.reveal()
  if (!URL.canParse(url) || !/^smtps?:$/.test(new URL(url).protocol) || new URL(url).hostname === '')
    throw new ConfigError('SMTP_URL must be an smtp:// or smtps:// URL, such as smtps://user:password@mail.example.com:465.')
  const from = senderOf(mailFrom)
  const host = from.address.split('@')[1] ?? 'localhost'
  // Most gateways send no mail: its library is loaded with the first one.
  let transport: Promise<Transporter> | null = null
  const load = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url,
      connectionTimeout: connectTimeoutMs,
      greetingTimeout: connectTimeoutMs,
      socketTimeout: silenceTimeoutMs,
      // A mail is made of our own texts: it never reads a file or a URL.
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
  // RFC 3463: 5.1.x is about the address of the mailbox.
  return new SmtpError(what === '' ? 'not delivered' : what, typeof response === 'string' && /^5\d\d[ -]5\.1\.\d/.test(response))
}
