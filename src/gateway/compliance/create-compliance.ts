import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { Attestations, type AttestationsDeps } from './attestation/attestation.ts'
import { AttestationKeys } from './attestation/attestation-keys.ts'
import { Dpias, type DpiasDeps } from './dpia/dpia.ts'

export interface ComplianceDeps extends DpiasDeps, Pick<AttestationsDeps, 'evidenceMax'> {
  readonly ids: Ids
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly cacheTtlMs: number
}

export interface Compliance {
  readonly attestations: Attestations
  readonly dpias: Dpias
}

/** Constructs the services for attestations and data-protection impact assessments. */
export function createCompliance({ ids, sealer, controlLog, cacheTtlMs, evidenceMax, ...deps }: ComplianceDeps): Compliance {
  const { db, clock, journal } = deps
  const keys = new AttestationKeys({ db, clock, ids, sealer, controlLog, cacheTtlMs })
  return { attestations: new Attestations({ db, clock, keys, journal, evidenceMax }), dpias: new Dpias(deps) }
}
