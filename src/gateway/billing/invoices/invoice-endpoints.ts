import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import type { BillingDocuments } from './billing-documents.ts'
import { invoicePage } from './pages/invoice-page.ts'
import { receiptPage } from './pages/receipt-page.ts'

const row = endpointOf<{ billingDocuments: BillingDocuments }>()

const pageDefault = 50
const pageMax = 200
const page = { media: 'text/html' } as const
const path = z.object({ paymentId: z.string().describe('payment_id of a captured payment.') })

const invoice = z.object({
  number: z.string().describe('For example BR/26-27/000001: consecutive in each financial year.'),
  payment_id: z.string(),
  date: z.string().describe('IST day, YYYY-MM-DD.'),
  issued_at: z.string().describe('ISO 8601, UTC.'),
  total_inr: z.number().describe('What was paid, tax included: the sum of the parts below.'),
  taxable_inr: z.number(),
  cgst_inr: z.number(),
  sgst_inr: z.number().describe('State tax; in a union territory without a legislature its UTGST.'),
  igst_inr: z.number(),
  place_of_supply: z.string().nullable().describe('Two digits of the GST state list.'),
})

export const invoiceEndpoints = {
  listInvoices: row({
    at: 'GET /me/invoices',
    auth: 'session',
    access: {},
    tag: 'billing',
    summary: 'Invoices of the organisation, one for each captured top-up, newest first.',
    input: {
      query: z.object({
        before: z
          .string()
          .regex(/^[A-Z0-9/-]{1,16}$/, 'must be the next_before of an earlier page')
          .optional()
          .describe('next_before of the page before.'),
        limit: z.coerce.number().int().min(1).max(pageMax).optional().describe('Invoices of a page. Default 50.'),
      }),
    },
    output: z.object({
      invoices: z.array(invoice),
      next_before: z.string().nullable().describe('Send it as before for the next page; null: this was the last.'),
    }),
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ billingDocuments }, { query }, { principal }) => billingDocuments.list(principal.orgId, query.before ?? null, query.limit ?? pageDefault),
  }),

  getInvoice: row({
    at: 'GET /me/invoices/{paymentId}',
    auth: 'session',
    access: {},
    tag: 'billing',
    summary: 'The invoice of a payment as a page to print or to keep as PDF.',
    input: { path },
    output: page,
    errors: ['not_found', 'database_unavailable'],
    handle: async ({ billingDocuments }, { path: { paymentId } }, { principal }) => invoicePage(await billingDocuments.invoice(principal.orgId, paymentId)),
  }),

  getReceipt: row({
    at: 'GET /me/billing/receipts/{paymentId}',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'billing',
    summary: 'The receipt of a captured payment as a page to print. For owners.',
    input: { path },
    output: page,
    errors: ['forbidden', 'not_found', 'database_unavailable'],
    handle: async ({ billingDocuments }, { path: { paymentId } }, { principal }) => receiptPage(await billingDocuments.receipt(principal.orgId, paymentId)),
  }),
}
