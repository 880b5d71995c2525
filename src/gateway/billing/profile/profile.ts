/** The fields of invoices besides the address: legal name, tax number and mail address. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { isMailAddress } from '../../mail/safe-text.ts'
import { findBillingProfile, type ProfileRow, saveBillingProfile } from '../account-queries.ts'
import { stateName } from '../invoices/tax/gst-states.ts'
import { gstinWords, readGstin } from '../invoices/tax/gstin.ts'
import { readLine } from './address.ts'

export interface BillingProfilesDeps {
  readonly db: Db
  readonly clock: Clock
  /** The setting GST_BUSINESS_INVOICES. */
  readonly businessInvoices: boolean
}

/** The profile as the API returns it. PAN and state come from the GSTIN. Without a GSTIN, the state is that of the billing address. */
export interface BillingProfile {
  readonly legal_name: string | null
  readonly billing_email: string | null
  readonly gstin: string | null
  readonly pan: string | null
  readonly state: string | null
  readonly state_code: string | null
  /** True when the gateway accepts a GSTIN. */
  readonly business_invoices: boolean
}

/** The fields that a write sets. An undefined field does not change, and null clears a field. */
export interface BillingProfileChange {
  readonly legalName?: string | null | undefined
  readonly billingEmail?: string | null | undefined
  readonly gstin?: string | null | undefined
}

const legalNameMax = 150

/** Billing profiles of organisations. */
export class BillingProfiles {
  readonly #deps: BillingProfilesDeps
  constructor(deps: BillingProfilesDeps) {
    this.#deps = deps
  }

  async get(orgId: number): Promise<BillingProfile> {
    return this.#view(await this.#deps.db.maybe(findBillingProfile, orgId))
  }

  /** Sets fields and returns the profile. Throws `bad_request` and `bad_email`. Throws `unavailable` for a GSTIN while business invoices are off. */
  async set(orgId: number, change: BillingProfileChange): Promise<BillingProfile> {
    const { db, clock } = this.#deps
    const legalName = legalNameOf(change.legalName)
    const billingEmail = emailOf(change.billingEmail)
    const gstin = this.#gstinOf(change.gstin)
    const at = new Date(clock.nowMs())
    const sets = [change.legalName !== undefined, change.billingEmail !== undefined, change.gstin !== undefined] as const
    await db.exec(saveBillingProfile, orgId, sets[0], legalName, sets[1], billingEmail, sets[2], gstin, at)
    return this.get(orgId)
  }

  #gstinOf(sent: string | null | undefined): string | null {
    if (sent === undefined || sent === null) return null
    if (!this.#deps.businessInvoices)
      throw fail('unavailable', {
        message: 'Invoices with a GSTIN are not available here yet: the operator switches them on when e-invoicing is settled. Leave gstin out.',
      })
    const finding = readGstin(sent)
    if (!finding.valid) throw fail('bad_request', { message: `Field "gstin": ${gstinWords[finding.reason]}` })
    return finding.gstin
  }

  #view(row: ProfileRow | null): BillingProfile {
    const gstin = row?.gstin ?? null
    const finding = gstin === null ? null : readGstin(gstin)
    const addressState = row?.addressStateCode ?? null
    return {
      legal_name: row?.legalName ?? null,
      billing_email: row?.billingEmail ?? null,
      gstin,
      pan: finding?.valid ? finding.pan : null,
      state: finding?.valid ? finding.state : addressState === null ? null : stateName(addressState),
      state_code: finding?.valid ? finding.stateCode : addressState,
      business_invoices: this.#deps.businessInvoices,
    }
  }
}

function legalNameOf(sent: string | null | undefined): string | null {
  if (sent === undefined || sent === null) return null
  const finding = readLine(sent, legalNameMax)
  if ('wrong' in finding) throw fail('bad_request', { message: `Field "legal_name" ${finding.wrong}.` })
  return finding.text
}

function emailOf(sent: string | null | undefined): string | null {
  if (sent === undefined || sent === null) return null
  const email = sent.trim()
  if (!isMailAddress(email)) throw fail('bad_email', { message: 'Field "billing_email" must be one e-mail address.' })
  return email
}
