/** Statements about requests for more budget, and about the increases that answer them. */
import { statement } from '../../../platform/db/db.ts'
import type { BudgetPeriod } from '../budgets/periods/period.ts'
import type { Scope } from '../engine/counters/counter-state.ts'
import { type IncreaseRow, increaseEndOf, increaseOf } from '../engine/queries.ts'

/** The scope of a budget, or a run. */
export type RequestScope = Exclude<Scope, 'team'> | 'run'

export interface RequestRow {
  readonly id: bigint
  readonly scope: RequestScope
  readonly targetId: string
  readonly targetName: string | null
  readonly period: BudgetPeriod | null
  readonly runOwner: 'agent' | 'key' | null
  readonly runId: string | null
  readonly amountUinr: bigint | null
  readonly calls: bigint | null
  readonly reason: string
  readonly askedByKey: number | null
  readonly askedByAgent: number | null
  readonly askedByUser: number | null
  readonly askerName: string | null
  readonly askedAt: Date
  readonly expiresAt: Date
  readonly state: 'open' | 'granted' | 'refused' | 'expired'
  readonly decidedAt: Date | null
  readonly decidedByUser: number | null
  readonly deciderName: string | null
  readonly grantedUinr: bigint | null
  readonly grantedCalls: bigint | null
  readonly increaseUntil: Date | null
}

const columns = `b.id as "id", b.scope as "scope", b.target_id as "targetId", coalesce(ta.name, tk.name, tw.name, tu.name, tu.email, o.name) as "targetName",
     b.period as "period", b.run_owner as "runOwner", b.run_id as "runId", b.amount_uinr as "amountUinr", b.calls as "calls", b.reason as "reason",
     b.asked_by_key as "askedByKey", b.asked_by_agent as "askedByAgent", b.asked_by_user as "askedByUser",
     coalesce(aa.name, ak.name, au.name, au.email) as "askerName", b.asked_at as "askedAt", b.expires_at as "expiresAt", b.state as "state",
     b.decided_at as "decidedAt", b.decided_by_user as "decidedByUser", coalesce(d.name, d.email) as "deciderName", b.granted_uinr as "grantedUinr",
     b.granted_calls as "grantedCalls", b.increase_until as "increaseUntil"`
const names = `left join agents ta on ta.org_id = b.org_id and coalesce(b.run_owner, b.scope) = 'agent' and ta.id = b.target_id::int
   left join api_keys tk on tk.org_id = b.org_id and coalesce(b.run_owner, b.scope) = 'key' and tk.id = b.target_id::int
   left join workspaces tw on tw.org_id = b.org_id and b.scope = 'workspace' and tw.id = b.target_id::int
   left join users tu on b.scope = 'member' and tu.id = b.target_id::int
   left join orgs o on b.scope = 'org' and o.id = b.org_id
   left join agents aa on aa.org_id = b.org_id and aa.id = b.asked_by_agent
   left join api_keys ak on ak.org_id = b.org_id and b.asked_by_agent is null and ak.id = b.asked_by_key
   left join users au on b.asked_by_key is null and au.id = b.asked_by_user
   left join users d on d.id = b.decided_by_user`

/** Lets the requests of an organisation be made one after the other, so that their bounds hold. */
export const lockAsking = statement<[orgId: number], { id: number }>('limits.lock_asking', `select id as "id" from orgs where id = $1::int for no key update`)

/** Closes the open request for a subject when its time is over, so that another one can be made. */
export const expireRequest = statement<[orgId: number, subject: string, now: Date]>(
  'limits.expire_request',
  `update budget_requests set state = 'expired' where org_id = $1::int and subject = $2::text and state = 'open' and expires_at <= $3::timestamptz`,
)

/**
 * Counts the open requests of an organisation and all of its requests since a time, and both for one asker. The counts of the organisation stop at their
 * bound. Agents of one family count together. `rootId` is the agent at the top of the family, and at most three others are between it and an asker.
 */
export const countRequests = statement<
  [orgId: number, now: Date, since: Date, rootId: number | null, keyId: number | null, userId: number | null, most: number],
  { open: number; ofOrg: number; ofAsker: number; openOfAsker: number }
>(
  'limits.count_requests',
  `select
     (select count(*)::int from (select 1 from budget_requests where org_id = $1::int and state = 'open' and expires_at > $2::timestamptz limit $7::int) a) as "open",
     (select count(*)::int from (select 1 from budget_requests where org_id = $1::int and asked_at > $3::timestamptz limit $7::int) b) as "ofOrg",
     count(*) filter (where asked_at > $3::timestamptz)::int as "ofAsker",
     count(*) filter (where state = 'open' and expires_at > $2::timestamptz)::int as "openOfAsker"
   from (
     select r.asked_at, r.state, r.expires_at from budget_requests r
     left join agents a on a.org_id = r.org_id and a.id = r.asked_by_agent
     left join agents p on p.org_id = a.org_id and p.id = a.parent_id
     left join agents g on g.org_id = p.org_id and g.id = p.parent_id
     left join agents h on h.org_id = g.org_id and h.id = g.parent_id
     where r.org_id = $1::int and (r.asked_at > $3::timestamptz or (r.state = 'open' and r.expires_at > $2::timestamptz))
       and coalesce(h.id, g.id, p.id, r.asked_by_agent) is not distinct from $4::int
       and ($4::int is not null or r.asked_by_key is not distinct from $5::int)
       and ($4::int is not null or $5::int is not null or r.asked_by_user is not distinct from $6::int)) of_asker`,
)

