import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { cleanName } from '../../platform/values/clean-name.ts'
import { orgChanged } from './orgs.ts'
import { renameOrg, setDisplayCurrency, setKeyInactivityDays, setRetentionDays } from './queries.ts'

export interface OrgSettingsDeps {
  readonly controlLog: ControlLog
  /** The `kind` of the control-log item that makes routing read the retention window again. The item's `ref` is the organisation's id. */
  readonly routingChanged: string
  /** Is called after the commit and deletes content that is older than the window. It must be safe to call again. */
  onRetention(orgId: number, days: number): Promise<void>
}

/**
 * Settings of an organisation that owners and admins change. A change applies in this process immediately, and in other processes within a
 * second.
 */
export class OrgSettings {
  readonly #deps: OrgSettingsDeps

  constructor(deps: OrgSettingsDeps) {
    this.#deps = deps
  }

  /** Renames the organisation. Throws `bad_name`. */
  async rename(orgId: number, requested: string): Promise<void> {
    const name = cleanName(requested)
    await this.#deps.controlLog.change(async tx => {
      await tx.exec(renameOrg, orgId, name)
      return { value: undefined, news: [changed(orgId)] }
    })
  }

  /**
   * Sets the data-retention window in days. With 0, no content is kept, and models that need a window are refused. Content older than the
   * window is deleted before the promise resolves.
   */
  async setRetention(orgId: number, days: number): Promise<void> {
    const { controlLog, routingChanged, onRetention } = this.#deps
    await controlLog.change(async tx => {
      await tx.exec(setRetentionDays, orgId, days)
      return { value: undefined, news: [changed(orgId), { kind: routingChanged, ref: String(orgId) }] }
    })
    await onRetention(orgId, days)
  }

  /** Sets after how many days without use a key is disabled. Null switches the rule off. */
  async setKeyInactivity(orgId: number, days: number | null): Promise<void> {
    await this.#deps.controlLog.change(async tx => {
      await tx.exec(setKeyInactivityDays, orgId, days)
      return { value: undefined, news: [changed(orgId)] }
    })
  }

  /** Sets the currency that reports show beside rupees. Null: rupees only. */
  async setDisplayCurrency(orgId: number, currency: string | null): Promise<void> {
    await this.#deps.controlLog.change(async tx => {
      await tx.exec(setDisplayCurrency, orgId, currency)
      return { value: undefined, news: [changed(orgId)] }
    })
  }
}

const changed = (orgId: number): NewsItem => ({ kind: orgChanged, ref: String(orgId) })
