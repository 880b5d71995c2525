import type { Db } from '../../platform/db.ts'
import type { SavedKey } from './org-credentials.ts'

export interface ProviderKeysDeps {
  readonly db: Db
}

/** Keys that organisations have at providers. */
export class ProviderKeys {
  readonly deps: ProviderKeysDeps
  constructor(deps: ProviderKeysDeps) {
    this.deps = deps
  }

  /** The saved keys of an organisation by provider id, opened. */
  async ofOrg(_orgId: number): Promise<ReadonlyMap<string, SavedKey>> {
    return new Map()
  }
}
