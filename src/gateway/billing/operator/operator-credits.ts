/** Money that the operator adds or removes manually, and the view of an organisation's balance and ledger. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { inrTextOf } from '../../../platform/values/money.ts'
import { balanceOf, creditIn } from '../../limits/budgets/prepaid.ts'
import { type OnDebited, rearmLowBalance } from '../low-balance.ts'
import { findEntry, type LedgerRow, listLatestEntries } from './operator-queries.ts'

export interface OperatorCreditsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly orgExists: (orgId: number) => Promise<boolean>
  /** Turns the trial keys of the organisation into standard keys. */
  readonly promote: (tx: Tx, orgId: number, at: Date) => Promise<readonly NewsItem[]>
  readonly onDebited: OnDebited
  /** Writes the usage that is not in the ledger yet. */
  readonly journal: Flushable
}

export interface OperatorCredit {
  readonly orgId: number
  readonly reason: 'grant' | 'correction'
  /** Above zero for a grant. A correction may also be below zero. */
  readonly amountUinr: bigint
  /** The purpose in the operator's words. The organisation sees it in its ledger. A second credit with the same ref moves no money. */
  readonly ref: string
}

export interface CreditGiven {
  /** False when the same credit was given before and this one changed nothing. */
  readonly credited: boolean
  readonly balanceUinr: bigint
}

/** Maximum amount of one grant: one crore rupees. A higher amount is probably a typing error. */
const amountMaxUinr = 10_000_000_000_000n
const refShape = /^[^\p{Cc}]{1,100}$/u

export class OperatorCredits {
  readonly #deps: OperatorCreditsDeps
  constructor(deps: OperatorCreditsDeps) {
    this.#deps = deps
  }

  /**
   * Moves money once for a reason and ref. A credit also turns trial keys into standard keys. Throws `not_found` for an unknown organisation. Throws
   * `bad_request` for an invalid amount or ref, and for a ref that is in the ledger with another amount.
   */
  async give({ orgId, reason, amountUinr, ref: typed }: OperatorCredit): Promise<CreditGiven> {
    const ref = typed.trim()
    if (!refShape.test(ref)) throw fail('bad_request', { message: 'ref: write 1 to 100 characters that say what the money is for.' })
    if (amountUinr === 0n || (reason === 'grant' && amountUinr < 0n))
      throw fail('bad_request', {
        message: reason === 'grant' ? 'inr: a grant is an amount above zero; credit correct takes money away.' : 'inr: the amount may not be 0.',
      })
    if (amountUinr > amountMaxUinr || amountUinr < -amountMaxUinr)
      throw fail('bad_request', { message: `inr: at most ₹${inrTextOf(amountMaxUinr)} in one grant; give more in parts, each with its own ref.` })
    await this.#mustExist(orgId)
    // The journal is flushed first, so that earlier usage comes before this credit in the ledger. Flushes run concurrently.
    await this.#deps.journal.flushNow()
    const at = new Date(this.#deps.clock.nowMs())
    return this.#deps.controlLog.change<CreditGiven>(async tx => {
      // Every transaction locks keys before money. When a credit is repeated, the keys are standard already.
      const promoted = amountUinr > 0n ? await this.#deps.promote(tx, orgId, at) : []
      const { credited, balanceUinr, news } = await creditIn(tx, { orgId, amountUinr, reason, ref, at })
      if (!credited) {
        await sameAsBefore(tx, { orgId, reason, amountUinr, ref })
        return { value: { credited, balanceUinr }, news: promoted }
      }
      if (amountUinr > 0n) await rearmLowBalance(tx, orgId, balanceUinr)
      else await this.#deps.onDebited(tx, [{ orgId, balanceUinr }])
      return { value: { credited, balanceUinr }, news: [...news, ...promoted] }
    })
  }

  /** Returns the balance and the newest rows of the ledger. Throws `not_found`. */
  async show(orgId: number, limit: number): Promise<{ balanceUinr: bigint; ledger: readonly LedgerRow[] }> {
    await this.#mustExist(orgId)
    await this.#deps.journal.flushNow()
    return this.#deps.db.tx(async tx => ({ balanceUinr: await balanceOf(tx, orgId), ledger: await tx.many(listLatestEntries, orgId, limit) }))
  }

  async #mustExist(orgId: number): Promise<void> {
    if (!(await this.#deps.orgExists(orgId))) throw fail('not_found', { message: `There is no organisation ${orgId}.` })
  }
}

/** Throws when the ledger has the ref with another amount. Such a credit is a mistake and not a repetition. */
async function sameAsBefore(tx: Tx, { orgId, reason, amountUinr, ref }: OperatorCredit): Promise<void> {
  const before = await tx.maybe(findEntry, orgId, reason, ref)
  if (before !== null && before.amountUinr !== amountUinr)
    throw fail('bad_request', {
      message: `ref: "${ref}" is in the ledger of organisation ${orgId} since ${before.at.toISOString()}, with ₹${inrTextOf(before.amountUinr)}. Nothing was changed; another sum needs another ref.`,
    })
}
