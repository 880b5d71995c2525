import { statement } from '../../../platform/db/db.ts'

/*
 * Records results of attempts. Each statement compares the claim, so that a slow process cannot overwrite the result of a process that claimed the
 * delivery later. The endpoint is locked before its deliveries, as in every change of an endpoint.
 */

/** Maximum number of attempts that a delivery remembers. The oldest is forgotten first. */
export const attemptsKeptMax = 20

/** SQL of the log of attempts with one more, which is the JSON in a parameter. Null adds none. */
const logWith = (entry: string): string =>
  `case when ${entry}::jsonb is null then attempt_log
     when jsonb_array_length(attempt_log) >= ${attemptsKeptMax} then (attempt_log - 0) || jsonb_build_array(${entry}::jsonb)
     else attempt_log || jsonb_build_array(${entry}::jsonb) end`

/** Records a success and sets the endpoint's failures to 0. A success counts even when the delivery was given up during the attempt. */
export const acknowledge = statement<[orgId: number, endpointId: number, id: string, claim: string, code: number, at: Date, attempt: string | null]>(
  'webhooks.acknowledge',
  `with healed as (
     update webhook_endpoints set failures = 0, paused_until = null
     where org_id = $1::int and id = $2::int and (failures > 0 or paused_until is not null) returning 1)
   update webhook_deliveries d
   set status = 'acknowledged', code = $5::int, error = null, due_at = null, claimed_until = null, claim = null, settled_at = $6::timestamptz,
     attempt_log = ${logWith('$7')}
   from (select count(*) as count from healed) h
   where d.org_id = $1::int and d.id = $3::uuid and d.claim = $4::uuid and h.count >= 0`,
)

export const lockEndpoint = statement<[orgId: number, id: number], { enabled: boolean; failures: number; url: string; orgName: string }>(
  'webhooks.lock_endpoint',
  `select e.enabled, e.failures, e.url, o.name as "orgName"
   from webhook_endpoints e join orgs o on o.id = e.org_id where e.org_id = $1::int and e.id = $2::int for no key update of e`,
)

/** Records a failed attempt. `dueAt` is null after the last attempt. A delivery that a person queued again during the attempt stays due. */
export const recordFailure = statement<
  [
    orgId: number,
    id: string,
    claim: string,
    status: 'failed' | 'dead',
    code: number | null,
    error: string,
    dueAt: Date | null,
    at: Date,
    attempt: string | null,
  ]
>(
  'webhooks.record_failure',
  `update webhook_deliveries
   set status = case when queued_after = attempts then status else $4::text end,
       code = case when queued_after = attempts then code else $5::int end,
       error = case when queued_after = attempts then error else $6::text end,
       due_at = case when queued_after = attempts then due_at else $7::timestamptz end,
       settled_at = case when queued_after = attempts or $7::timestamptz is not null then null else $8::timestamptz end,
       attempt_log = ${logWith('$9')}, claimed_until = null, claim = null
   where org_id = $1::int and id = $2::uuid and claim = $3::uuid and due_at is not null`,
)

/** Returns a claimed delivery to the queue as if it had not been claimed. */
export const putBack = statement<[orgId: number, id: string, claim: string, dueAt: Date]>(
  'webhooks.put_back',
  `update webhook_deliveries
   set attempts = attempts - 1, queued_after = least(queued_after, attempts - 1), due_at = $4::timestamptz, claimed_until = null, claim = null
   where org_id = $1::int and id = $2::uuid and claim = $3::uuid and due_at is not null`,
)

export const countFailure = statement<[orgId: number, endpointId: number, failures: number, pausedUntil: Date | null]>(
  'webhooks.count_failure',
  `update webhook_endpoints set failures = $3::int, paused_until = $4::timestamptz where org_id = $1::int and id = $2::int`,
)

export const disableEndpoint = statement<[orgId: number, endpointId: number, failures: number, reason: string]>(
  'webhooks.disable_endpoint',
  `update webhook_endpoints set enabled = false, disabled_reason = $4::text, failures = $3::int, paused_until = null
   where org_id = $1::int and id = $2::int`,
)

/** Returns the owners, who get the mail. */
export const ownersOf = statement<[orgId: number], { userId: number; email: string }>(
  'webhooks.owners_of',
  `select u.id as "userId", u.email from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.role = 'owner' and m.status = 'active' order by u.id`,
)
