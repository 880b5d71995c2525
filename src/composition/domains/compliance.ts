/** Constructs the services for attestations and assessments. */

import { Attestations } from '../../gateway/compliance/attestation/attestation.ts'
import { AttestationKeys } from '../../gateway/compliance/attestation/attestation-keys.ts'
import { Dpias } from '../../gateway/compliance/dpia/dpia.ts'
import type { AppParts } from '../parts.ts'

export function complianceServices({ db, clock, ids, config, sealer, controlLog, limits, orgs, memory, agents, catalog }: AppParts) {
  const keys = new AttestationKeys({ db, clock, ids, sealer, controlLog, cacheTtlMs: config.CACHE_TTL_MS })
  return {
    attestations: new Attestations({ db, clock, keys, journal: limits, evidenceMax: config.ATTESTATION_EVIDENCE_MAX }),
    dpias: new Dpias({
      db,
      clock,
      journal: limits,
      snapshot: () => catalog.snapshot,
      async org(orgId) {
        const found = await orgs.find(orgId)
        return { name: found?.name ?? '', retentionDays: found?.retentionDays ?? 0 }
      },
      memoryStore: async orgId => (await memory.config.known(orgId))?.store ?? null,
      agentNames: (orgId, agentIds) => agents.names(orgId, agentIds),
      usageKeepDays: config.USAGE_KEEP_DAYS,
      keepTimes: {
        auditDays: config.AUDIT_KEEP_DAYS,
        webhookDays: config.WEBHOOK_KEEP_DAYS,
        sessionS: config.SESSION_TTL_S,
        journalMs: config.JOURNAL_KEEP_MS,
      },
    }),
  }
}
