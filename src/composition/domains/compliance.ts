import { type Compliance, createCompliance } from '../../gateway/compliance/create-compliance.ts'
import { toolOrgs } from '../../gateway/tools/registry/tool-orgs.ts'
import type { AppParts } from '../parts.ts'

/** Connects compliance to the domains that it reports on. */
export function complianceServices(parts: AppParts): Compliance {
  const { db, clock, ids, config, sealer, controlLog, limits, orgs, memory, agents, catalog, jobs, audit, baseUrl } = parts
  return createCompliance({
    jobs,
    heads: { acts: audit.toolActs, auditKeepDays: config.AUDIT_KEEP_DAYS, baseUrl, orgs: (after, limit) => toolOrgs(db, after, limit) },
    db,
    clock,
    ids,
    sealer,
    controlLog,
    cacheTtlMs: config.CACHE_TTL_MS,
    evidenceMax: config.ATTESTATION_EVIDENCE_MAX,
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
  })
}
