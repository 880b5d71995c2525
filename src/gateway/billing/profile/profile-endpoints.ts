/** The billing profile and the check of tax numbers. */
import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { gstinWords, readGstin } from '../invoices/tax/gstin.ts'
import type { BillingProfiles } from './profile.ts'

const row = endpointOf<{ billingProfiles: BillingProfiles }>()

const profile = z.object({
  legal_name: z.string().nullable(),
  billing_email: z.string().nullable().describe('Gets receipts and the word of a low balance, beside the owners.'),
  gstin: z.string().nullable(),
  pan: z.string().nullable().describe('Characters 3 to 12 of the GSTIN.'),
  state: z.string().nullable().describe('Of the GSTIN; without one, of the billing address.'),
  state_code: z.string().nullable(),
  business_invoices: z.boolean().describe('Whether a GSTIN can be given here.'),
})

export const billingProfileEndpoints = {
  billingProfile: row({
    at: 'GET /me/billing/profile',
    auth: 'session',
    access: {},
    tag: 'billing',
    summary: 'Legal name, mail address for bills and tax number of the organisation.',
    input: {},
    output: profile,
    errors: ['database_unavailable'],
    handle: ({ billingProfiles }, _input, { principal }) => billingProfiles.get(principal.orgId),
  }),

  setBillingProfile: row({
    at: 'POST /me/billing/profile',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'billing',
    summary: 'Sets the given fields of the billing profile; null clears one. A GSTIN is accepted if the operator has switched business invoices on.',
    input: {
      body: z.object({
        legal_name: z.string().nullable().optional().describe('At most 150 characters; is on invoices instead of the name in the address.'),
        billing_email: z.string().nullable().optional(),
        gstin: z.string().nullable().optional(),
      }),
    },
    output: profile.extend({ ok: z.literal(true) }),
    errors: ['forbidden', 'bad_request', 'bad_email', 'unavailable', 'database_unavailable'],
    handle: async ({ billingProfiles }, { body }, { principal }) => ({
      ok: true,
      ...(await billingProfiles.set(principal.orgId, { legalName: body.legal_name, billingEmail: body.billing_email, gstin: body.gstin })),
    }),
  }),

  validateGstin: row({
    at: 'POST /me/billing/validate-gstin',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'billing',
    summary:
      'Checks a GSTIN by its form, its state and its check character, and returns the PAN and state in it. No other service is called and nothing is kept.',
    input: { body: z.object({ gstin: z.string() }) },
    output: z.union([
      z.object({ valid: z.literal(true), pan: z.string(), state: z.string(), state_code: z.string() }),
      z.object({ valid: z.literal(false), reason: z.enum(['format', 'unknown_state', 'check_digit']), message: z.string() }),
    ]),
    errors: ['forbidden', 'bad_request'],
    // The handler changes nothing, so there is nothing to audit.
    audit: false,
    handle(_services, { body }) {
      const finding = readGstin(body.gstin)
      if (!finding.valid) return { valid: false, reason: finding.reason, message: gstinWords[finding.reason] }
      return { valid: true, pan: finding.pan, state: finding.state, state_code: finding.stateCode }
    },
  }),
}
