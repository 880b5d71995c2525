import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { cleanName } from '../../platform/values/clean-name.ts'
import { orgChanged } from './orgs.ts'
import { renameOrg, setKeyInactivityDays, setRetentionDays } from './queries.ts'

export interface OrgSettingsDeps {
  readonly controlLog: ControlLog
  /** Kind of the news after which routing reads the window again; the ref is the organisation's id. */
  readonly routingChanged: string
  /** Called after the commit: what is older than the window goes. Must stand being called again. */
  onRetention(orgId: number, days: number): Promise<void>
}

/** What owners and admins decide of the organisation as a whole. A change holds here immediately, in other processes within a second. */
export class OrgSettings {
  readonly #deps: OrgSettingsDeps

  constructor(deps: OrgSettingsDeps) {
    this.#deps = deps
  }

  /** Throws `bad_name`. */
  async rename(orgId: number, requested: string): Promise<void> {
    const name = cleanName(requested)
    await this.#deps.controlLog.change(async tx => {
      await tx.exec(renameOrg, orgId, name)
      return { value: undefined, news: [changed(orgId)] }
    })
  }

  /** Sets the data-retention window in days; 0 closes gated models and keeps no content. Content that is too old is gone when this returns. */
  async setRetention(orgId: number, days: number): Promise<void> {
    const { controlLog, routingChanged, onRetention } = this.#deps
    await controlLog.change(async tx => {
      await tx.exec(setRetentionDays, orgId, days)
      return { value: undefined, news: [changed(orgId), { kind: routingChanged, ref: String(orgId) }] }
    })
    await onRetention(orgId, days)
  }

  /** Sets the days without use after which a key is disabled; null switches the rule off. */
  async setKeyInactivity(orgId: number, days: number | null): Promise<void> {
    await this.#deps.controlLog.change(async tx => {
      await tx.exec(setKeyInactivityDays, orgId, days)
      return { value: undefined, news: [changed(orgId)] }
    })
  }
}

const changed = (orgId: number): NewsItem => ({ kind: orgChanged, ref: String(orgId) })
