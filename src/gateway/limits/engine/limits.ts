/** Assembles the parts of limits into one object for the pipeline, the edges and the operator's tools. */
import { systemClock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError } from '../../../platform/db/db.ts'
import { newsChannel } from '../../../platform/db/db-control-log.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { BudgetCache } from '../budgets/budget-cache.ts'
import { type BudgetStatus, Budgets, capChanged, parseCapRef } from '../budgets/budgets.ts'
import { BudgetCalendar } from '../budgets/periods/zones.ts'
import { LastingHolds } from '../holds/lasting-holds.ts'
import { type FlushTools, inOrder } from '../journal/flush-batch.ts'
import { type AmountsById, type Flushed, type FlushPort, FlushWork, type SpentScope } from '../journal/flush-work.ts'
import { Flusher } from '../journal/flusher.ts'
import { Journal, journalFolder, journalsIn } from '../journal/journal.ts'
import { isReadable } from '../journal/journal-reader.ts'
import { Recovery } from '../journal/recovery.ts'
import { closeProcess } from '../journal/recovery-queries.ts'
import { noOrgLimits } from '../org-limits.ts'
import { ParkedRecords } from '../parked-records.ts'
import { Acquirer } from './acquire.ts'
import type { AdmissionRequest, ChargedEvent, Limits, Permit } from './admission.ts'
import { Bindings, scopesOf, type TrialCap } from './bindings.ts'
import { Allowances } from './counters/allowances.ts'
import { SpendIds, withoutRow } from './counters/counter-rows.ts'
import { type Counter, CounterTable, endIncreases, isMoney, isOfRun } from './counters/counter-state.ts'
import { returnIdle, sweepIdle, writeCounts } from './counters/idle.ts'
import type { RequestsLeft } from './counters/requests-left.ts'
import type { LimitsOptions, SpendFollower } from './limits-options.ts'
import type { CallPermit, PermitTools } from './permit.ts'
import { ProcessRegistry } from './processes.ts'
import { deleteEndedCounters, returnSilentRunning } from './queries.ts'

/** The times after which ended minute counters and day counters are deleted. */
const minuteRowsMs = 5 * 60_000
const dayRowsMs = 48 * 3600_000
/** The time after which the counters of ended budget periods are deleted. A call that began in such a period has ended by then. */
const budgetRowsMs = 35 * 24 * 3600_000
/** The silence beyond OFFLINE_MAX after which a process counts as in doubt. The project chose the number. */
const silentGraceMs = 30_000

/** Registers this process, adopts dead processes of this data directory and starts the beat. Rejects when the database is away. */
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

/** The limits, budgets and journal of this process. */
export class LimitsEngine<E extends ChargedEvent> implements Limits<E> {
  readonly budgets: Budgets
  readonly streams: Pick<Allowances<E>, 'holdStream'>
  /** Adopts the dead processes of this data directory. The timer does it, and tests may do it. */
  readonly janitor: { runOnce(): Promise<number> }
  /** The dead processes and parked records, for the operator. */
  readonly recovery: Recovery
  readonly parkedRecords: ParkedRecords<E>
  /** The holds of work that a provider does for hours. */
  readonly lasting: LastingHolds<E>
  readonly #options: LimitsOptions<E>
  readonly #folder: string
  readonly #registry: ProcessRegistry
  readonly #counters: CounterTable
  readonly #bindings: Bindings
  readonly #cache: BudgetCache
  readonly #acquirer: Acquirer
  readonly #port: FlushPort<E>
  readonly #flusher: Flusher<E>
  readonly #allowances: Allowances<E>
  readonly #opened = new Set<CallPermit<E>>()
  /** Is called when counters of runs are gone or have other caps than their process knows, so that runs are looked up again. */
  onRunsUnknown: (() => void) | null = null
  readonly #stops: (() => void)[] = []
  #beating: Promise<void> | null = null
  #follower: SpendFollower | null = null
  /** True when the rows of counters must be looked up again. */
  #wentBack = false

