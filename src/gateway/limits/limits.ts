/** Puts the parts of limits together: the one object that the pipeline, the edges and the operator's tools use. */
import { type Clock, systemClock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import { DatabaseUnavailableError, type Db, type Tx } from '../../platform/db.ts'
import { type ControlLog, newsChannel } from '../../platform/db-control-log.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Log } from '../../platform/log.ts'
import type { BearerPrincipal } from '../../platform/principal.ts'
import { Acquirer } from './acquire.ts'
import type { AdmissionRequest, ChargedEvent, Limits, Permit } from './admission.ts'
import { Allowances } from './allowances.ts'
import { Bindings, scopesOf } from './bindings.ts'
import { BudgetCache } from './budget-cache.ts'
import { type BudgetStatus, Budgets, capChanged, parseCapRef } from './budgets.ts'
import { SpendIds } from './counter-rows.ts'
import { type Counter, CounterTable } from './counter-state.ts'
import { type ApplyEvents, type FlushResult, type FlushTools, inOrder } from './flush-batch.ts'
import { Flusher } from './flusher.ts'
import { returnIdle, sweepIdle, writeCounts } from './idle.ts'
import { Janitor } from './janitor.ts'
import { Journal, journalFolder } from './journal.ts'
import type { JournalDisk } from './journal-disk.ts'
import type { EventText } from './journal-records.ts'
import type { CallPermit, PermitTools } from './permit.ts'
import { ProcessRegistry } from './processes.ts'
import { deleteEndedCounters, returnSilentRunning } from './queries.ts'
import { Recovery } from './recovery.ts'
import { closeProcess } from './recovery-queries.ts'

/** Minute counters are deleted so long after their end, day counters two days after. */
const minuteRowsMs = 5 * 60_000
const dayRowsMs = 48 * 3600_000
/** Beyond OFFLINE_MAX: how long a process must be silent before it counts as in doubt. Ours. */
const silentGraceMs = 30_000

/** Settings that limits read. */
export type LimitsConfig = Pick<
  Config,
  | 'ALLOWANCE_SECONDS'
  | 'RECALL_WAIT_MS'
  | 'BEAT_MS'
  | 'JANITOR_MS'
  | 'OFFLINE_MAX_MS'
  | 'JOURNAL_FLUSH_MS'
  | 'JOURNAL_MAX_BYTES'
  | 'JOURNAL_KEEP_MS'
  | 'JOURNAL_FSYNC_MS'
  | 'CACHE_TTL_MS'
  | 'SETTLE'
>

export interface LimitsOptions<E extends ChargedEvent> {
  readonly db: Db
  readonly config: LimitsConfig
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Folder of the journal's folder. */
  readonly dataDir: string
  /** The first inserts events and says which were new; the others get those. They run in the transaction of the flush. */
  readonly appliers: readonly ApplyEvents<E>[]
  /** Ends what a dead process had begun elsewhere, in the transaction that closes it. */
  readonly endOf?: (tx: Tx, processId: bigint) => Promise<void>
  /** Where the journal goes. Default: the disk of this machine. */
  readonly disk?: JournalDisk
  /** How events are written to the journal. Default: field by field. */
  readonly eventText?: EventText<E>
  /** Started by the composition root. */
  readonly controlLog: ControlLog
  /** True: events with a cost debit the ledger. Default false. */
  readonly billing?: boolean
  /** Whether periods follow the database's clock. Default: only on the machine's own clock; an injected clock is the truth. */
  readonly followDatabaseClock?: boolean
}

/** Registers this process, adopts dead ones of this data directory and starts the beat. Rejects when the database is away. */
export async function createLimits<E extends ChargedEvent>(options: LimitsOptions<E>): Promise<LimitsEngine<E>> {
  const folder = journalFolder(options.dataDir)
  const registry = new ProcessRegistry({
    db: options.db,
    clock: options.clock,
    folder,
    followDatabaseClock: options.followDatabaseClock ?? options.clock === systemClock,
    offlineMaxMs: options.config.OFFLINE_MAX_MS,
  })
  await registry.register()
  const engine = new LimitsEngine<E>(options, folder, registry)
  await engine.janitor.runOnce()
  engine.start()
  return engine
}

/** Limits, budgets and journal of this process. */
export class LimitsEngine<E extends ChargedEvent> implements Limits<E> {
  readonly budgets: Budgets
  readonly janitor: Janitor<E>
  /** What died and is in doubt, for the operator. */
  readonly recovery: Recovery
  readonly #options: LimitsOptions<E>
  readonly #folder: string
  readonly #registry: ProcessRegistry
  readonly #counters: CounterTable
  readonly #bindings: Bindings
  readonly #cache: BudgetCache
  readonly #acquirer: Acquirer
  readonly #flusher: Flusher<E>
  readonly #allowances: Allowances<E>
  readonly #opened = new Set<CallPermit<E>>()
  readonly #stops: (() => void)[] = []
  #beating: Promise<void> | null = null

  constructor(options: LimitsOptions<E>, folder: string, registry: ProcessRegistry) {
    const { db, clock, config, ids, log } = options
    this.#options = options
    this.#folder = folder
    this.#registry = registry
    this.#counters = new CounterTable(clock)
    const silentMs = config.OFFLINE_MAX_MS + silentGraceMs
    const nowMs = (): number => registry.nowMs()
    this.#cache = new BudgetCache({ db, clock, ttlMs: config.CACHE_TTL_MS, offlineMaxMs: config.OFFLINE_MAX_MS, onChange: () => this.#rebind() })
    this.#bindings = new Bindings(this.#cache, this.#counters)
    const tools: FlushTools<E> = { db, ids, log, nowMs, spendIds: new SpendIds(), applyEvents: inOrder(options.appliers), billing: options.billing ?? false }
    this.#flusher = this.#makeFlusher(tools)
    this.#acquirer = new Acquirer({
      db,
      clock,
      counters: this.#counters,
      registry,
      silentMs,
      allowanceSeconds: config.ALLOWANCE_SECONDS,
      recallWaitMs: config.RECALL_WAIT_MS,
      channel: newsChannel,
      giveBack: counters => this.#giveBack(counters),
      refence: () => this.#flusher.exclusive(() => this.#refence()),
    })
    const permitTools: PermitTools<E> = {
      flusher: this.#flusher,
      acquirer: this.#acquirer,
      opened: this.#opened,
      keepsSlices: config.ALLOWANCE_SECONDS > 0,
      waitsForCommit: config.SETTLE === 'postgres',
      monotonicMs: () => clock.monotonicMs(),
    }
    this.#allowances = new Allowances<E>({
      clock,
      registry,
      permitTools,
      counters: this.#counters,
      bindings: this.#bindings,
      acquirer: this.#acquirer,
      flusher: this.#flusher,
      giveBack: counters => this.#giveBack(counters),
      getInTouch: () => this.#getInTouch(),
    })
    this.budgets = new Budgets({ db, ids, controlLog: options.controlLog, counters: this.#counters, nowMs, silentMs })
    this.recovery = new Recovery({ db, folder, silentMs })
    this.janitor = new Janitor<E>({
      tools,
      clock,
      log,
      folder,
      keepMs: config.JOURNAL_KEEP_MS,
      silentMs,
      ownId: () => registry.id,
      ...(options.endOf ? { endOf: options.endOf } : {}),
    })
  }

  takeRate(principal: BearerPrincipal): void | Promise<void> {
    return this.#allowances.takeRate(principal)
  }

  admit(request: AdmissionRequest): Permit<E> | Promise<Permit<E>> {
    return this.#allowances.admit(request)
  }

  /** The budgets that bind this caller, narrowest first; scopes without a budget are left out. */
  async budgetsOf(principal: BearerPrincipal): Promise<BudgetStatus[]> {
    const agent = principal.kind === 'agent' ? principal : null
    const refs = scopesOf({ principal, agentId: agent?.agentId ?? null, agentAncestorIds: agent?.ancestorIds ?? [] })
    const all = await this.budgets.list(principal.orgId, refs)
    return all.filter(status => status.capUinr !== null)
  }

  /** Acquire statements sent so far. */
  get acquires(): number {
    return this.#acquirer.acquires
  }

  /** What this process believes to lease, by counter id: the database must say the same when nothing is under way. */
  get ownLeases(): ReadonlyMap<bigint, bigint> {
    const held = [...this.#counters.all()].filter(counter => counter.id !== null && counter.lease > 0n)
    return new Map(held.map(counter => [counter.id as bigint, counter.lease]))
  }

  /** This process's id in the database. */
  get processId(): bigint {
    return this.#registry.id
  }

  /** True when the database has not answered for OFFLINE_MAX: nothing may be served any more, and what runs must end. */
  get isOffline(): boolean {
    return !this.#registry.isInTouch
  }

  /** Unix ms by the database's clock: the time by which periods turn. */
  nowMs(): number {
    return this.#registry.nowMs()
  }

  /** Everything settled so far is in the database when it resolves. Throws when the database is away. */
  async flushNow(): Promise<void> {
    await this.#flusher.flushNow()
  }

  /** One beat with what hangs on it: counts, unused slices, leases of unknown outcome. The timer calls it; tests may. */
  beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = null
    })
    return this.#beating
  }

  /** Starts the timers and listens to news. */
  start(): void {
    const { clock, config, controlLog, log } = this.#options
    const quietly = (work: Promise<unknown>, event: string): void => {
      work.catch(error => {
        if (!(error instanceof DatabaseUnavailableError)) log.error(event, { error, processId: String(this.processId) })
      })
    }
    this.#stops.push(
      clock.every(config.BEAT_MS, () => quietly(this.beat(), 'beat_failed')),
      clock.every(config.JANITOR_MS, () => quietly(this.#clean(), 'janitor_failed')),
    )
    if (config.JOURNAL_FSYNC_MS > 0) this.#stops.push(clock.every(config.JOURNAL_FSYNC_MS, () => void this.#flusher.sync()))
    controlLog.on(news => {
      const ref = news.kind === capChanged ? parseCapRef(news.ref) : null
      if (ref !== null)
        quietly(
          this.#capChanged(this.#counters.ofScope(ref), () => this.#cache.invalidate(ref)),
          'cap_news_failed',
        )
    })
    controlLog.onGap(() =>
      quietly(
        this.#capChanged([...this.#counters.all()], () => this.#cache.invalidateAll()),
        'cap_news_failed',
      ),
    )
    controlLog.onOther(payload => {
      if (payload.startsWith('recall:')) quietly(this.#recalled(payload.slice('recall:'.length)), 'recall_failed')
    })
  }

  /** Refuses new calls; running ones still extend and settle. */
  drain(): void {
    this.#allowances.refuseNew()
  }

  /** Call when no call runs any more: flushes, gives every lease back and closes the process. Calls that still run are left to the next janitor. */
  async stop(): Promise<void> {
    this.drain()
    for (const stop of this.#stops.splice(0)) stop()
    await this.#beating?.catch(() => undefined)
    try {
      await this.#registry.setState(['live'], 'closing')
      // What a broken grant left leased is known before all of it goes back.
      await this.#flusher.flushNow()
      await this.#flusher.exclusive(() => this.#acquirer.reconcile())
      writeCounts(this.#flusher, this.#counters.all())
      returnIdle(this.#flusher, this.#counters.all())
      await this.#flusher.flushNow()
      const isEmpty = [...this.#counters.all()].every(counter => counter.lease === 0n || counter.offline)
      if (isEmpty && this.#opened.size === 0) await this.#options.db.exec(closeProcess, this.processId)
    } finally {
      this.#flusher.close()
      this.#registry.release()
    }
  }

  #makeFlusher(tools: FlushTools<E>): Flusher<E> {
    const { clock, log, config } = this.#options
    return new Flusher<E>(
      {
        tools,
        clock,
        log,
        folder: this.#folder,
        flushMs: config.JOURNAL_FLUSH_MS,
        maxBytes: config.JOURNAL_MAX_BYTES,
        onFlushed: result => this.#flushed(result),
        onFenced: () => this.#refence(),
        onRotated: () => {
          for (const permit of this.#opened) permit.repeat()
        },
      },
      this.#registry.id,
      this.#newJournal(),
    )
  }

  #newJournal(): Journal<E> {
    return new Journal<E>(this.#folder, this.#registry.id, this.#options.eventText ?? null, this.#options.disk)
  }

  #flushed(result: Extract<FlushResult, { kind: 'done' }>): void {
    this.#registry.touch()
    for (const [id, amount] of result.released) {
      const counter = this.#counters.byId(id)
      if (counter === undefined) continue
      counter.unflushed = counter.unflushed > amount ? counter.unflushed - amount : 0n
      // There is room again, unless it is a rate, whose units never come back within their minute.
      if (counter.metric !== 'rpm') counter.refusal = null
    }
    for (const row of result.rows) {
      this.#counters.byId(row.id)?.learnSpent(row.spent)
    }
  }

  async #beatOnce(): Promise<void> {
    const { clock, config } = this.#options
    await this.#getInTouch()
    const forgotten = sweepIdle(this.#flusher, this.#counters, this.#registry.nowMs(), clock.monotonicMs())
    if (forgotten > 0) this.#rebind()
    if ([...this.#counters.all()].some(counter => counter.unsure)) await this.#flusher.exclusive(() => this.#acquirer.reconcile())
    this.#flusher.expire(config.JOURNAL_KEEP_MS)
  }

  async #clean(): Promise<void> {
    await this.janitor.runOnce()
    const nowMs = this.#registry.nowMs()
    const { db, config } = this.#options
    await db.exec(deleteEndedCounters, new Date(nowMs - minuteRowsMs), new Date(nowMs - dayRowsMs))
    // A process that was silent for so long has cut its calls. Its money waits for its journal; a cap without an end must not.
    await db.exec(returnSilentRunning, BigInt(config.OFFLINE_MAX_MS + silentGraceMs))
  }

  async #getInTouch(): Promise<void> {
    // After a long silence the units of calls at once may have been given back by another process: what is really leased is read again.
    if (!this.#registry.isInTouch) for (const counter of this.#counters.all()) counter.unsure ||= counter.metric === 'running'
    if (!(await this.#registry.beat())) await this.#flusher.exclusive(() => this.#refence())
  }

  /** This process was taken for dead: a new id, a new journal, and what was not yet in the database is written again. */
  async #refence(): Promise<void> {
    // Registered anew before, but its journal could not be made: the disk is full.
    if (this.#flusher.processId === this.#registry.id) {
      if (await this.#registry.beat()) return
      this.#options.log.warn('process_fenced', { processId: String(this.#registry.id) })
      await this.#registry.register()
    }
    const journal = this.#newJournal()
    this.#acquirer.generation++
    this.#counters.clear()
    this.#allowances.reset()
    this.#rebind()
    const rest = this.#flusher.renew(this.#registry.id, journal)
    for (const record of rest) if (record.kind === 'settle') this.#flusher.append({ ...record, released: [] })
    for (const permit of this.#opened) permit.repeat()
  }

  #rebind(): void {
    this.#bindings.version++
  }

  async #giveBack(counters: readonly Counter[]): Promise<void> {
    returnIdle(this.#flusher, counters)
    await this.#flusher.flushNow()
  }

  async #capChanged(counters: readonly Counter[], invalidate: () => void): Promise<void> {
    invalidate()
    this.#rebind()
    for (const counter of counters) {
      counter.refusal = null
      // Holds under a lowered cap go back when their calls end; the next grant that fits says otherwise.
      counter.overdrawn = counter.metric === 'spend'
    }
    if (
      returnIdle(
        this.#flusher,
        counters.filter(counter => counter.flight === null),
      )
    )
      await this.#flusher.flushNow()
  }

  async #recalled(ids: string): Promise<void> {
    const counters = ids.split(',').flatMap(id => (/^\d+$/.test(id) ? [this.#counters.byId(BigInt(id))] : []))
    const known = counters.filter(counter => counter !== undefined && counter.flight === null) as Counter[]
    writeCounts(this.#flusher, known)
    returnIdle(this.#flusher, known)
    if (known.length > 0) await this.#flusher.flushNow()
  }
}
