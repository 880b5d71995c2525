/** The documents of an organisation for auditors. They say where its calls were served and what processed its data. They never contain content of calls. */
import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import type { AccessRule } from '../../platform/security/principal.ts'
import type { Attestations } from './attestation/attestation.ts'
import { publicJwk } from './attestation/attestation-keys.ts'
import { attestationReport } from './attestation/attestation-report.ts'
import { attestation } from './attestation/attestation-shape.ts'
import type { Dpias } from './dpia/dpia.ts'
import { dpiaReport } from './dpia/dpia-report.ts'
import { dpia } from './dpia/dpia-shape.ts'
import { defaultWindow } from './window.ts'

const row = endpointOf<{ attestations: Attestations; dpias: Dpias }>()

/** The role of the credential's user decides. An agent has no role, so it is refused. */
const access: AccessRule = { role: 'admin', orCapability: ['usage:org:view', 'cost:org:view', 'audit:view'], noAgents: true }
const query = z.object({
  window: z.string().optional().describe(`The last N IST days, today included: 1d to 365d. Default ${defaultWindow}.`),
  format: z.enum(['json', 'report']).optional().describe('report: Markdown.'),
})
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
