import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { claimDue } from '../../platform/db/jobs.ts'
import type { Log } from '../../platform/observe/log.ts'
import { type ClaimedMail, claimMails, deleteOldMails, markFailed, markSent, retryLater } from './queries.ts'
import { type Deliver, SmtpError } from './smtp.ts'
import { renderMail } from './templates.ts'

export interface MailSenderDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  /** Null without SMTP_URL: mail waits. */
  readonly deliver: Deliver | null
  /** MAIL_POLL_MS. */
  readonly pollMs: number
}

const minuteMs = 60_000
/**
 * Waits after each failed attempt; a mail is given up after the attempt that follows the last wait. Ours: a server that is down for a working day loses
 * no mail.
 */
const retryDelaysMs: readonly number[] = [minuteMs, 5 * minuteMs, 30 * minuteMs, 120 * minuteMs, 480 * minuteMs]
/** Longest that one mail may take. A round of claims at that pace ends before the claims do. */
const mailTimeoutMs = 45_000
const claimMax = 5
/** How long a stop lets the mail that is under way go on. */
const stopGraceMs = 5_000
const claimLeaseMs = 5 * minuteMs
const roundsMax = 100
/** How long sent and given-up mails are kept, for questions. */
const keepMs = 90 * 24 * 60 * minuteMs

/** How often settled mails are looked through for old ones. */
export const mailSweepMs = 6 * 60 * minuteMs

/**
 * Sends the outbox. Every process looks, each takes other rows; a mail goes out once, or again after a crash between the server's yes and
 * the note of it, then with the same Message-ID. Logs name organisations and codes, never addresses or texts. Decision 0110 says why.
 */
export class MailSender {
  readonly #deps: MailSenderDeps
  readonly #stop = new AbortController()
  readonly #cut = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #isRunning = false

  constructor(deps: MailSenderDeps) {
    this.#deps = deps
  }

  /** Looks every MAIL_POLL_MS. The returned function stops that and resolves when the mail that is under way has ended. */
  start(): () => Promise<void> {
    const { deliver, clock, log, pollMs } = this.#deps
    if (deliver === null) {
      log.warn('mail is not sent: set SMTP_URL; until then it waits in the outbox')
      return () => Promise.resolve()
    }
    const stopTimer = clock.every(pollMs, () => this.#poll())
    return async () => {
      stopTimer()
      this.#stop.abort()
      const stopGrace = clock.after(stopGraceMs, () => this.#cut.abort())
      await this.#running
      stopGrace()
    }
  }

  /** Sends what is due now; how many rows were tried. */
  async sendDue(): Promise<number> {
    const { db, clock, deliver } = this.#deps
    if (deliver === null) return 0
    const params = (): [Date, Date, number] => [new Date(clock.nowMs()), new Date(clock.nowMs() + claimLeaseMs), claimMax]
    return await claimDue(db, claimMails, params, mail => this.#send(mail, deliver), roundsMax)
  }

  /** Deletes old mails that are settled; how many. */
  sweep(): Promise<number> {
    return this.#deps.db.exec(deleteOldMails, new Date(this.#deps.clock.nowMs() - keepMs))
  }

  #poll(): void {
    if (this.#isRunning || this.#stop.signal.aborted) return
    this.#isRunning = true
    this.#running = this.sendDue()
      .then(() => undefined)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.log.warn('mail_poll_failed', { error })
      })
      .finally(() => {
        this.#isRunning = false
      })
  }

  async #send(mail: ClaimedMail, deliver: Deliver): Promise<void> {
    // A stop leaves the rest of the round to its new due time.
    this.#stop.signal.throwIfAborted()
    const { db, clock } = this.#deps
    const rendered = renderMail(mail.template, mail.data)
    if (rendered === null) return this.#fail(mail, new SmtpError(`no template ${mail.template} for these values`, true))
    const messageName = `${mail.id}.${mail.createdAt.getTime()}`
    try {
      await deliver({ ...rendered, to: mail.to, messageName }, AbortSignal.any([AbortSignal.timeout(mailTimeoutMs), this.#cut.signal]))
    } catch (error) {
      if (!(error instanceof SmtpError)) throw error
      return this.#fail(mail, error)
    }
    await db.exec(markSent, mail.id, mail.attempts, new Date(clock.nowMs()))
  }

  async #fail({ id, orgId, attempts }: ClaimedMail, error: SmtpError): Promise<void> {
    const { db, clock, log } = this.#deps
    const delayMs = error.isFinal ? undefined : retryDelaysMs[attempts - 1]
    const fields = { ...(orgId === null ? {} : { orgId }), code: error.message, count: attempts }
    if (delayMs === undefined) {
      await db.exec(markFailed, id, attempts, new Date(clock.nowMs()), error.message)
      log.error('mail_given_up', fields)
    } else {
      await db.exec(retryLater, id, attempts, new Date(clock.nowMs() + delayMs), error.message)
      log.warn('mail_not_sent', fields)
    }
  }
}