/** Returns nothing when an open request for the subject exists. */
export const insertRequest = statement<
  [
    orgId: number,
    subject: string,
    scope: string,
    targetId: string,
    period: string | null,
    runOwner: string | null,
    runId: string | null,
    amountUinr: bigint | null,
    calls: bigint | null,
    reason: string,
    keyId: number | null,
    agentId: number | null,
    userId: number | null,
    now: Date,
    expiresAt: Date,
  ],
  { id: bigint }
>(
  'limits.insert_request',
  `insert into budget_requests (org_id, subject, scope, target_id, period, run_owner, run_id, amount_uinr, calls, reason, asked_by_key, asked_by_agent,
     asked_by_user, asked_at, expires_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bigint, $9::bigint, $10::text, $11::int, $12::int, $13::int,
     $14::timestamptz, $15::timestamptz)
   on conflict (org_id, subject) where state = 'open' do nothing returning id as "id"`,
)

/**
 * Returns requests, the newest first. A key sees those that were made with it, an agent its own, and a person those that they made and those for agents and
 * keys of theirs. With three nulls, all of the organisation are returned.
 */
export const listRequests = statement<
  [
    orgId: number,
    before: bigint,
    limit: number,
    isOpen: boolean,
    now: Date,
    agentId: number | null,
    keyId: number | null,
    userId: number | null,
    runId: string | null,
  ],
  RequestRow
>(
  'limits.list_requests',
  `select ${columns} from (
     select * from budget_requests r where r.org_id = $1::int and r.id < $2::bigint and (not $4::boolean or (r.state = 'open' and r.expires_at > $5::timestamptz))
       and ($6::int is null or r.asked_by_agent = $6::int) and ($7::int is null or r.asked_by_key = $7::int) and ($9::text is null or r.run_id = $9::text)
       and ($8::int is null or r.asked_by_user = $8::int
         or exists (select 1 from agents a where a.org_id = r.org_id and a.owner_user = $8::int and coalesce(r.run_owner, r.scope) = 'agent' and a.id = r.target_id::int)
         or exists (select 1 from api_keys k where k.org_id = r.org_id and k.user_id = $8::int and coalesce(r.run_owner, r.scope) = 'key' and k.id = r.target_id::int))
     order by r.id desc limit $3::int) b ${names} order by b.id desc`,
)

export const findRequest = statement<[orgId: number, id: bigint], RequestRow>(
  'limits.find_request',
  `select ${columns} from budget_requests b ${names} where b.org_id = $1::int and b.id = $2::bigint`,
)

/** Locks a request that can still be decided. */
export const lockOpenRequest = statement<[orgId: number, id: bigint, now: Date], { id: bigint }>(
  'limits.lock_open_request',
  `select id as "id" from budget_requests where org_id = $1::int and id = $2::bigint and state = 'open' and expires_at > $3::timestamptz for update`,
)

export const decideRequest = statement<
  [orgId: number, id: bigint, state: string, now: Date, userId: number, uinr: bigint | null, calls: bigint | null, until: Date | null]
>(
  'limits.decide_request',
  `update budget_requests set state = $3::text, decided_at = $4::timestamptz, decided_by_user = $5::int, granted_uinr = $6::bigint, granted_calls = $7::bigint,
     increase_until = $8::timestamptz
   where org_id = $1::int and id = $2::bigint`,
)

/** Deletes requests, with their reasons, that were decided or have expired before a time. At most `limit`. */
export const deleteOldRequests = statement<[before: Date, limit: number]>(
  'limits.delete_old_requests',
  `delete from budget_requests where id = any(array(
     select id from budget_requests where expires_at < $1::timestamptz and coalesce(decided_at, expires_at) < $1::timestamptz order by expires_at limit $2::int))`,
)

// ---- increases

/** Locks a counter and returns its increase. */
export const lockIncrease = statement<
  [orgId: number, scope: string, scopeId: string, metric: string, period: string],
  IncreaseRow & { id: bigint; cap: bigint | null }
>(
  'limits.lock_increase',
  `select c.id as "id", c.cap as "cap", ${increaseOf('c')} as "extra", ${increaseEndOf('c')} as "extraUntil" from counters c
   where c.org_id = $1::int and c.scope = $2::text and c.scope_id = $3::text and c.metric = $4::text and c.period = $5::text for no key update`,
)

/** Sets the increase of a counter. The marks of a run fire again when the run has moved away from them. */
export const setIncrease = statement<[orgId: number, id: bigint, extra: bigint, until: Date]>(
  'limits.set_increase',
  `update counters c set extra = $3::bigint, extra_until = $4::timestamptz,
     warned_at = case when c.metric in ('run_spend', 'run_calls') and c.spent * 5 < (c.cap + $3::bigint) * 4 then null else c.warned_at end,
     blocked_at = case when c.metric in ('run_spend', 'run_calls') and c.spent < c.cap + $3::bigint then null else c.blocked_at end
   where c.org_id = $1::int and c.id = $2::bigint`,
)
