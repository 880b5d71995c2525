import { statement } from '../../platform/db/db.ts'

/** Whose batches and files a caller sees. */
export type Viewer = readonly [orgId: number, seesAll: boolean, agentId: number | null, keyId: number, userId: number | null]

/** SQL condition on the columns `t`: an agent sees its own and those of agents below it, a key its own, a full key also those of its person. */
const isVisible = `t.org_id = $1::int and ($2::boolean
     or case when $3::int is not null then t.agent_id = $3::int or $3::int = any(t.ancestor_ids)
        else t.key_id = $4::int or ($5::int is not null and t.user_id = $5::int) end)`

// ---- files

export interface FileRow {
  readonly id: string
  readonly keyId: number
  readonly agentId: number | null
  readonly purpose: 'input' | 'output' | 'error'
  readonly bytes: bigint
  readonly lines: number
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  readonly upstreamModel: string
  readonly byok: boolean
  readonly upstreamId: string
  readonly holdUinr: bigint
  readonly lineUinr: bigint
  readonly lineOutputTokens: number
  readonly price: unknown
  readonly createdAt: Date
  readonly expiresAt: Date
}

const fileColumns = `t.id as "id", t.key_id as "keyId", t.agent_id as "agentId", t.purpose as "purpose", t.bytes as "bytes", t.lines as "lines",
     t.endpoint as "endpoint", t.model as "model", t.provider as "provider", t.upstream_model as "upstreamModel", t.byok as "byok",
     t.upstream_id as "upstreamId", t.hold_uinr as "holdUinr", t.line_uinr as "lineUinr", t.line_output_tokens as "lineOutputTokens", t.price as "price",
     t.created_at as "createdAt", t.expires_at as "expiresAt"`

/** Writes rows that are given as JSON with the names of their columns. */
export const insertFiles = statement<[rows: string]>(
  'batches.insert_files',
  `insert into batch_files select * from jsonb_populate_recordset(null::batch_files, $1::jsonb) on conflict (id) do nothing`,
)

export const sumFiles = statement<[orgId: number], { files: number; bytes: bigint }>(
  'batches.sum_files',
  `select count(*)::int as "files", coalesce(sum(bytes), 0)::bigint as "bytes" from batch_files where org_id = $1::int`,
)

/** A file whose time has ended is gone, also while it waits for its deletion at the provider. */
export const findFile = statement<[...Viewer, id: string, now: Date], FileRow>(
  'batches.find_file',
  `select ${fileColumns} from batch_files t where ${isVisible} and t.id = $6::text and t.expires_at > $7::timestamptz`,
)

export const listFiles = statement<[...Viewer, after: string | null, limit: number, now: Date], FileRow>(
  'batches.list_files',
  `select ${fileColumns} from batch_files t where ${isVisible} and t.expires_at > $8::timestamptz
     and ($6::text is null or (t.created_at, t.id) < (select a.created_at, a.id from batch_files a where a.org_id = $1::int and a.id = $6::text))
   order by t.created_at desc, t.id desc limit $7::int`,
)

/** Ends files no later than a number of days after they were made. */
export const shrinkFiles = statement<[orgId: number, days: number]>(
  'batches.shrink_files',
  `update batch_files set expires_at = created_at + make_interval(hours => 24 * $2::int)
   where org_id = $1::int and expires_at > created_at + make_interval(hours => 24 * $2::int)`,
)

export const deleteFile = statement<[orgId: number, id: string]>('batches.delete_file', 'delete from batch_files where org_id = $1::int and id = $2::text')

/** Returns true when an unfinished batch reads the file. */
export const isFileInUse = statement<[orgId: number, id: string], { inUse: boolean }>(
  'batches.is_file_in_use',
  `select exists (select 1 from batches where org_id = $1::int and input_file_id = $2::text and settled_at is null) as "inUse"`,
)

/** An expired file. */
export type ExpiredFile = Pick<FileRow, 'id' | 'provider' | 'byok' | 'upstreamId' | 'expiresAt'> & { readonly orgId: number }

/** Finds expired files that are due, of each organisation at most as many as of any other. */
export const findExpiredFiles = statement<[now: Date, ofOrg: number, limit: number], ExpiredFile>(
  'batches.find_expired_files',
  `select id as "id", org_id as "orgId", provider as "provider", byok as "byok", upstream_id as "upstreamId", expires_at as "expiresAt"
   from (select f.*, row_number() over (partition by f.org_id order by f.expires_at, f.id) as place from batch_files f
     where f.expires_at <= $1::timestamptz and coalesce(f.retry_at, f.expires_at) <= $1::timestamptz) as due
   where place <= $2::int order by place, id limit $3::int`,
)

export const postponeFile = statement<[orgId: number, id: string, until: Date]>(
  'batches.postpone_file',
  'update batch_files set retry_at = $3::timestamptz where org_id = $1::int and id = $2::text',
)

// ---- batches

