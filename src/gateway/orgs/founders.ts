/**
 * Who founded an organisation. One person may have several organisations, so what is shared in a process is shared by founders: places,
 * room for bodies, and judgements of routes. Decision 0465 says why.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import { type Db, statement } from '../../platform/db/db.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'

/** The most organisations whose founder is remembered: one for each key and session that a process remembers. */
const knownMax = 100_000
/** The most founders that were looked up for their own sake, and how long they are believed. */
const lookedUpMax = 20_000
const lookedUpTtlMs = 3_600_000

/** One word for all organisations of one founder. What the operator made is of its first owner, and without one it is its own founder. */
const founderWord = `coalesce(
  'user ' || coalesce(o.created_by, (select min(m.user_id) from org_members m where m.org_id = o.id and m.role = 'owner')),
  'organisation ' || o.id)`

/** SQL of the founder of the organisation with that id, for queries of other domains that load a caller. */
export const founderSql = (orgId: string): string => `(select ${founderWord} from orgs o where o.id = ${orgId})`

const findFounder = statement<[orgId: number], { founder: string }>('orgs.find_founder', `select ${founderWord} as "founder" from orgs o where o.id = $1::int`)

/** 0, 1 or 2 organisations and founders: two stand for any number above one. */
const countFounders = statement<[], { organisations: number; founders: number }>(
  'orgs.count_founders',
  `select (select count(*)::int from (select 1 from orgs limit 2) as first_two) as "organisations",
     (select count(*)::int from (select distinct ${founderWord} from orgs o limit 2) as founders) as "founders"`,
)

/** Says the founder of an organisation: one word, the same for all organisations of one person. */
export type FounderOf = (orgId: number) => string

/** An organisation without a known founder is its own founder. */
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

  /** Remembers the founder of an organisation. Who loads a key or a session from the database notes the founder that came with it. */
  note(orgId: number, founder: string): void {
    this.#known.set(orgId, founder)
  }

  /** The founder without a look at the database: every caller who was let in is known. */
  readonly known: FounderOf = orgId => this.#known.get(orgId) ?? ownFounder(orgId)

  /** The founder, also of an organisation that has not called this process; null: there is no such organisation. Synchronous when known. */
  of(orgId: number): ReturnType<ExpiringCache<number, string>['get']> {
    return this.#known.get(orgId) ?? this.#lookedUp.get(orgId)
  }

  /**
   * A number for the founder, also of an organisation that has not called this process: the negative id of the person, or the id of an
   * organisation that is its own founder. It asks the database, so it is for work that nobody waits for.
   */
  async numberOf(orgId: number): Promise<number> {
    const person = /^user ([0-9]+)$/.exec((await this.of(orgId)) ?? '')?.[1]
    return person === undefined ? orgId : -Number(person)
  }

  /** How many organisations and founders there are: 0, 1 or 2. Two stand for any number above one. */
  count(): Promise<{ organisations: number; founders: number }> {
    return this.#db.one(countFounders)
  }
}
