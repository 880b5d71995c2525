import type { Clock } from '../clock.ts'
import type { Log } from '../observe/log.ts'
import { type Db, statement, type Tx } from './db.ts'

/** News that every process must receive soon, for example about a revoked agent. */
export interface NewsItem {
  /** `agent_revoked`, `key_changed`, `key_revoked`, `member_changed`, … Subscribers ignore kinds that they do not know. */
  readonly kind: string
  /** The id of the changed row, as text. */
  readonly ref: string
  readonly epoch?: number | null
}

/** A row of the control log. */
export interface News {
  readonly seq: bigint
  readonly kind: string
  readonly ref: string
  readonly epoch: number | null
}

export interface ControlLogOptions {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  /** CONTROL_POLL_MS: how often the log is read when no notification arrives. */
  readonly pollMs: number
}

/** The only NOTIFY channel of the product. */
export const newsChannel = 'br'
/** Payload prefix of control news. Payloads with other prefixes go to `onOther`. */
const newsPrefix = 'c:'
/**
 * Every read also covers this time before the last read. Transactions commit in another order than their sequence numbers, so a read of "seq greater than
 * the last" would miss rows.
 */
const overlapMs = 10_000
/** When a process has not read the log for this time, rows may have been deleted before it read them. Subscribers must then load their state again. */
const gapMs = 50 * 60_000
const pruneEveryMs = 10 * 60_000
/**
 * After a read, the log rests as long as the read took, at most this long. A read looks back over all recent rows, so somebody who causes a lot of news
 * would otherwise keep every process reading.
 */
const restMsMax = 200
/** A read that hangs (half-open connection) blocks the next one only for this time. */
const readPatienceMs = 2_000

const append = statement<[kinds: readonly string[], refs: readonly string[], epochs: readonly (number | null)[]], News>(
  'control_log.append',
  `insert into control_log (kind, ref, epoch)
   select a.kind, a.ref, a.epoch from unnest($1::text[], $2::text[], $3::int[]) as a(kind, ref, epoch)
   returning seq, kind, ref, epoch`,
)
const notifyInTx = statement<[channel: string, payload: string], { done: unknown }>(
  'control_log.notify',
  `select pg_notify($1::text, $2::text)::text as "done"`,
)
/** Reads recent news. The result always has at least one row, which has the time of the database even when there is no news. */
const readSince = statement<
  [since: Date | null, overlapMs: number],
  { now: Date; seq: bigint | null; kind: string | null; ref: string | null; epoch: number | null }
>(
  'control_log.read_since',
  `select clock_timestamp() as "now", l.seq, l.kind, l.ref, l.epoch
   from (select 1) as one
   left join control_log l on l.at > coalesce($1::timestamptz, clock_timestamp()) - make_interval(secs => $2::int / 1000.0)
   order by l.seq`,
)
const deleteOld = statement<[]>('control_log.prune', `delete from control_log where at < clock_timestamp() - interval '1 hour'`)

/**
 * Delivers news between processes, through one table with NOTIFY and polling. Every row reaches every subscriber of every running process at least once.
 * Polling limits the delay when a notification is lost. Rows may be delivered again after a reconnect, so subscribers must be idempotent. `apply` delivers
 * this process's own rows to its subscribers right after the commit.
 */
export class ControlLog {
  readonly #db: Db
  readonly #clock: Clock
  readonly #log: Log
  readonly #pollMs: number
  readonly #subscribers: ((news: News) => void)[] = []
  readonly #others: ((payload: string) => void)[] = []
  readonly #gapListeners: (() => void)[] = []
  readonly #stops: (() => void | Promise<void>)[] = []
  #seen = new Set<bigint>()
  /** Time of the database at the last read. The window of recent rows uses this time, not the clock of this machine. */
  #readAt: Date | null = null
  #syncedAtMs: number
  #reading: { readonly done: Promise<void>; readonly sinceMs: number } | null = null
  #readAgain = false
  #restsUntilMs = 0
  /** Cancels the read that is planned for the end of the rest. */
  #cancelPlanned: (() => void) | null = null
  #stopped = false

  constructor(options: ControlLogOptions) {
    this.#db = options.db
    this.#clock = options.clock
    this.#log = options.log
    this.#pollMs = options.pollMs
    this.#syncedAtMs = options.clock.monotonicMs()
  }

  /** Writes news in the transaction of the change. The notification is sent at the commit. Pass the result to `apply` after the commit. */
  async append(tx: Tx, items: readonly NewsItem[]): Promise<News[]> {
    if (items.length === 0) return []
    const rows = await tx.many(
      append,
      items.map(item => item.kind),
      items.map(item => item.ref),
      items.map(item => item.epoch ?? null),
    )
    // Any notification makes readers read the whole window, so the payload may name any row.
    const last = rows.at(-1)?.seq ?? 0n
    await tx.one(notifyInTx, newsChannel, `${newsPrefix}${last}`)
    return rows
  }

