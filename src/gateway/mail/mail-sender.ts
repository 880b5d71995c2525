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
  /** Null without SMTP_URL. Mail then waits in the outbox. */
  readonly deliver: Deliver | null
  /** The setting MAIL_POLL_MS. */
  readonly pollMs: number
}

const minuteMs = 60_000
/**
 * Pauses after failed attempts, in milliseconds. When the attempt after the last pause fails too, the mail is given up. We chose these values so that
 * no mail is lost when a mail server is down for a working day.
 */
const retryDelaysMs: readonly number[] = [minuteMs, 5 * minuteMs, 30 * minuteMs, 120 * minuteMs, 480 * minuteMs]
/** Time limit for one mail. The claim lasts longer than all mails of one claim together can take. */
const mailTimeoutMs = 45_000
const claimMax = 5
/** How long `stop` waits for the mail that is being sent. */
const stopGraceMs = 5_000
const claimLeaseMs = 5 * minuteMs
const roundsMax = 100
/** How long sent and given-up mails are kept, so that questions about them can be answered. */
const keepMs = 90 * 24 * 60 * minuteMs

/** Pause between two deletions of old mails. */
export const mailSweepMs = 6 * 60 * minuteMs

/**
 * Sends the mails of the outbox. Every process polls the outbox, and each process claims other rows. A mail can be sent twice only when a process
 * crashes after the mail server accepted it and before the row is updated. Both copies then have the same Message-ID. Logs contain organisations and
 * codes, never addresses or texts. Decision 0110 gives the reasons.
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

  /** Polls every MAIL_POLL_MS. The returned function stops the polling and resolves when the running send has ended. */
  start(): () => Promise<void> {
    const { deliver, clock, pollMs } = this.#deps
    // Without a mail server, mail waits in the outbox. The doctor says so.
    if (deliver === null) return () => Promise.resolve()
    const stopTimer = clock.every(pollMs, () => this.#poll())
    return async () => {
      stopTimer()
      this.#stop.abort()
      const stopGrace = clock.after(stopGraceMs, () => this.#cut.abort())
      await this.#running
      stopGrace()
    }
  }

  /** Sends the mails that are due now. Returns the number of mails that it tried to send. */
  async sendDue(): Promise<number> {
    const { db, clock, deliver } = this.#deps
    if (deliver === null) return 0
    const params = (): [Date, Date, number] => [new Date(clock.nowMs()), new Date(clock.nowMs() + claimLeaseMs), claimMax]
    return await claimDue(db, claimMails, params, mail => this.#send(mail, deliver), roundsMax)
  }

  /** Deletes old mails that were sent or given up. Returns their number. */
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
    // After a stop, the remaining mails of the round are not sent. They become due again when their claim ends.
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
