/**
 * Finds the founder of an organisation, which is the person who created it. One person may create several organisations. So a process divides its resources
 * (places, memory for bodies) and its decisions about routes by founder and not by organisation. Decision 0465 gives the reasons.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import { type Db, statement } from '../../platform/db/db.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'

/** Maximum number of organisations whose founder is remembered. A process remembers a founder with each key and session. */
const knownMax = 100_000
/** Maximum number of founders that are kept after a query by id, and how long such an entry is used, in milliseconds. */
const lookedUpMax = 20_000
const lookedUpTtlMs = 3_600_000

/**
 * SQL for a text that is the same for all organisations of one founder. An organisation that the operator made belongs to its first owner. An
 * organisation without an owner is its own founder.
 */
const founderWord = `coalesce(
  'user ' || coalesce(o.created_by, (select min(m.user_id) from org_members m where m.org_id = o.id and m.role = 'owner')),
  'organisation ' || o.id)`

/** Returns SQL for the founder of the organisation with this id. Other domains use it in queries that load a caller. */
export const founderSql = (orgId: string): string => `(select ${founderWord} from orgs o where o.id = ${orgId})`

const findFounder = statement<[orgId: number], { founder: string }>('orgs.find_founder', `select ${founderWord} as "founder" from orgs o where o.id = $1::int`)

/** Counts organisations and founders up to 2. The value 2 means two or more. */
const countFounders = statement<[], { organisations: number; founders: number }>(
  'orgs.count_founders',
  `select (select count(*)::int from (select 1 from orgs limit 2) as first_two) as "organisations",
     (select count(*)::int from (select distinct ${founderWord} from orgs o limit 2) as founders) as "founders"`,
)

/** Returns the founder of an organisation as a text. All organisations of one person have the same founder. */
export type FounderOf = (orgId: number) => string

/** Returns the organisation itself as its founder, for use when the founder is not known. */
export const ownFounder: FounderOf = orgId => `organisation ${orgId}`

export class Founders {
  readonly #db: Db
  readonly #known = new LRUCache<number, string>({ max: knownMax })
  readonly #lookedUp: ExpiringCache<number, string>

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    const load = async (orgId: number): Promise<string | null> => (await db.maybe(findFounder, orgId))?.founder ?? null
    this.#lookedUp = new ExpiringCache<number, string>({ max: lookedUpMax, ttlMs: lookedUpTtlMs, clock, load })
  }

  /**
   * Remembers the founder of an organisation. Code that loads a key or a session from the database also loads the founder and calls this.
   */
  note(orgId: number, founder: string): void {
    this.#known.set(orgId, founder)
  }

  /** Returns the founder without a database query. The founder of every authenticated caller is known. */
  readonly known: FounderOf = orgId => this.#known.get(orgId) ?? ownFounder(orgId)

  /**
   * Returns the founder, also of an organisation that has not called this process. Returns null when the organisation does not exist. Returns without
   * a promise when the founder is known.
   */
  of(orgId: number): ReturnType<ExpiringCache<number, string>['get']> {
    return this.#known.get(orgId) ?? this.#lookedUp.get(orgId)
  }

  /**
   * Returns a number for the founder, also of an organisation that has not called this process. The number is the negative id of a person, or the id
   * of an organisation that is its own founder. This may query the database, so no call of a model may wait for it, except when it asks the database anyway.
   */
  async numberOf(orgId: number): Promise<number> {
    const person = /^user ([0-9]+)$/.exec((await this.of(orgId)) ?? '')?.[1]
    return person === undefined ? orgId : -Number(person)
  }

  /** Counts organisations and founders up to 2. The value 2 means two or more. */
  count(): Promise<{ organisations: number; founders: number }> {
    return this.#db.one(countFounders)
  }
}
