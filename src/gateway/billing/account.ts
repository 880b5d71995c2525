/** The account of an organisation: its balance, ledger, payments, usage and settings. */

import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import type { Flushable } from '../../platform/flushable.ts'
import { istDay } from '../../platform/values/ist-time.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import { type AddressJson, findOverview, type LedgerJson, type PaymentJson, saveAddress, saveThreshold, type UsageJson } from './account-queries.ts'
import { type BillingAddress, readAddress, type SentAddress } from './profile/address.ts'

export interface AccountsDeps {
  readonly db: Db
  readonly clock: Clock
  /** Writes the charges of this process to the database. */
  readonly journal: Flushable
}

/** A row of the ledger as the API returns it. */
export interface LedgerEntry {
  readonly id: number
  readonly kind: LedgerJson['kind']
  readonly reason: LedgerJson['reason']
  readonly amount_inr: number
  readonly balance_after_inr: number
  readonly ref: string
  readonly created_at: string
}

/** The position where the next page of the ledger starts. The page has the rows with ids below `id`. `balanceUinr` is the balance after the first of them. */
export interface LedgerCursor {
  readonly id: bigint
  readonly balanceUinr: bigint
}

const usageDays = 30
const paymentsMax = 200
const dayMs = 24 * 3600_000

/** Billing accounts of organisations. */
export class BillingAccounts {
  readonly #deps: AccountsDeps
  constructor(deps: AccountsDeps) {
    this.#deps = deps
  }

  /** Returns the whole account from one statement. It includes the calls that this process has already served. */
  async overview(orgId: number, before: LedgerCursor | null, limit: number) {
    const { db, clock, journal } = this.#deps
    await journal.flushNow()
    const days = lastDays(clock.nowMs())
    const [firstDay = '', lastDay = ''] = [days[0], days.at(-1)]
    const row = await db.one(findOverview, orgId, before?.id ?? null, limit + 1, paymentsMax, firstDay, lastDay)
    const { entries, next } = pageOf(row.ledger, before?.balanceUinr ?? row.balanceUinr, limit)
    return {
      balance_inr: inrFromUinr(row.balanceUinr),
      low_balance_threshold_inr: row.thresholdUinr === null ? null : inrFromUinr(row.thresholdUinr),
      ledger: entries,
      next_before: next === null ? null : `${next.id}.${next.balanceUinr}`,
      payments: row.payments.map(paymentView),
      usage_30d: days.map(day => usageView(day, row.usage)),
      address: row.address,
    }
  }

  /** Stores the address for future invoices. Issued invoices do not change. Throws `bad_address`, which names every invalid field. */
  async setAddress(orgId: number, sent: SentAddress): Promise<AddressJson> {
    const finding = readAddress(sent)
    if ('wrong' in finding) {
      const fields = [...finding.wrong].map(([field, why]) => `${field} ${why}`)
      throw fail('bad_address', { message: `${fields.join('; ')}.`, extra: { fields: Object.fromEntries(finding.wrong) } })
    }
    const { name, line1, line2, city, state, stateCode, pincode, country } = finding.address
    const { db, clock } = this.#deps
    await db.exec(saveAddress, orgId, name, line1, line2, city, state, stateCode, pincode, country, new Date(clock.nowMs()))
    return addressView(finding.address)
  }

  /** Sets the threshold in micro-rupees above zero; null switches the low-balance warning off. */
  async setThreshold(orgId: number, thresholdUinr: bigint | null): Promise<void> {
    await this.#deps.db.exec(saveThreshold, orgId, thresholdUinr, new Date(this.#deps.clock.nowMs()))
  }
}

function addressView({ stateCode, ...address }: BillingAddress): AddressJson {
  const { name, line1, line2, city, state, pincode, country } = address
  return { name, line1, line2, city, state, state_code: stateCode, pincode, country }
}

/** Returns the last 30 IST days including today, oldest first. */
function lastDays(nowMs: number): string[] {
  return Array.from({ length: usageDays }, (_, i) => istDay(nowMs - (usageDays - 1 - i) * dayMs))
}

/**
 * Returns ledger rows with the balance after each row. `balanceUinr` is the balance after the first row. The other balances are computed backwards
 * from it. The caller passes one row more than `limit` when there is a next page.
 */
export function pageOf(
  rows: readonly LedgerJson[],
  balanceUinr: bigint,
  limit: number,
): { readonly entries: LedgerEntry[]; readonly next: LedgerCursor | null } {
  let after = balanceUinr
  const entries = rows.slice(0, limit).map(({ id, kind, reason, uinr, ref, ms }) => {
    const entry = {
      id: Number(id),
      kind,
      reason,
      amount_inr: inrFromUinr(BigInt(uinr)),
      balance_after_inr: inrFromUinr(after),
      ref,
      created_at: new Date(ms).toISOString(),
    }
    after -= BigInt(uinr)
    return entry
  })
  const last = rows[limit - 1]
  return { entries, next: rows.length > limit && last !== undefined ? { id: BigInt(last.id), balanceUinr: after } : null }
}

function paymentView({ uinr, bonus, returned, ms, captured_ms, ...payment }: PaymentJson) {
  return {
    ...payment,
    amount_inr: inrFromUinr(BigInt(uinr)),
    bonus_inr: inrFromUinr(BigInt(bonus)),
    returned_inr: inrFromUinr(BigInt(returned)),
    created_at: new Date(ms).toISOString(),
    captured_at: captured_ms === null ? null : new Date(captured_ms).toISOString(),
  }
}

function usageView(day: string, usage: readonly UsageJson[]) {
  const { requests = 0, tokens = 0, uinr = '0' } = usage.find(row => row.day === day) ?? {}
  return { day, requests, tokens, cost_inr: inrFromUinr(BigInt(uinr)) }
}