  constructor(options: LimitsOptions<E>, folder: string, registry: ProcessRegistry) {
    const { db, clock, config, ids, log } = options
    this.#options = options
    this.#folder = folder
    this.#registry = registry
    this.#counters = new CounterTable(clock)
    const silentMs = config.OFFLINE_MAX_MS + silentGraceMs
    const nowMs = (): number => registry.nowMs()
    this.#cache = new BudgetCache({ db, clock, ttlMs: config.CACHE_TTL_MS, offlineMaxMs: config.OFFLINE_MAX_MS, onChange: () => this.#rebind() })
    this.#bindings = new Bindings(this.#cache, this.#counters, new BudgetCalendar())
    const tools: FlushTools<E> = {
      db,
      ids,
      log,
      nowMs,
      spendIds: new SpendIds(),
      applyEvents: inOrder(options.appliers),
      onDebited: options.onDebited ?? (async () => {}),
      codec: options.codec ?? null,
    }
    this.#port = options.flushPort?.(folder, nowMs) ?? new FlushWork({ tools, clock, folder, endOf: options.endOf })
    this.#flusher = this.#makeFlusher()
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
      onGone: counters => this.#forget(counters),
      onIncrease: () => this.#rebind(),
      refence: () => this.#flusher.exclusive(() => this.#refence()),
    })
    const permitTools: PermitTools<E> = {
      flusher: this.#flusher,
      acquirer: this.#acquirer,
      counters: this.#counters,
      nowMs,
      capsVersion: () => this.#bindings.version,
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
      orgLimits: async orgId => (await options.orgLimits?.of(orgId)) ?? noOrgLimits,
      trialOf: orgId => this.#trialOf(orgId),
      giveBack: counters => this.#giveBack(counters),
      getInTouch: () => this.#getInTouch(),
      onRunUnknown: () => this.onRunsUnknown?.(),
    })
    this.streams = this.#allowances
    options.orgLimits?.onChange(() => {
      this.#allowances.reset()
      this.#rebind()
    })
    this.budgets = new Budgets({ db, ids, controlLog: options.controlLog, counters: this.#counters, nowMs, silentMs })
    const isReadableHere = (processId: bigint): Promise<boolean> => isReadable<E>(folder, processId, options.codec ?? null)
    this.recovery = new Recovery({ db, folder, silentMs, isReadable: isReadableHere, ...(options.onGivenUp ? { onGivenUp: options.onGivenUp } : {}) })
    this.parkedRecords = new ParkedRecords<E>(tools)
    this.lasting = this.#makeLasting(tools, silentMs)
    this.janitor = { runOnce: () => this.#adopt(silentMs) }
  }

  takeRate(principal: BearerPrincipal): void | Promise<void> {
    return this.#allowances.takeRate(principal)
  }

  /**
   * Returns the requests that the caller has left in this minute and in this day, as far as this process knows. Null when no such limit binds the caller.
   * The object is valid until the next call of this function.
   */
  requestsLeft(principal: BearerPrincipal): RequestsLeft | null {
    return this.#allowances.requestsLeft(principal)
  }

  admit(request: AdmissionRequest): Permit<E> | Promise<Permit<E>> {
    return this.#allowances.admit(request)
  }

  /** Returns the budgets that bind this caller, the narrowest scope first and in it the longest period. Scopes without a budget are left out. */
  async budgetsOf(principal: BearerPrincipal): Promise<BudgetStatus[]> {
    const { agentId, ancestorIds } = principal.kind === 'agent' ? principal : { agentId: null, ancestorIds: [] }
    const refs = scopesOf({ principal, agentId, agentAncestorIds: ancestorIds })
    return this.budgets.listAll(principal.orgId, refs)
  }

  /** The number of acquire statements so far. */
  get acquires(): number {
    return this.#acquirer.acquires
  }

  /** The progress of the journal's flushes, for metrics. */
  get journal(): Pick<Flusher<E>, 'unflushedBytes' | 'lagMs' | 'failures' | 'isFull'> {
    return this.#flusher
  }

  /** The leases that this process believes to have, by counter id. The database has the same when nothing is in progress. */
  get ownLeases(): ReadonlyMap<bigint, bigint> {
    return this.#counters.leases()
  }

  /** This process's id in the database. */
  get processId(): bigint {
    return this.#registry.id
  }

  /** True when the database has not answered for OFFLINE_MAX. No call may then be served, and running calls must end. */
  get isOffline(): boolean {
    return !this.#registry.isInTouch
  }

  /** Returns the time of the database's clock in Unix milliseconds. Periods end by this time. */
  nowMs(): number {
    return this.#registry.nowMs()
  }

  /** Resolves when everything settled so far is in the database. Throws when the database is away. */
  async flushNow(): Promise<void> {
    await this.#flusher.flushNow()
  }

  /** Makes one beat and the work that belongs to it: counts, unused slices, and leases with an unknown outcome. The timer calls it, and tests may call it. */
  beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = null
    })
    return this.#beating
  }

  /** Starts the timers and subscribes to news. */
  start(): void {
    const { clock, config, controlLog, log } = this.#options
    const report = (error: unknown, event: string): void => {
      if (!(error instanceof DatabaseUnavailableError)) log.error(event, { error, processId: String(this.processId) })
    }
    const quietly = (work: Promise<unknown>, event: string): void => void work.catch(error => report(error, event))
    this.#stops.push(
      clock.every(config.BEAT_MS, () => quietly(this.beat(), 'beat_failed')),
      clock.every(config.JANITOR_MS, () => quietly(this.#clean(), 'janitor_failed')),
    )
    if (config.JOURNAL_FSYNC_MS > 0) this.#stops.push(clock.every(config.JOURNAL_FSYNC_MS, () => void this.#flusher.sync()))
    controlLog.on(news => {
      const ref = news.kind === capChanged ? parseCapRef(news.ref) : null
      if (ref === null) return
      const changed = this.#capChanged(this.#counters.ofScope(ref), () => this.#cache.invalidate(ref))
      quietly(changed, 'cap_news_failed')
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

  /** Notifies the follower of all flushes from now on. There is one follower. */
  followSpend(follower: SpendFollower): void {
    this.#follower = follower
  }

  /** Refuses new calls. Running calls still extend and settle. */
  drain(): void {
    this.#allowances.refuseNew()
  }

  /** Flushes, gives every lease back and closes the process. Call it when no call runs any more. Calls that still run are left to the next janitor. */
  async stop(): Promise<void> {
    this.drain()
    for (const stop of this.#stops.splice(0)) stop()
    await this.#beating?.catch(() => undefined)
    try {
      await this.#registry.setState(['live'], 'closing')
      // The amounts that a broken grant has leased must be known before all leases go back.
      await this.#flusher.flushNow()
      await this.#flusher.exclusive(() => this.#acquirer.reconcile())
      writeCounts(this.#flusher, this.#counters.all())
      returnIdle(this.#flusher, this.#counters.all())
      await this.#flusher.flushNow()
      const isEmpty = [...this.#counters.all()].every(counter => counter.lease === 0n || counter.offline)
      if (isEmpty && this.#opened.size === 0) await this.#options.db.exec(closeProcess, this.processId)
    } finally {
      await this.#flusher.close()
      this.#registry.release()
    }
  }

  #makeFlusher(): Flusher<E> {
    const { clock, log, config, codec } = this.#options
    return new Flusher<E>(
      {
        port: this.#port,
        clock,
        log,
        folder: this.#folder,
        codec: codec ?? null,
        flushMs: config.JOURNAL_FLUSH_MS,
        maxBytes: config.JOURNAL_MAX_BYTES,
        onFlushed: flushed => this.#flushed(flushed),
        namesScopes: () => this.#follower?.isWanted === true,
        onFenced: () => this.#refence(),
        onRewound: released => this.#rewound(released),
        onRotated: () => {
          for (const permit of this.#opened) permit.repeat()
        },
      },
      this.#registry.id,
      this.#newJournal(),
    )
  }

  #makeLasting(tools: FlushTools<E>, silentMs: number): LastingHolds<E> {
    const { db, clock, config } = this.#options
    return new LastingHolds<E>({
      db,
      clock,
      tools,
      processId: () => this.#registry.id,
      nowMs: tools.nowMs,
      silentMs,
      recallWaitMs: config.RECALL_WAIT_MS,
      channel: newsChannel,
      bind: request => this.#allowances.bindLasting(request),
      ensure: counters => this.#acquirer.ensure(counters),
      giveBack: counters => this.#giveBack(counters),
    })
  }

  #newJournal(): Journal<E> {
    return new Journal<E>(this.#folder, this.#registry.id, this.#options.codec ?? null, this.#options.disk)
  }

  #flushed({ released, spent, scopes }: Pick<Flushed, 'released' | 'spent' | 'scopes'>): void {
    this.#registry.touch()
    this.#notifyFollower(scopes)
    for (const [id, amount] of released) {
      const counter = this.#counters.byId(id)
      if (counter === undefined) continue
      counter.unflushed = counter.unflushed > amount ? counter.unflushed - amount : 0n
      // The counter has room again. A rate is the exception, because its units never come back within their minute.
      if (counter.metric !== 'rpm') counter.refusal = null
    }
    for (const [id, amount] of spent) this.#counters.byId(id)?.learnSpent(amount)
  }

  /** Without scopes, the flush began before somebody followed, or records came to the database in another way. */
  #notifyFollower(scopes: readonly SpentScope[] | undefined): void {
    if (this.#follower?.isWanted !== true) return
    if (scopes === undefined) this.#follower.unknown()
    else if (scopes.length > 0) this.#follower.spent(scopes)
  }

  async #beatOnce(): Promise<void> {
    const { clock, config } = this.#options
    await this.#getInTouch()
    if (this.#wentBack) {
      this.#wentBack = false
      this.#forget(await withoutRow(this.#options.db, [...this.#counters.all()]))
    }
    const nowMs = this.#registry.nowMs()
    const ended = endIncreases(this.#counters.all(), nowMs)
    if (ended.length > 0) await this.#giveBack(ended.filter(counter => counter.flight === null))
    // A call can add tokens to a minute of which this process has leased nothing. The others must count them too.
    const added = [...this.#counters.all()].filter(({ over, id, offline, endsAtMs }) => over !== 0n && id === null && !offline && endsAtMs > nowMs)
    if (added.length > 0) await this.#acquirer.ensure(added)
    const forgotten = sweepIdle(this.#flusher, this.#counters, nowMs, clock.monotonicMs())
    if (forgotten > 0) this.#rebind()
    if ([...this.#counters.all()].some(counter => counter.unsure)) await this.#flusher.exclusive(() => this.#acquirer.reconcile())
    this.#flusher.expire(config.JOURNAL_KEEP_MS)
  }

  /** Has the journals of other processes looked at. Without such journals there is nothing to do. */
  async #adopt(silentMs: number): Promise<number> {
    const ownId = this.#registry.id
    if (journalsIn(this.#folder).every(id => id === ownId)) return 0
    const adopted = await this.#port.adopt({ ownId, silentMs, keepMs: this.#options.config.JOURNAL_KEEP_MS })
    if (adopted > 0) this.#notifyFollower(undefined)
    return adopted
  }

  async #clean(): Promise<void> {
    await this.janitor.runOnce()
    const nowMs = this.#registry.nowMs()
    const { db, config } = this.#options
    await db.exec(deleteEndedCounters, new Date(nowMs - minuteRowsMs), new Date(nowMs - dayRowsMs), new Date(nowMs - budgetRowsMs))
    // A process that was silent for this long has cut its calls. Its money waits for its journal. A cap of concurrent calls has no period that ends, so
    // it must not wait.
    await db.exec(returnSilentRunning, BigInt(config.OFFLINE_MAX_MS + silentGraceMs))
  }

  async #getInTouch(): Promise<void> {
    // After a long silence another process may have given back this process's units of concurrent calls, so the real leases are read again.
    if (!this.#registry.isInTouch) for (const counter of this.#counters.all()) counter.unsure ||= counter.metric === 'running'
    const { id } = this.#registry
    const known = this.#flusher.flushedTo
    if (!(await this.#registry.beat())) await this.#flusher.exclusive(() => this.#refence())
    else if (id === this.#registry.id && this.#registry.flushTo < known) {
      await this.#flusher.rewind(id, this.#registry.flushTo)
      await this.#flusher.flushNow()
    }
  }

  /** Handles a failover that has set the database back. Every known row may be older, belong to another owner, or be gone. The leases are read again. */
  #rewound(released: AmountsById): void {
    this.#options.log.warn('database_went_back', { processId: String(this.#registry.id) })
    this.#counters.doubt(released)
    this.#wentBack = true
  }

  async #trialOf(orgId: number): Promise<TrialCap | null> {
    const { orgLimits, founderNumberOf } = this.#options
    const callsMost = (await orgLimits?.trialDailyOf(orgId)) ?? null
    return callsMost === null ? null : { founder: (await founderNumberOf?.(orgId)) ?? orgId, callsMost }
  }

  #forget(counters: readonly Counter[]): void {
    for (const counter of counters) this.#counters.forget(counter)
    if (counters.length > 0) this.#rebind()
    if (counters.some(({ metric }) => isOfRun(metric))) this.onRunsUnknown?.()
  }

  /**
   * Handles a fence, because this process was taken for dead. It gets a new id and a new journal, and the records that are not in the database
   * are written again.
   */
  async #refence(): Promise<void> {
    // The ids differ when the process has registered again already but could not make its journal because the disk was full.
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
    this.#flusher.renew(this.#registry.id, journal)
    for (const permit of this.#opened) permit.repeat()
  }

  #rebind(): void {
    this.#bindings.version++
  }

  async #giveBack(counters: readonly Counter[]): Promise<void> {
    writeCounts(
      this.#flusher,
      counters.filter(counter => counter.over !== 0n),
    )
    returnIdle(this.#flusher, counters)
    await this.#flusher.flushNow()
  }

  async #capChanged(counters: readonly Counter[], invalidate: () => void): Promise<void> {
    invalidate()
    this.#rebind()
    for (const counter of counters) {
      counter.refusal = null
      // Holds under a lowered cap go back when their calls end. The next grant within the cap clears the mark.
      counter.overdrawn = isMoney(counter.metric)
      // Spend from the time before the cap was not held in this counter.
      counter.untold = isMoney(counter.metric)
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
