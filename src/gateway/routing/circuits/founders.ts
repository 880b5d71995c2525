/** Who founded an organisation: routes are judged by people, because one person may have several organisations. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { ExpiringCache } from '../../../platform/loop/expiring-cache.ts'
import { countOrganisations, findFounder } from '../outages/maintenance-queries.ts'

/** Founders that are remembered, and how long: an organisation keeps its founder. */
const foundersMax = 20_000
const foundersTtlMs = 3_600_000

export class Founders {
  readonly #db: Db
  readonly #cache: ExpiringCache<number, string>

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    const load = async (orgId: number) => (await db.maybe(findFounder, orgId))?.founder ?? null
    this.#cache = new ExpiringCache<number, string>({ max: foundersMax, ttlMs: foundersTtlMs, clock, load })
  }

  /** One word for the founder of an organisation, the same for all organisations of one person. */
  of(orgId: number): ReturnType<ExpiringCache<number, string>['get']> {
    return this.#cache.get(orgId)
  }

  /** How many organisations and founders there are: 0, 1 or 2. Two stand for any number above one. */
  count(): Promise<{ organisations: number; founders: number }> {
    return this.#db.one(countOrganisations)
  }
}