  /** Notifies the subscribers of this process immediately. Call it only with committed rows. */
  apply(rows: readonly News[]): void {
    for (const row of rows) this.#dispatch(row)
  }

  /** Runs `fn` in a transaction, appends the news that it returns, commits, and applies the news in this process. */
  async change<T>(fn: (tx: Tx) => Promise<{ value: T; news: readonly NewsItem[] }>): Promise<T> {
    const { value, rows } = await this.#db.tx(async tx => {
      const made = await fn(tx)
      return { value: made.value, rows: await this.append(tx, made.news) }
    })
    this.apply(rows)
    return value
  }

  /** Calls `fn` for every news row. An exception of `fn` is logged and does not affect other subscribers. */
  on(fn: (news: News) => void): void {
    this.#subscribers.push(fn)
  }

  /** Calls `fn` when news may be lost permanently. The subscriber must then load its state again and clear its caches. */
  onGap(fn: () => void): void {
    this.#gapListeners.push(fn)
  }

  /** Calls `fn` with the payloads of notifications that are not control news. */
  onOther(fn: (payload: string) => void): void {
    this.#others.push(fn)
  }

  /** Listens, reads once and then polls. Resolves after the first read. Rejects when the database cannot be reached. */
  async start(): Promise<void> {
    const stopListening = await this.#db.listen(
      newsChannel,
      payload => this.#onPayload(payload),
      () => void this.#tick(),
    )
    this.#stops.push(stopListening)
    await this.#read()
    this.#stops.push(this.#clock.every(this.#pollMs, () => void this.#tick()))
    this.#stops.push(this.#clock.every(pruneEveryMs, () => void this.prune().catch(error => this.#log.warn('control_log_prune_failed', { error }))))
  }

  /** Returns the milliseconds since the last successful read, by the monotonic clock. */
  lastSyncAgeMs(): number {
    return this.#clock.monotonicMs() - this.#syncedAtMs
  }

  /** Deletes rows older than an hour. Returns how many. */
  prune(): Promise<number> {
    return this.#db.exec(deleteOld)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelPlanned?.()
    for (const stop of this.#stops.splice(0)) await stop()
    await this.#reading?.done.catch(() => {})
  }

  #onPayload(payload: string): void {
    if (payload.startsWith(newsPrefix)) void this.#tick()
    else for (const fn of this.#others) guarded(this.#log, () => fn(payload))
  }

  /** Reads the log. If a read is already running, another read follows it, because the running one may have started before the commit. */
  async #tick(): Promise<void> {
    if (this.#stopped) return
    const running = this.#reading
    if (running !== null && this.#clock.monotonicMs() - running.sinceMs < readPatienceMs) {
      this.#readAgain = true
      return
    }
    const restMs = this.#restsUntilMs - this.#clock.monotonicMs()
    if (restMs > 0) {
      this.#cancelPlanned ??= this.#clock.after(restMs, () => {
        this.#cancelPlanned = null
        void this.#tick()
      })
      return
    }
    const done = this.#read()
    const reading = { done, sinceMs: this.#clock.monotonicMs() }
    this.#reading = reading
    try {
      await done
    } catch (error) {
      this.#log.warn('control_log_read_failed', { error })
    } finally {
      if (this.#reading === reading) this.#reading = null
      const nowMs = this.#clock.monotonicMs()
      this.#restsUntilMs = nowMs + Math.min(nowMs - reading.sinceMs, restMsMax)
    }
    if (this.#readAgain) {
      this.#readAgain = false
      await this.#tick()
    }
  }

  async #read(): Promise<void> {
    const startedMs = this.#clock.monotonicMs()
    const rows = await this.#db.many(readSince, this.#readAt, overlapMs)
    const now = rows[0]?.now ?? null
    const isGap = now !== null && this.#readAt !== null && now.getTime() - this.#readAt.getTime() > gapMs
    if (isGap) for (const fn of this.#gapListeners) guarded(this.#log, fn)
    const inWindow = new Set<bigint>()
    for (const { seq, kind, ref, epoch } of rows) {
      if (seq === null || kind === null || ref === null) continue
      inWindow.add(seq)
      this.#dispatch({ seq, kind, ref, epoch })
    }
    // Rows older than the window cannot be returned again, so only the numbers of this window are remembered.
    this.#seen = inWindow
    this.#readAt = now
    this.#syncedAtMs = Math.max(this.#syncedAtMs, startedMs)
  }

  #dispatch(news: News): void {
    if (this.#seen.has(news.seq)) return
    this.#seen.add(news.seq)
    for (const fn of this.#subscribers) guarded(this.#log, () => fn(news))
  }
}

function guarded(log: Log, fn: () => void): void {
  try {
    fn()
  } catch (error) {
    log.error('control_news_failed', { error })
  }
}
