import type { Db } from '../../platform/db.ts'
import type { Principal } from '../../platform/principal.ts'

export interface AuditDeps {
  readonly db: Db
}

/** An act of management. Ids only: never a name that a user typed, never a secret. */
export interface Act {
  readonly orgId: number | null
  readonly actor: Principal | 'operator' | 'system'
  /** Name of the endpoint row or command. */
  readonly act: string
  /** On what, as `key=12` pairs. */
  readonly target: string | null
  readonly sourceIp: string | null
  readonly requestId: string | null
}

/** Who did what to what, from where, when. */
export class AuditTrail {
  readonly deps: AuditDeps
  constructor(deps: AuditDeps) {
    this.deps = deps
  }

  /** Writes down an act that has happened: commands of the operator, sweeps, sign-ins. */
  async record(_act: Act, _outcome: string): Promise<void> {}
}
