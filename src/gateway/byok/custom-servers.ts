import type { Db } from '../../platform/db.ts'
import type { CustomRoute } from './org-credentials.ts'

export interface CustomServersDeps {
  readonly db: Db
}

/** OpenAI-compatible servers that organisations have registered. */
export class CustomServers {
  readonly deps: CustomServersDeps
  constructor(deps: CustomServersDeps) {
    this.deps = deps
  }

  /** The registered servers of an organisation. */
  async ofOrg(_orgId: number): Promise<readonly CustomRoute[]> {
    return []
  }
}
