import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { Attestations, type AttestationsDeps } from './attestation/attestation.ts'
import { AttestationKeys } from './attestation/attestation-keys.ts'
import { Dpias, type DpiasDeps } from './dpia/dpia.ts'
import { AuditHeads, type AuditHeadsDeps, headsEveryMs } from './heads/audit-heads.ts'

export interface ComplianceDeps extends DpiasDeps, Pick<AttestationsDeps, 'evidenceMax'> {
  readonly jobs: Jobs
  readonly heads: Pick<AuditHeadsDeps, 'acts' | 'auditKeepDays' | 'baseUrl' | 'orgs'>
  readonly ids: Ids
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly cacheTtlMs: number
}

export interface Compliance {
  readonly attestations: Attestations
  readonly dpias: Dpias
  readonly auditHeads: AuditHeads
}

/** Constructs the services for attestations and data-protection impact assessments, and registers the job that signs day heads. */
export function createCompliance({ ids, sealer, controlLog, cacheTtlMs, evidenceMax, jobs, heads, ...deps }: ComplianceDeps): Compliance {
  const { db, clock, journal } = deps
  const keys = new AttestationKeys({ db, clock, ids, sealer, controlLog, cacheTtlMs })
  const auditHeads = new AuditHeads({ db, clock, keys, ...heads })
  jobs.every('compliance.heads', headsEveryMs, async signal => {
    await auditHeads.makeDue(signal)
  })
  return { attestations: new Attestations({ db, clock, keys, journal, evidenceMax }), dpias: new Dpias(deps), auditHeads }
}
