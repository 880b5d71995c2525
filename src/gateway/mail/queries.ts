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

/** What waits in the outbox, for the operator. `dueNow` counts mails that the sender would send now. */
export interface OutboxRow {
  readonly waiting: number
  readonly dueNow: number
  readonly oldestAt: Date | null
  readonly failed: number
}

export const readOutbox = statement<[now: Date], OutboxRow>(
  'mail.read_outbox',
  `select w.waiting, w.due_now as "dueNow", w.oldest_at as "oldestAt", f.failed
   from (select count(*)::int as waiting, count(*) filter (where due_at <= $1::timestamptz)::int as due_now, min(created_at) as oldest_at
         from emails where due_at is not null) w,
        (select count(*)::int as failed from emails where failed_at is not null) f`,
)

/** A mail that was not sent. It has neither the address nor the values of the mail. */
export interface UnsentRow {
  readonly id: bigint
  readonly orgId: number | null
  readonly template: string
  readonly attempts: number
  readonly createdAt: Date
  /** Null when the mail was given up. */
  readonly dueAt: Date | null
  readonly failedAt: Date | null
  readonly lastError: string | null
}

const unsentColumns = `id, org_id as "orgId", template, attempts, created_at as "createdAt", due_at as "dueAt", failed_at as "failedAt", last_error as "lastError"`

/** Returns the mails that were given up, the newest first, and those that wait after a failed attempt, the next one first. */
export const listUnsent = statement<[limit: number], UnsentRow>(
  'mail.list_unsent',
  `(select ${unsentColumns} from emails where failed_at is not null order by failed_at desc, id desc limit $1::int)
   union all
   (select ${unsentColumns} from emails where due_at is not null and attempts > 0 order by due_at limit $1::int)`,
)

/** Deletes mails that were sent or given up before the given time, so that names and addresses are not stored longer than necessary. */
export const deleteOldMails = statement<[before: Date]>(
  'mail.delete_old_mails',
  `delete from emails where sent_at < $1::timestamptz or failed_at < $1::timestamptz`,
)
