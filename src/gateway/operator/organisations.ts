import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { istDay } from '../../platform/values/ist-time.ts'
import { type ListedOrg, type OrgFilter, pageOfOrgs } from '../orgs/installation/org-list.ts'
import { type OrgTotals, totalsByOrg } from '../usage/reports/org-totals.ts'

/** An organisation with what it did in the span of a page. It has nothing that the organisation keeps, and no person. */
export interface OrgOfInstallation {
  readonly org: ListedOrg
  readonly totals: OrgTotals
}

export interface OrgsOfInstallationPage {
  readonly organisations: readonly OrgOfInstallation[]
  /** The first and the last Indian day of the span. */
  readonly from: string
  readonly to: string
  readonly nextCursor: string | null
}

const dayMs = 24 * 3600_000
const none: OrgTotals = { calls: 0, errors: 0, valueUinr: 0n, costUinr: 0n }

/** The organisations of the installation, for the operator. */
export class InstallationOrgs {
  readonly #db: Db
  readonly #clock: Clock

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  /** Returns a page of organisations with their sums of the last `days` Indian days, today included. Throws `bad_request` for an invalid cursor. */
  async page(filter: OrgFilter, days: number): Promise<OrgsOfInstallationPage> {
    const nowMs = this.#clock.nowMs()
    const [from, to] = [istDay(nowMs - (days - 1) * dayMs), istDay(nowMs)]
    const { orgs, nextCursor } = await pageOfOrgs(this.#db, filter)
    const totals = await totalsByOrg(
      this.#db,
      orgs.map(({ id }) => id),
      from,
      to,
    )
    return { organisations: orgs.map(org => ({ org, totals: totals.get(org.id) ?? none })), from, to, nextCursor }
  }
}
