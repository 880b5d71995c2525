/** The documents of an organisation for auditors. They say where its calls were served and what processed its data. They never contain content of calls. */
import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import type { AccessRule } from '../../platform/security/principal.ts'
import { type Attestations, attestationKeysPath } from './attestation/attestation.ts'
import { publicJwk } from './attestation/attestation-keys.ts'
import { attestationReport } from './attestation/attestation-report.ts'
import { attestation } from './attestation/attestation-shape.ts'
import type { Dpias } from './dpia/dpia.ts'
import { dpiaReport } from './dpia/dpia-report.ts'
import { dpia } from './dpia/dpia-shape.ts'
import { auditHead, auditRow, headsPageMax } from './heads/audit-head-shape.ts'
import type { AuditHeads } from './heads/audit-heads.ts'
import { defaultWindow } from './window.ts'

const row = endpointOf<{ attestations: Attestations; dpias: Dpias; auditHeads: AuditHeads }>()

/** The role of the credential's user decides. An agent has no role, so it is refused. */
const access: AccessRule = { role: 'admin', orCapability: ['usage:org:view', 'cost:org:view', 'audit:view'], noAgents: true }
/** The rows contain addresses of people, as the audit trail does. */
const auditorAccess: AccessRule = { role: 'admin', orCapability: ['audit:view'], noAgents: true }
const query = z.object({
  window: z.string().optional().describe(`The last N IST days, today included: 1d to 365d. Default ${defaultWindow}.`),
  format: z.enum(['json', 'report']).optional().describe('report: Markdown.'),
})
const istDay = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a day, YYYY-MM-DD')
const errors = ['bad_request', 'forbidden', 'database_unavailable', 'internal_error'] as const
/** How long a verifier may cache the published keys. */
const keysMaxAgeSeconds = 300
const notStored = { 'cache-control': 'no-store' } as const
const markdown = (text: string) => reply.text(text, 'text/markdown; charset=utf-8', notStored)

export const complianceEndpoints = {
  residencyAttestation: row({
    at: 'GET /v1/org/residency/attestation',
    auth: 'key-or-session',
    access,
    tag: 'compliance',
    summary:
      'Where the calls of the organisation were served, signed: share in India over the window, and the newest calls as evidence. format=report: Markdown.',
    input: { query },
    output: attestation,
    errors,
    async handle({ attestations }, { query: { window = defaultWindow, format } }, call) {
      const made = await attestations.make(call.principal.orgId, window, call.baseUrl)
      return format === 'report' ? markdown(attestationReport(made)) : reply.json(made, 200, notStored)
    },
  }),

  dpia: row({
    at: 'GET /v1/org/dpia',
    auth: 'key-or-session',
    access,
    tag: 'compliance',
    summary:
      'Data-protection impact assessment: models and providers that processed data of the organisation, where, for which agents, and what is kept. format=report: Markdown.',
    input: { query },
    output: dpia,
    errors,
    async handle({ dpias }, { query: { window = defaultWindow, format } }, call) {
      const made = await dpias.make(call.principal.orgId, window, call.baseUrl)
      return format === 'report' ? markdown(dpiaReport(made)) : reply.json(made, 200, notStored)
    },
  }),

  listToolAuditHeads: row({
    at: 'GET /v1/org/tool-audit/heads',
    auth: 'key-or-session',
    access: auditorAccess,
    tag: 'compliance',
    summary:
      'The signed heads of the days with calls of tools or acts about tools, the oldest first. Each has the roots over the rows of its day and the hash of the head before.',
    input: {
      query: z.object({
        after: istDay.optional().describe('next_after of the page before: only later days.'),
        limit: z.coerce.number().int().min(1).max(headsPageMax).default(headsPageMax),
      }),
    },
    output: z.object({ heads: z.array(auditHead), next_after: z.string().nullable().describe('Null behind the last page.'), jwks_url: z.string() }),
    errors,
    async handle({ auditHeads }, { query: { after, limit } }, call) {
      const { heads, next } = await auditHeads.list(call.principal.orgId, after ?? null, limit)
      return reply.json({ heads: [...heads], next_after: next, jwks_url: call.baseUrl + attestationKeysPath }, 200, notStored)
    },
  }),

  listToolAuditRows: row({
    at: 'GET /v1/org/tool-audit/rows',
    auth: 'key-or-session',
    access: auditorAccess,
    tag: 'compliance',
    summary:
      'The rows of one day as the database has them now, in the form that the leaves of its head cover: calls of tools, then acts about tools. They have no content.',
    input: { query: z.object({ day: istDay.describe('The IST day on which the rows were written.'), cursor: z.string().max(200).optional() }) },
    output: z.object({
      rows: z.array(auditRow),
      next_cursor: z.string().nullable().describe('Null behind the last page. A page may be empty before that.'),
      calls_kept_from: z.string().nullable().describe('Calls of earlier IST days may have been deleted by age. Null: none was.'),
      acts_kept_from: z.string().describe('Acts before this instant may have been deleted by age.'),
    }),
    errors,
    async handle({ auditHeads }, { query: { day, cursor } }, call) {
      const { rows, nextCursor, callsKeptFrom, actsKeptFrom } = await auditHeads.rows(call.principal.orgId, day, cursor ?? null)
      return reply.json({ rows: [...rows], next_cursor: nextCursor, calls_kept_from: callsKeptFrom, acts_kept_from: actsKeptFrom }, 200, notStored)
    },
  }),

  attestationKeys: row({
    at: 'GET /.well-known/attestation-keys.json',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'The public keys of attestations, all that ever signed, the newest first.',
    input: {},
    output: z.object({ keys: z.array(publicJwk) }),
    errors: ['database_unavailable'],
    handle: async ({ attestations }) =>
      reply.json({ keys: await attestations.keys.published() }, 200, { 'cache-control': `public, max-age=${keysMaxAgeSeconds}` }),
  }),
}
