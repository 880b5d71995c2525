import type { Db } from '../../platform/db.ts'
import type { ChainStep } from '../wire/router-fields.ts'

export interface ChainsDeps {
  readonly db: Db
}

/** Saved fallback chains. */
export class Chains {
  readonly deps: ChainsDeps
  constructor(deps: ChainsDeps) {
    this.deps = deps
  }

  /** The chains of an organisation by model id. */
  async ofOrg(_orgId: number): Promise<ReadonlyMap<string, readonly ChainStep[]>> {
    return new Map()
  }
}
