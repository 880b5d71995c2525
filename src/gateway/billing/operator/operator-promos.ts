/** The operator's commands for promo codes: create, list and end. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { inrTextOf } from '../../../platform/values/money.ts'
import { endPromo, insertPromo, listPromos, type PromoRow } from './operator-queries.ts'

export interface NewPromo {
  readonly code: string
  readonly bonusUinr: bigint
  readonly topupMinUinr: bigint
  /** Maximum number of redemptions. Null means no maximum. Each organisation redeems a code once. */
  readonly redemptionsMax: number | null
  readonly expiresAt: Date | null
}

/** A code with its present state. */
export interface Promo extends PromoRow {
  readonly state: 'active' | 'ended' | 'expired' | 'used_up'
}

const codeShape = /^[A-Z0-9][A-Z0-9-]{2,31}$/
/** The largest top-up: ₹1,00,000. A bonus above it is probably a typing error. */
const topupMaxUinr = 100_000_000_000n

export class OperatorPromos {
  readonly #db: Db
  readonly #clock: Clock
  constructor(deps: { readonly db: Db; readonly clock: Clock }) {
    this.#db = deps.db
    this.#clock = deps.clock
  }

  /** Creates a code. Throws `bad_request` for an invalid code, for a code that could never be used, and for a code that exists. */
  async create({ code: typed, bonusUinr, topupMinUinr, redemptionsMax, expiresAt }: NewPromo): Promise<Promo> {
    const code = cleanCode(typed)
    const now = new Date(this.#clock.nowMs())
    if (bonusUinr <= 0n || bonusUinr > topupMaxUinr)
      throw fail('bad_request', { message: `bonus-inr: write an amount above 0 and up to ₹${inrTextOf(topupMaxUinr)}.` })
    if (topupMinUinr < 0n || topupMinUinr > topupMaxUinr)
      throw fail('bad_request', { message: `min-topup-inr: no top-up is larger than ₹${inrTextOf(topupMaxUinr)}.` })
    if (expiresAt !== null && expiresAt <= now) throw fail('bad_request', { message: `expires-at: ${expiresAt.toISOString()} is past.` })
    const made = await this.#db.maybe(insertPromo, code, bonusUinr, topupMinUinr, redemptionsMax, expiresAt, now)
    if (made === null) throw fail('bad_request', { message: `code: there is a code ${code} already, or was one. Choose another.` })
    return this.#withState(made)
  }

  /** All codes, newest first. */
  async list(): Promise<Promo[]> {
    return (await this.#db.many(listPromos)).map(row => this.#withState(row))
  }

  /** Ends a code. An open order with the code can still be paid, but brings no bonus. A second call changes nothing. Throws `not_found`. */
  async end(typed: string): Promise<Promo> {
    const code = cleanCode(typed)
    const ended = await this.#db.maybe(endPromo, code, new Date(this.#clock.nowMs()))
    if (ended === null) throw fail('not_found', { message: `There is no promo code ${code}. brigade admin promo list shows them.` })
    return this.#withState(ended)
  }

  #withState(row: PromoRow): Promo {
    const isExpired = row.expiresAt !== null && row.expiresAt.getTime() <= this.#clock.nowMs()
    const isUsedUp = row.redemptionsMax !== null && row.redemptions >= row.redemptionsMax
    return { ...row, state: row.endedAt !== null ? 'ended' : isExpired ? 'expired' : isUsedUp ? 'used_up' : 'active' }
  }
}

function cleanCode(text: string): string {
  const code = text.trim().toUpperCase()
  if (!codeShape.test(code)) throw fail('bad_request', { message: 'code: 3 to 32 letters, digits and dashes, beginning with a letter or digit.' })
  return code
}