export interface BatchRow {
  readonly id: string
  readonly orgId: number
  readonly userId: number | null
  readonly keyId: number
  readonly workspaceId: number | null
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly ancestorIds: readonly number[]
  readonly runId: string | null
  readonly runAgentId: number | null
  readonly format: 'openai' | 'anthropic'
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  readonly dialect: string
  readonly residency: string
  readonly byok: boolean
  readonly debits: boolean
  readonly upstreamId: string | null
  readonly inputFileId: string | null
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  readonly status: string
  readonly lines: number
  readonly completed: number
  readonly failed: number
  readonly holdUinr: bigint
  readonly price: unknown
  readonly charge: unknown
  readonly eventId: string
  readonly requestId: string
  readonly admittedAt: Date
  readonly beganAt: Date | null
  readonly endedAt: Date | null
  readonly expiresAt: Date
  readonly cancelAskedAt: Date | null
  readonly cancelSentAt: Date | null
  readonly polls: number
  readonly settledAt: Date | null
  readonly valueUinr: bigint | null
  readonly costUinr: bigint | null
}

const batchColumns = `t.id as "id", t.org_id as "orgId", t.user_id as "userId", t.key_id as "keyId", t.workspace_id as "workspaceId", t.agent_id as "agentId",
     t.agent_label as "agentLabel", t.ancestor_ids as "ancestorIds", t.run_id as "runId", t.run_agent_id as "runAgentId", t.format as "format",
     t.endpoint as "endpoint", t.model as "model", t.provider as "provider", t.dialect as "dialect", t.residency as "residency", t.byok as "byok",
     t.debits as "debits", t.upstream_id as "upstreamId", t.input_file_id as "inputFileId", t.output_file_id as "outputFileId",
     t.error_file_id as "errorFileId", t.status as "status", t.lines as "lines", t.completed as "completed", t.failed as "failed",
     t.hold_uinr as "holdUinr", t.price as "price", t.charge as "charge", t.event_id as "eventId", t.request_id as "requestId",
     t.admitted_at as "admittedAt", t.began_at as "beganAt", t.ended_at as "endedAt", t.expires_at as "expiresAt", t.cancel_asked_at as "cancelAskedAt",
     t.cancel_sent_at as "cancelSentAt", t.polls as "polls", t.settled_at as "settledAt", t.value_uinr as "valueUinr", t.cost_uinr as "costUinr"`

export const insertBatch = statement<[row: string]>(
  'batches.insert_batch',
  `insert into batches select * from jsonb_populate_record(null::batches, '{"completed":0,"failed":0,"polls":0}'::jsonb || $1::jsonb)`,
)

export const countOpen = statement<[orgId: number], { count: number }>(
  'batches.count_open',
  `select count(*)::int as "count" from batches where org_id = $1::int and settled_at is null`,
)

export const findBatch = statement<[...Viewer, format: string, id: string], BatchRow>(
  'batches.find_batch',
  `select ${batchColumns} from batches t where ${isVisible} and t.format = $6::text and t.id = $7::text`,
)

export const listBatches = statement<[...Viewer, format: string, after: string | null, limit: number], BatchRow>(
  'batches.list_batches',
  `select ${batchColumns} from batches t where ${isVisible} and t.format = $6::text
     and ($7::text is null or (t.admitted_at, t.id) < (select a.admitted_at, a.id from batches a where a.org_id = $1::int and a.id = $7::text))
   order by t.admitted_at desc, t.id desc limit $8::int`,
)

/** Notes the id that the provider gave, once. */
export const setUpstream = statement<[id: string, upstreamId: string, status: string, now: Date]>(
  'batches.set_upstream',
  `update batches set upstream_id = $2::text, status = $3::text, began_at = coalesce(began_at, $4::timestamptz)
   where id = $1::text and upstream_id is null and settled_at is null`,
)

/**
 * Says which of the given ids of a provider belong to batches, and how many other batches at the provider, with as many lines and admitted within some minutes,
 * have none yet.
 */
export const findRivals = statement<
  [id: string, upstreamIds: readonly string[], provider: string, lines: number, from: Date, to: Date],
  { taken: readonly string[]; rivals: number }
>(
  'batches.find_rivals',
  `select (select coalesce(array_agg(t.upstream_id), '{}') from batches t where t.upstream_id = any($2::text[]) and t.provider = $3::text) as "taken",
     (select count(*)::int from batches r where r.id <> $1::text and r.provider = $3::text and r.format = 'anthropic' and r.upstream_id is null
        and r.lines = $4::int and r.admitted_at between $5::timestamptz and $6::timestamptz) as "rivals"`,
)

export const deleteBatch = statement<[orgId: number, id: string]>('batches.delete_batch', 'delete from batches where org_id = $1::int and id = $2::text')

/** Asks for the end of a batch. The next look at the provider is due immediately. */
export const askCancel = statement<[orgId: number, id: string, now: Date]>(
  'batches.ask_cancel',
  `update batches set cancel_asked_at = coalesce(cancel_asked_at, $3::timestamptz), next_poll_at = least(next_poll_at, $3::timestamptz)
   where org_id = $1::int and id = $2::text and settled_at is null`,
)

