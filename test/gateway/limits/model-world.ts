/** Runs several engines on one database and a model of their behaviour. Every command runs on both, and then the two are compared. */
import { copyFileSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'vitest'
import { type EndingPeriod, periodOfName } from '../../../src/gateway/limits/budgets/periods/period.ts'
import { BudgetCalendar, defaultZones } from '../../../src/gateway/limits/budgets/periods/zones.ts'
import type { AdmissionRequest, Permit } from '../../../src/gateway/limits/engine/admission.ts'
import { journalFolder, segmentsOf } from '../../../src/gateway/limits/journal/journal.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { caller, eventOf, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'
import { Model, type ModelCall } from './model.ts'

interface ModelCounter {
  readonly id: bigint
  readonly scope: string
  readonly period: string
  readonly cap: bigint | null
  readonly spent: bigint
  readonly leased: bigint
}

const counterRows = statement<[orgId: number], ModelCounter>(
  'test.model_counters',
  `select id as "id", scope as "scope", period as "period", cap as "cap", spent as "spent", leased as "leased" from counters
   where org_id = $1::int and metric in ('spend', 'budget') order by id`,
)
const leaseRows = statement<[orgId: number], { processId: bigint; counterId: bigint; amount: bigint }>(
  'test.model_leases',
  `select l.process_id as "processId", l.counter_id as "counterId", l.amount as "amount" from leases l join counters c on c.id = l.counter_id
   where c.org_id = $1::int and l.amount > 0`,
)
const eventSums = statement<[orgId: number], { month: string; value: bigint }>(
  'test.model_events',
  `select to_char(day, 'YYYY-MM') as "month", sum(value_uinr)::bigint as "value" from usage_events where org_id = $1::int group by 1`,
)
const doubled = statement<[orgId: number], { type: string }>(
  'test.model_doubled',
  `select type as "type" from webhook_events where org_id = $1::int and type like 'budget.%'
   group by type, data->>'scope', data->>'period', data->>'threshold', data->>'resets_at' having count(*) > 1`,
)
const silence = statement<[processId: bigint]>('test.model_silence', `update beats set beat_at = beat_at - interval '2 days' where process_id = $1::bigint`)

/** Timers never fire, because flushes and beats are commands of the test. */
const env = { JOURNAL_FLUSH_MS: '3600000', BEAT_MS: '3600000', JANITOR_MS: '3600000', RECALL_WAIT_MS: '60', OFFLINE_MAX_MS: '86400000' }
/** 15 November 2026 in India. */
const startMs = Date.parse('2026-11-15T06:00:00Z')
/** Time between two commands. It is longer than a refusal is remembered, and than the interval of lease recalls. */
const stepMs = 1200

interface Call extends ModelCall {
  readonly asked: AdmissionRequest
  readonly permit: Permit<UsageEvent>
}

export class World {
  readonly model = new Model()
  readonly #calendar = new BudgetCalendar()
  readonly #db: Db
  readonly #orgId: number
  readonly #seconds: string
  readonly #engines: (TestEngine | null)[] = []
  readonly #zombies: TestEngine[] = []
  /** Copies of the journals of dead engines, by slot, from the moment of their death. */
  readonly #journals = new Map<number, { readonly dataDir: string; readonly processId: bigint }>()
  #aheadMs = 0
  #wallMs = startMs - Date.now()
  /** True after a failover has lost grants. Admissions are then not compared until no call runs. */
  #lost = false
  #copy: string | null = null

  constructor(db: Db, orgId: number, seconds: string) {
    this.#db = db
    this.#orgId = orgId
    this.#seconds = seconds
    this.model.windows = this.#windowsAt(startMs)
  }

  get #clock(): Clock {
    return { ...systemClock, nowMs: () => Date.now() + this.#wallMs, monotonicMs: () => performance.now() + this.#aheadMs }
  }

  async start(engines: number): Promise<void> {
    const clock = this.#clock
    for (let i = 0; i < engines; i++) this.#engines.push(await startEngine(this.#db, { clock, env: { ...env, ALLOWANCE_SECONDS: this.#seconds } }))
    for (const engine of this.#engines) await engine?.limits.beat()
  }

  step(): void {
    this.#aheadMs += stepMs
  }

  #engine(slot: number): { engine: TestEngine; slot: number } | null {
    const at = slot % this.#engines.length
    const engine = this.#engines[at] ?? null
    return engine === null ? null : { engine, slot: at }
  }

  #call(which: number): Call | undefined {
    const calls = [...this.model.running] as Call[]
    return calls[which % Math.max(1, calls.length)]
  }

  async admit(slot: number, amount: number, isOpened: boolean, draft: number): Promise<void> {
    const on = this.#engine(slot)
    if (on === null) return
    const need = BigInt(amount)
    const unheard = this.model.unheardOf(on.slot)
    const principal = caller({ keyId: this.#orgId, orgId: this.#orgId, userId: null })
    for (let attempt = 0; ; attempt++) {
      const refusing = this.model.refuses(need, unheard)
      const isCovered = refusing !== null && (await this.#idleIn(on.engine, refusing)) >= need
      const asked = request(need, { principal }, Date.now() + this.#wallMs)
      const answer = on.engine.limits.admit(asked)
      const outcome = await outcomeOf(answer)
      if (outcome === 'ok') {
        const permit = await answer
        if (!this.#lost && !isCovered) expect(refusing).toBeNull()
        const call: Call = {
          asked,
          permit,
          engine: on.slot,
          windows: this.model.windows,
          held: need,
          holds: this.model.budgets.map(({ cap }) => cap !== null),
          draft: isOpened ? BigInt(draft) : null,
        }
        this.model.running.add(call)
        if (isOpened) await permit.open(eventOf(asked, BigInt(draft)))
        return
      }
      expect(['budget_held', 'budget_exceeded']).toContain(outcome)
      if (await this.#mayRefuse(need)) {
        const isAlone = this.#engines.length === 1 && this.model.doubtful.size === 0
        if (isAlone && !this.#lost) expect(this.model.refuses(need)).not.toBeNull()
        return
      }
      // An amount that another engine gives back may not have arrived yet.
      expect(attempt, 'a call was refused although the database has room').toBeLessThan(40)
      this.step()
      await systemClock.sleep(5)
    }
  }

  /**
   * Returns the unused part of the engine's lease. An old lease can still pay for a call, even if the last call of another engine has taken the rest of the
   * budget.
   */
  async #idleIn(engine: TestEngine | null, budget: number): Promise<bigint> {
    if (engine === null || this.#seconds === '0') return 0n
    const { scope = 'key', period = 'month' } = this.model.budgets[budget] ?? {}
    const rows = await this.#db.many(counterRows, this.#orgId)
    const leased = rows.find(row => row.scope === scope && row.period === this.model.windows[budget])?.leased ?? 0n
    const { heldUinr, inDoubtUinr } = await engine.limits.budgets.get(this.#orgId, scope, String(this.#orgId), period)
    return leased - inDoubtUinr - heldUinr
  }

  /** Returns whether a refusal is correct: the database has nothing left, or too little for a strict budget. */
  async #mayRefuse(need: bigint): Promise<boolean> {
    const rows = await this.#db.many(counterRows, this.#orgId)
    return rows.some(row => {
      const { cap, spent, leased } = row
      const at = this.#budgetOf(row)
      const isRunning = at !== -1 && row.period === this.model.windows[at]
      return isRunning && cap !== null && (this.model.budgets[at]?.strict ? cap - spent - leased < need : cap - spent - leased <= 0n)
    })
  }

  /** Returns the place of the budget that a counter is of, or -1. */
  #budgetOf({ scope, period }: ModelCounter): number {
    return this.model.budgets.findIndex(budget => budget.scope === scope && budget.period === periodOfName(period))
  }

  #windowsAt(ms: number): readonly string[] {
    return this.model.budgets.map(({ period }) => this.#calendar.windowAt(defaultZones, period, ms).name)
  }

  async settle(which: number, amount: number): Promise<void> {
    const call = this.#call(which)
    if (call === undefined) return
    await call.permit.settle(eventOf(call.asked, BigInt(amount)))
    this.model.charge(call, BigInt(amount))
  }

  release(which: number): void {
    const call = this.#call(which)
    if (call === undefined) return
    call.permit.release()
    this.model.running.delete(call)
  }

  async extend(which: number, amount: number): Promise<void> {
    const call = this.#call(which)
    if (call === undefined) return
    const before = call.held
    const need = BigInt(amount) - before
    const idle = await Promise.all(this.model.budgets.map((_, i) => this.#idleIn(this.#engines[call.engine] ?? null, i)))
    const isCovered = await call.permit.extendTo(BigInt(amount))
    call.held = call.permit.heldUinr
    expect(call.held).toBeGreaterThanOrEqual(before)
    expect(isCovered).toBe(call.held >= BigInt(amount))
    if (this.#lost || call.held === before) return
    // An extension takes at most the rest of the budget.
    for (const i of this.model.budgets.keys()) {
      if (call.windows[i] !== this.model.windows[i]) continue
      const room = this.model.room(i)
      if (room !== null && call.holds[i] && (idle[i] ?? 0n) < need) expect(room + this.model.unheardOf(call.engine)).toBeGreaterThanOrEqual(0n)
    }
  }

  /** Sets or removes a cap, and waits until every engine has received the change. */
  async set(slot: number, which: number, cap: number | null, strict: boolean): Promise<void> {
    const on = this.#engine(slot)
    const budget = this.model.budgets[which]
    if (on === null || budget === undefined) return
    this.#copy = null
    budget.cap = cap === null ? null : BigInt(cap)
    budget.strict = cap !== null && strict
    await on.engine.limits.budgets.set(this.#orgId, budget.scope, String(this.#orgId), budget.cap, { strict, period: budget.period })
    const told = on.engine.heard(this.#orgId)
    await settled(async () => this.#engines.every(engine => engine === null || engine.heard(this.#orgId) >= told))
  }

  async flush(slot: number): Promise<void> {
    const on = this.#engine(slot)
    if (on === null) return
    await on.engine.limits.flushNow()
    this.model.unheard.delete(on.slot)
  }

  async beat(slot: number): Promise<void> {
    await this.#engine(slot)?.engine.limits.beat()
  }

  /** Starts a new day, week or month for all engines. Running calls belong to the periods in which they began. */
  turn(period: EndingPeriod): void {
    const nowMs = Date.now() + this.#wallMs
    this.#wallMs += this.#calendar.windowAt(defaultZones, period, nowMs).endsAtMs - nowMs + 3600_000
    this.model.windows = this.#windowsAt(Date.now() + this.#wallMs)
  }

  /** Kills an engine. Only its journal remains, in its current state. */
  crash(slot: number): void {
    const on = this.#engine(slot)
    if (on === null) return
    const { processId } = on.engine.limits
    const dataDir = mkdtempSync(join(tmpdir(), 'brigade-model-'))
    for (const { path } of segmentsOf(journalFolder(on.engine.dataDir), processId)) copyFileSync(path, join(journalFolder(dataDir), basename(path)))
    this.#journals.set(on.slot, { dataDir, processId })
    this.#zombies.push(on.engine)
    this.#engines[on.slot] = null
    for (const call of this.model.running) {
      if (call.engine !== on.slot) continue
      this.model.running.delete(call)
      this.model.doubtful.add(call)
    }
  }

  /** Starts a new engine on the folder of a dead one. */
  async adopt(slot: number): Promise<void> {
    const at = slot % this.#engines.length
    const left = this.#journals.get(at)
    if (left === undefined) return
    this.#journals.delete(at)
    this.#copy = null
    await this.#db.exec(silence, left.processId)
    const engine = await startEngine(this.#db, { clock: this.#clock, dataDir: left.dataDir, env: { ...env, ALLOWANCE_SECONDS: this.#seconds } })
    this.#engines[at] = engine
    this.model.unheard.delete(at)
    for (const call of this.model.doubtful) {
      if (call.engine !== at) continue
      this.model.doubtful.delete(call)
      if (call.draft !== null) this.model.charge(call, call.draft)
    }
    this.model.unheard.delete(at)
  }

  /** Copies the tables of amounts, as a replica of the database would. */
  async snapshot(): Promise<void> {
    if (this.#copy !== null) await this.#db.script(dropCopy(this.#copy))
    this.#copy = `copy_${this.#orgId}`
    await this.#db.script(dropCopy(this.#copy) + takeCopy(this.#copy, this.#orgId, this.#processIds()))
  }

  /** Restores the last copy, so that later commits are lost, as in a failover to a replica. */
  async failOver(): Promise<void> {
    if (this.#copy === null || this.#journals.size > 0) return
    await this.#db.script(useCopy(this.#copy, this.#orgId, this.#processIds()))
    await this.#db.script(dropCopy(this.#copy))
    this.#copy = null
    this.#lost = true
  }

  #processIds(): string {
    return [0n, ...this.#engines.flatMap(engine => (engine === null ? [] : [engine.limits.processId]))].join(',')
  }

  /** Checks everything that must hold after every command. */
  async check(): Promise<void> {
    await settled(async () => {
      const [rows, leases] = [await this.#db.many(counterRows, this.#orgId), await this.#db.many(leaseRows, this.#orgId)]
      if (rows.some(({ id, leased }) => leased !== leases.filter(l => l.counterId === id).reduce((sum, l) => sum + l.amount, 0n))) return false
      if (this.#lost) return true
      return this.#engines.every(engine => {
        const own = new Map(leases.flatMap(l => (l.processId === engine?.limits.processId ? [[l.counterId, l.amount] as const] : [])))
        return engine === null || isSame(own, engine.limits.ownLeases, id => rows.some(row => row.id === id))
      })
    })
  }

  /** Ends all calls. Then engines, database and model must have the same amounts, and no hold may remain. */
  async finish(): Promise<void> {
    for (let i = 0; this.model.running.size > 0; i++) {
      if (i % 2 === 0) this.release(i)
      else await this.settle(i, 77)
    }
    for (const slot of this.#engines.keys()) await this.adopt(slot)
    for (const engine of this.#engines) await engine?.limits.beat()
    for (const slot of this.#engines.keys()) await this.flush(slot)
    await this.#compare()
    for (const engine of [...this.#engines, ...this.#zombies]) await engine?.stop()
    await this.#compare()
    expect(await this.#db.many(leaseRows, this.#orgId)).toEqual([])
    if (this.#copy !== null) await this.#db.script(dropCopy(this.#copy))
  }

  async #compare(): Promise<void> {
    const rows = await this.#db.many(counterRows, this.#orgId)
    const events = await this.#db.many(eventSums, this.#orgId)
    for (const row of rows) {
      const at = this.#budgetOf(row)
      expect(row.spent, `${row.scope} ${row.period}`).toBe(this.model.spent(at, row.period))
      if (this.model.budgets[at]?.period === 'month') expect(events.find(event => event.month === row.period)?.value ?? 0n).toBe(row.spent)
    }
    expect(await this.#db.many(doubled, this.#orgId)).toEqual([])
  }

  async abandon(): Promise<void> {
    for (const engine of [...this.#engines, ...this.#zombies]) await engine?.stop().catch(() => undefined)
  }
}

function isSame(a: ReadonlyMap<bigint, bigint>, b: ReadonlyMap<bigint, bigint>, counts: (id: bigint) => boolean): boolean {
  for (const id of new Set([...a.keys(), ...b.keys()])) if (counts(id) && (a.get(id) ?? 0n) !== (b.get(id) ?? 0n)) return false
  return true
}

/** Waits for a short time until work in the background has finished. */
async function settled(isSo: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; !(await isSo()); attempt++) {
    expect(attempt, 'the engines and the database never came to the same').toBeLessThan(400)
    await systemClock.sleep(5)
  }
}

const tables = ['counters', 'leases', 'events', 'beats'] as const
const dropCopy = (name: string): string => tables.map(table => `drop table if exists ${name}_${table};`).join('')
const takeCopy = (name: string, orgId: number, processes: string): string => `
  create table ${name}_counters as select * from counters where org_id = ${orgId};
  create table ${name}_leases as select l.* from leases l join counters c on c.id = l.counter_id where c.org_id = ${orgId};
  create table ${name}_events as select * from usage_events where org_id = ${orgId};
  create table ${name}_beats as select * from beats where process_id in (${processes});`
const useCopy = (name: string, orgId: number, processes: string): string => `
  begin;
  delete from leases l using counters c where c.id = l.counter_id and c.org_id = ${orgId};
  delete from usage_events where org_id = ${orgId};
  insert into usage_events select * from ${name}_events;
  insert into leases select * from ${name}_leases;
  update counters c set
    spent = coalesce((select s.spent from ${name}_counters s where s.id = c.id), 0), leased = coalesce((select s.leased from ${name}_counters s where s.id = c.id), 0)
  where c.org_id = ${orgId};
  update beats b set flush_to = coalesce((select s.flush_to from ${name}_beats s where s.process_id = b.process_id), 0) where b.process_id in (${processes});
  commit;`
