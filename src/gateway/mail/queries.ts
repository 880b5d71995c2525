import { statement } from '../../platform/db/db.ts'

/** Puts a mail into the outbox, due immediately. Writes nothing when a mail with the same `onceKey` exists. */
export const insertMail = statement<[orgId: number | null, to: string, template: string, data: string, onceKey: string | null, at: Date]>(
  'mail.insert_mail',
  `insert into emails (org_id, to_address, template, data, once_key, created_at, due_at)
   values ($1::int, $2::text, $3::text, $4::jsonb, $5::text, $6::timestamptz, $6::timestamptz)
   on conflict (once_key) do nothing`,
)

export interface ClaimedMail {
  readonly id: bigint
  readonly orgId: number | null
  readonly to: string
  readonly template: string
  readonly data: unknown
  readonly createdAt: Date
  /** Number of attempts, including this one. Together with the id it identifies the claim. */
  readonly attempts: number
}

/**
 * Claims mails that are due and sets their due time to the end of the claim. If the process dies, the mails become due again by themselves.
 */
export const claimMails = statement<[now: Date, leaseUntil: Date, limit: number], ClaimedMail>(
  'mail.claim_mails',
  `update emails set due_at = $2::timestamptz, attempts = attempts + 1
   where id in (select e.id from emails e where e.due_at <= $1::timestamptz order by e.due_at, e.id limit $3::int for update skip locked)
   returning id as "id", org_id as "orgId", to_address as "to", template as "template", data as "data", created_at as "createdAt", attempts as "attempts"`,
)

/** Marks a mail as sent. It has an effect only while this claim is the latest, so that a slow process cannot overwrite the result of another process. */
export const markSent = statement<[id: bigint, attempts: number, at: Date]>(
  'mail.mark_sent',
  `update emails set sent_at = $3::timestamptz, due_at = null, last_error = null where id = $1::bigint and attempts = $2::int and due_at is not null`,
)

export const retryLater = statement<[id: bigint, attempts: number, dueAt: Date, lastError: string]>(
  'mail.retry_later',
  `update emails set due_at = $3::timestamptz, last_error = $4::text where id = $1::bigint and attempts = $2::int and due_at is not null`,
)

export const markFailed = statement<[id: bigint, attempts: number, at: Date, lastError: string]>(
  'mail.mark_failed',
  `update emails set failed_at = $3::timestamptz, due_at = null, last_error = $4::text where id = $1::bigint and attempts = $2::int and due_at is not null`,
)

/** Counts waiting and given-up mails of the installation, for the operator. */
export const countMails = statement<[], { waiting: number; failed: number }>(
  'mail.count_mails',
  `select count(*) filter (where due_at is not null)::int as "waiting", count(*) filter (where failed_at is not null)::int as "failed" from emails`,
)

/** Deletes mails that were sent or given up before the given time, so that names and addresses are not stored longer than necessary. */
export const deleteOldMails = statement<[before: Date]>(
  'mail.delete_old_mails',
  `delete from emails where sent_at < $1::timestamptz or failed_at < $1::timestamptz`,
)
