import { statement } from '../../../platform/db/db.ts'
import type { StoredStep } from '../../routing/chains.ts'

/** The data of a collection that a round needs. */
export interface RoundCollection {
  readonly id: number
  readonly orgId: number
  readonly slug: string
  readonly modelId: string
  readonly steps: readonly StoredStep[]
}

/** Locks the organisation. Monitors are then switched on one after the other, so their count is right. */
export const lockMonitorsOfOrg = statement<[orgId: number], { id: number }>(
  'collections.lock_monitors_of_org',
  'select id from orgs where id = $1::int for no key update',
)

export const countMonitored = statement<[orgId: number], { count: number }>(
  'collections.count_monitored',
  'select count(*)::int as "count" from collections where org_id = $1::int and monitored',
)

/** Switches monitoring on or off. Changes no row when the setting is the same. The collection is locked until the transaction ends. */
export const setMonitored = statement<[orgId: number, collectionId: number, monitored: boolean]>(
  'collections.set_monitored',
  'update collections set monitored = $3::bool where org_id = $1::int and id = $2::int and monitored <> $3::bool',
)

/** Sets when the next round is due. Null means that no round is due. */
export const setDue = statement<[orgId: number, collectionId: number, dueAt: Date | null]>(
  'collections.set_due',
  `insert into collection_monitors (org_id, collection_id, due_at) values ($1::int, $2::int, $3::timestamptz)
   on conflict (collection_id) do update set due_at = excluded.due_at`,
)

/**
 * Claims rounds that are due, of all organisations. The next round of each collection is due after one pause that varies by 10 percent. When the
 * process of a claim dies, one round is lost. A due time that is more than 2.5 pauses ahead comes from another clock or setting, so its round is
 * claimed now.
 */
export const claimDueRounds = statement<[now: Date, pauseS: number, limit: number], RoundCollection>(
  'collections.claim_due_rounds',
  `with due as (
     select collection_id from collection_monitors
     where due_at <= $1::timestamptz or due_at > $1::timestamptz + make_interval(secs => 2.5 * $2::int)
     order by due_at limit $3::int for no key update skip locked)
   update collection_monitors m
   set due_at = $1::timestamptz + make_interval(secs => $2::int * (0.9 + 0.2 * random())), begun_at = $1::timestamptz, ended_at = null
   from due join collections c on c.id = due.collection_id
   where m.collection_id = due.collection_id
   returning c.id, c.org_id as "orgId", c.slug, c.model_id as "modelId", c.steps`,
)

/**
 * Claims a round that a caller requests, unless the last round began after `begunBefore`. The next round of a monitored collection is then due at
 * `nextDue`. When two claims wait for each other, the later one may have the earlier time. So a begin slightly ahead of `now` means that a round is
 * running. A begin further ahead than the difference of `now` and `begunBefore` comes from another clock.
 */
export const claimRound = statement<[orgId: number, collectionId: number, now: Date, begunBefore: Date, nextDue: Date], { id: number }>(
  'collections.claim_round',
  `with held as (select id, org_id from collections where org_id = $1::int and id = $2::int for key share)
   insert into collection_monitors as m (collection_id, org_id, begun_at)
   select held.id, held.org_id, $3::timestamptz from held
   on conflict (collection_id) do update
   set begun_at = $3::timestamptz, ended_at = null, due_at = case when m.due_at is null then null else $5::timestamptz end
   where m.begun_at is null or m.begun_at <= $4::timestamptz or m.begun_at > $3::timestamptz + ($3::timestamptz - $4::timestamptz)
   returning m.collection_id as "id"`,
)

/** Reads the begin and end of the last round. */
export const findRound = statement<[orgId: number, collectionId: number], { begunAt: Date | null; endedAt: Date | null }>(
  'collections.find_round',
  'select begun_at as "begunAt", ended_at as "endedAt" from collection_monitors where org_id = $1::int and collection_id = $2::int',
)

/** Locks the collection. Do this before locking its rounds, because deleting a collection uses the same order. */
export const holdCollection = statement<[orgId: number, collectionId: number], { steps: readonly StoredStep[]; name: string; slug: string }>(
  'collections.hold',
  'select steps, name, slug from collections where org_id = $1::int and id = $2::int for key share',
)

/** Locks the rounds of a collection, so that results of two rounds are written one after the other. */
export const lockRound = statement<[orgId: number, collectionId: number], { isMonitored: boolean }>(
  'collections.lock_round',
  'select due_at is not null as "isMonitored" from collection_monitors where org_id = $1::int and collection_id = $2::int for no key update',
)

export const endRound = statement<[orgId: number, collectionId: number, begunAt: Date, now: Date]>(
  'collections.end_round',
  `update collection_monitors set ended_at = $4::timestamptz
   where org_id = $1::int and collection_id = $2::int and begun_at = $3::timestamptz`,
)
