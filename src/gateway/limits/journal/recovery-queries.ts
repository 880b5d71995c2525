import { statement } from '../../../platform/db/db.ts'

// ---- records that the database refused

/** Parks a refused record. The money is text, because it may be the value that did not fit. */
export const insertParked = statement<[processId: bigint, endOffset: bigint, kind: string, eventId: string, valueUinr: string, reason: string, record: Buffer]>(
  'limits.insert_parked',
  `insert into parked_records (process_id, end_offset, kind, event_id, value_uinr, reason, record, at)
   values ($1::bigint, $2::bigint, $3::text, $4::text, $5::numeric, $6::text, $7::bytea, clock_timestamp())
   on conflict (process_id, end_offset, event_id) do nothing`,
)

export const countParked = statement<[], { records: number; valueUinr: string; reason: string | null }>(
  'limits.count_parked',
  `select count(*)::int as "records", coalesce(sum(value_uinr), 0)::numeric as "valueUinr",
     (select reason from parked_records order by id desc limit 1) as "reason"
   from parked_records`,
)

export interface ParkedRow {
  readonly id: bigint
  readonly at: Date
  readonly processId: bigint
  readonly kind: string
  readonly eventId: string
  readonly valueUinr: string
  readonly reason: string
  readonly record: Buffer
}

const parkedColumns = `id as "id", at as "at", process_id as "processId", kind as "kind", event_id as "eventId", value_uinr::text as "valueUinr",
  reason as "reason", record as "record"`

export const listParked = statement<[aboveId: bigint, limit: number], ParkedRow>(
  'limits.list_parked',
  `select ${parkedColumns} from parked_records where id > $1::bigint order by id limit $2::int`,
)

export const findParked = statement<[id: bigint], ParkedRow>('limits.find_parked', `select ${parkedColumns} from parked_records where id = $1::bigint`)

export const deleteParked = statement<[id: bigint]>('limits.delete_parked', 'delete from parked_records where id = $1::bigint')

// ---- silent processes

export interface SilentProcess {
  readonly id: bigint
  /** The folder of its journal, as the process named it. */
  readonly journal: string
  readonly silentSeconds: number
  /** The counters of current periods that the process leases a part of. */
  readonly counters: number
  /** The largest part of a budget or balance that the process leases, in micro-rupees. */
  readonly mostUinr: bigint
}

/** Finds processes with leases that have been silent for longer than they may serve. */
export const listSilent = statement<[silentMs: bigint], SilentProcess>(
  'limits.list_silent',
  `select p.id as "id", p.journal as "journal", floor(extract(epoch from clock_timestamp() - b.beat_at))::int as "silentSeconds",
     count(*)::int as "counters", coalesce(max(l.amount) filter (where c.metric in ('spend', 'budget', 'prepaid')), 0)::bigint as "mostUinr"
   from processes p join beats b on b.process_id = p.id join leases l on l.process_id = p.id and l.amount > 0
   join counters c on c.id = l.counter_id and (c.ends_at is null or c.ends_at > clock_timestamp())
   where p.state <> 'closed' and b.beat_at < clock_timestamp() - $1::bigint * interval '1 millisecond'
   group by p.id, p.journal, b.beat_at order by p.id`,
)

/** Locks a process that is about to be given up. */
export const lockSilent = statement<[id: bigint, silentMs: bigint], { state: string; isSilent: boolean; silentSeconds: number }>(
  'limits.lock_silent',
  `select p.state as "state", b.beat_at < clock_timestamp() - $2::bigint * interval '1 millisecond' as "isSilent",
     floor(extract(epoch from clock_timestamp() - b.beat_at))::int as "silentSeconds"
   from processes p join beats b on b.process_id = p.id where p.id = $1::bigint for update of p`,
)

/** Closes a process without leases. A process with leases is left to the next janitor. */
export const closeProcess = statement<[id: bigint]>(
  'limits.close_process',
  `update processes p set state = 'closed'
   where p.id = $1::bigint and p.state = 'closing' and not exists (select 1 from leases l where l.process_id = p.id and l.amount > 0)`,
)

// ---- invariants other than the sums

/** A closed process has no leases. */
export const violationsOfClosed = statement<[], { processId: bigint; counters: number }>(
  'limits.violations_of_closed',
  `select p.id as "processId", count(*)::int as "counters" from processes p join leases l on l.process_id = p.id and l.amount > 0
   where p.state = 'closed' group by p.id order by p.id`,
)

/** Concurrent calls are held and given back, and never spent. */
export const violationsOfRunning = statement<[], { counterId: bigint; spent: bigint }>(
  'limits.violations_of_running',
  `select c.id as "counterId", c.spent as "spent" from counters c where c.metric = 'running' and c.spent <> 0`,
)

/** A debit is the cost of an existing event, unless it is so old that the event has been deleted. */
export const violationsOfDebits = statement<[], { eventId: string; debit: bigint; cost: bigint | null }>(
  'limits.violations_of_debits',
  `select l.event_id as "eventId", (-l.amount_uinr)::bigint as "debit", e.cost_uinr as "cost"
   from ledger l left join usage_events e on e.id = l.event_id
   where l.kind = 'debit' and l.event_id is not null and e.cost_uinr is distinct from -l.amount_uinr
     and (e.id is not null or (l.at at time zone 'Asia/Kolkata')::date >= coalesce((select kept_from + 2 from usage_retention), '-infinity'))`,
)