/** Asks for the end of the batches whose agent, an agent above it, or key is revoked, or whose run is ended. */
export const cancelRevoked = statement<[now: Date]>(
  'batches.cancel_revoked',
  `update batches b set cancel_asked_at = $1::timestamptz, next_poll_at = least(b.next_poll_at, $1::timestamptz)
   where b.settled_at is null and b.cancel_asked_at is null
     and (exists (select 1 from agents a where a.org_id = b.org_id and (a.id = b.agent_id or a.id = any(b.ancestor_ids)) and a.status = 'revoked')
       or exists (select 1 from api_keys k where k.org_id = b.org_id and k.id = b.key_id and k.revoked_at is not null)
       or (b.run_id is not null and exists (select 1 from run_ends e where e.org_id = b.org_id and e.run_id = b.run_id
         and e.owner_kind = case when b.run_agent_id is null then 'key' else 'agent' end and e.owner_id = coalesce(b.run_agent_id, b.key_id))))`,
)

/**
 * Claims due batches. A row whose claim has ended, because its process died, is claimed again. Of an organisation at most `orgMost` are claimed at a time, so
 * that its long results leave places to others. `onlyCancels` claims batches whose provider must still be asked to cancel.
 */
export const claimBatches = statement<[now: Date, claim: string, until: Date, limit: number, orgMost: number, onlyCancels: boolean], BatchRow>(
  'batches.claim',
  `update batches t set claimed_by = $2::uuid, claimed_until = $3::timestamptz
   where t.id in (
     select d.id from batches d where d.settled_at is null and d.next_poll_at <= $1::timestamptz and (d.claimed_until is null or d.claimed_until <= $1::timestamptz)
       and d.id in (
         select p.id from (
           select c.id, row_number() over (partition by c.org_id order by c.next_poll_at, c.id)
             + (select count(*) from batches u where u.org_id = c.org_id and u.settled_at is null and u.claimed_until > $1::timestamptz) as "place"
           from batches c where c.settled_at is null and c.next_poll_at <= $1::timestamptz and (c.claimed_until is null or c.claimed_until <= $1::timestamptz)
             and (not $6::boolean or (c.cancel_asked_at is not null and c.cancel_sent_at is null))) p
         where p.place <= $5::int)
     order by d.next_poll_at, d.id for update skip locked limit $4::int)
   returning ${batchColumns}`,
)

export const renewClaim = statement<[id: string, claim: string, until: Date]>(
  'batches.renew_claim',
  `update batches set claimed_until = $3::timestamptz where id = $1::text and claimed_by = $2::uuid and settled_at is null`,
)

/** Ends a claim, with the next look and what the provider said. Null leaves a value unchanged. */
export const endClaim = statement<
  [id: string, claim: string, nextPollAt: Date, status: string | null, completed: number | null, failed: number | null, cancelSentAt: Date | null]
>(
  'batches.end_claim',
  `update batches set claimed_by = null, claimed_until = null, polls = polls + 1, next_poll_at = $3::timestamptz, status = coalesce($4::text, status),
     completed = coalesce($5::int, completed), failed = coalesce($6::int, failed), cancel_sent_at = coalesce(cancel_sent_at, $7::timestamptz)
   where id = $1::text and claimed_by = $2::uuid and settled_at is null`,
)

/** Marks a batch as settled, once. A claim that is given must still be the last one. */
export const settleBatch = statement<
  [
    id: string,
    status: string,
    completed: number,
    failed: number,
    outputFileId: string | null,
    errorFileId: string | null,
    now: Date,
    valueUinr: bigint,
    costUinr: bigint,
    claim: string | null,
  ]
>(
  'batches.settle',
  `update batches set settled_at = $7::timestamptz, ended_at = $7::timestamptz, status = $2::text, completed = $3::int, failed = $4::int,
     output_file_id = $5::text, error_file_id = $6::text, value_uinr = $8::bigint, cost_uinr = $9::bigint, claimed_by = null, claimed_until = null
   where id = $1::text and settled_at is null and ($10::uuid is null or claimed_by = $10::uuid)`,
)

export const deleteOldBatches = statement<[before: Date, limit: number]>(
  'batches.delete_old',
  `delete from batches where id in (select id from batches where settled_at < $1::timestamptz order by settled_at limit $2::int)`,
)

/** Finds settled batches that still hold something, and holds of no batch. */
export const violationsOfHolds = statement<[], { owner: string }>(
  'batches.violations_of_holds',
  `select distinct h.owner as "owner" from lasting_holds h left join batches b on b.id = h.owner where b.id is null or b.settled_at is not null`,
)

/** Finds settled batches whose event has another value. Days whose events were deleted are left out. */
export const violationsOfEvents = statement<[], { id: string; value: bigint; sum: bigint }>(
  'batches.violations_of_events',
  `select b.id as "id", b.value_uinr as "value", coalesce(e.value_uinr, 0)::bigint as "sum"
   from batches b left join usage_events e on e.id = b.event_id and e.day = (b.admitted_at at time zone 'Asia/Kolkata')::date
   where b.settled_at is not null and b.value_uinr is distinct from coalesce(e.value_uinr, -1)
     and (b.admitted_at at time zone 'Asia/Kolkata')::date >= coalesce((select kept_from from usage_retention), '-infinity'::date)`,
)
