/**
 * Acquires room in counters. It takes the room locally when every counter of a call has enough. Otherwise one statement grants all counters or
 * none.
 *
 * No call is refused from memory alone. A refusal is an answer of the database, and before it this process gives back its own rest and asks the
 * others for their idle slices. The answer is kept for a moment, so that many calls ask once. Decision 0205 gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db } from '../../../platform/db/db.ts'
import { type CounterAsk, ensureRows, withoutRow } from './counters/counter-rows.ts'
import { type Counter, type CounterTable, isMoney, isSpend } from './counters/counter-state.ts'
import type { ProcessRegistry } from './processes.ts'
import { acquire, type CounterRow, findEvidence, findOwnLeases, type IncreaseRow, notify, setLimitCap, syncCaps } from './queries.ts'
import type { Refused } from './refusal.ts'

/** The time for which a refusal is kept without asking again. */
const refusalMs = 250
/**
 * The shortest time between two requests to other processes for their idle slices of a counter. It is as long as a refusal is kept, so that no
 * call is refused while another process may have unused room.
 */
const recallEveryMs = refusalMs
/** The shortest time between two such requests for concurrent calls. It is shorter because other processes often give back a unit within a moment. */
const recallRunningEveryMs = 100
/** A limit up to this number of requests a minute, or of concurrent calls, is leased unit by unit. Such a limit also bounds the cost of leasing. */
const smallCap = 60n
/** A limit below this number of tokens a minute is leased by need. */
const smallTokenCap = 10_000n
/** A slice has at least this number of needs, so that a new counter reaches its slice size in a few requests. */
const sliceNeeds = 8n

/** This process was fenced while it asked. It has registered again, and the caller must begin again. */
export class FencedError extends Error {
  override readonly name = 'FencedError'
}

export interface AcquirerOptions {
  readonly db: Db
  readonly clock: Clock
  readonly counters: CounterTable
  readonly registry: ProcessRegistry
  readonly allowanceSeconds: number
  readonly recallWaitMs: number
  /** The time without a beat after which a process is in doubt. */
  readonly silentMs: number
  readonly channel: string
  /** Gives back the idle parts of these counters and flushes. */
  readonly giveBack: (counters: readonly Counter[]) => Promise<void>
  /** Drops counters whose rows are gone. */
  readonly onGone: (counters: readonly Counter[]) => void
  /** Is called when the increase of a counter is another one than before. */
  readonly onIncrease: () => void
  /** Registers this process again. */
  readonly refence: () => Promise<void>
}

/** The amounts that a call holds, in the order of its counters. */
export interface Held {
  readonly amounts: readonly bigint[]
  /** The part of each amount that is beyond the counter's cap: only a last call has one. Null when every cap covers its amount. */
  readonly beyondUinr: readonly bigint[] | null
}

type Answer =
  | { readonly kind: 'granted'; readonly got: readonly bigint[] }
  | { readonly kind: 'refused'; readonly counters: readonly Counter[]; readonly rows: ReadonlyMap<bigint, CounterRow> }

/** Acquires room in counters for the calls of this process. */
export class Acquirer {
  readonly #options: AcquirerOptions
  /** Increases when the process is fenced. Counters of an older generation are void. */
  generation = 0
  /** The number of acquire statements, for tests and metrics. */
  acquires = 0

  constructor(options: AcquirerOptions) {
    this.#options = options
  }

  /** Takes the needs out of the leased amounts without waiting, all or none. Returns true when it took them. */
  take(counters: readonly Counter[], needs: readonly bigint[], nowMs: number): boolean {
    for (let i = 0; i < counters.length; i++) if ((counters[i] as Counter).idle < (needs[i] as bigint)) return false
    for (let i = 0; i < counters.length; i++) {
      const counter = counters[i] as Counter
      const need = needs[i] as bigint
      counter.idle -= need
      counter.held += need
      counter.taken += need
      counter.usedAtMs = nowMs
      if (counter.slice > 0n && counter.flight === null && counter.idle * 5n < counter.slice * 2n) this.#refillSoon(counter)
    }
    return true
  }

  /**
   * Holds the needs in all counters or in none. A partial request may hold less than its need in each counter, down to what is left. Returns the
   * held amounts, or the refusal. Throws `DatabaseUnavailableError` and `FencedError`.
   */
  async obtain(counters: readonly Counter[], needs: readonly bigint[], partial: boolean): Promise<Held | Refused> {
    const generation = this.generation
    for (;;) {
      if (generation !== this.generation) throw new FencedError('fenced while waiting')
      const nowMs = this.#options.clock.monotonicMs()
      if (this.take(counters, needs, nowMs)) return { amounts: needs, beyondUinr: null }
      const refused = cachedRefusal(counters, needs, nowMs)
      if (refused !== null) return refused
      const busy = counters.findIndex((counter, i) => counter.flight !== null && counter.idle < (needs[i] ?? 0n))
      if (busy === -1) return this.#request(counters, needs, partial)
      await waitFor(counters[busy] as Counter, needs[busy] as bigint)
    }
  }

  /**
   * Returns true for a small cap of concurrent calls when other processes may exist. A unit of such a cap goes back as soon as its call ends,
   * because an idle unit here would refuse a call in another process.
   */
  returnsAtOnce(counter: Counter): boolean {
    return counter.metric === 'running' && this.#options.db.kind !== 'embedded' && counter.cap !== null && counter.cap <= smallCap
  }

  /** Makes the rows of counters that this process has not used yet, and updates a changed cap in the database. */
  async ensure(counters: readonly Counter[]): Promise<void> {
    const fresh = [...new Set(counters.filter(counter => counter.id === null))]
    if (fresh.length > 0) {
      const rows = await ensureRows(this.#options.db, fresh.map(askOf))
      for (const [index, counter] of fresh.entries()) {
        const row = rows[index]
        if (row === undefined) continue
        this.#options.counters.identify(counter, row.id)
        counter.learnSpent(row.spent)
        // Another process may have changed the balance, so the row's value is used.
        if (counter.metric === 'prepaid') counter.cap = row.cap
        else if (row.cap !== counter.cap || row.strict !== counter.strict) await this.bringCap(counter)
      }
    }
  }

  /** Updates the counter's cap in the database to the limit or budget. */
  async bringCap(counter: Counter): Promise<void> {
    if (counter.id === null) return
    if (isSpend(counter.metric)) await this.#options.db.exec(syncCaps, [counter.id])
    else if (counter.cap !== null) await this.#options.db.exec(setLimitCap, counter.id, counter.cap)
  }

  /** Reads the real leases after an acquire with an unknown commit. It runs while no flush runs. */
  async reconcile(): Promise<void> {
    const unsure = [...this.#options.counters.all()].filter(counter => counter.unsure && counter.flight === null && counter.id !== null)
    if (unsure.length === 0) return
    const before = unsure.map(counter => counter.lease)
    const rows = await this.#options.db.many(
      findOwnLeases,
      this.#options.registry.id,
      unsure.map(counter => counter.id as bigint),
    )
    const byId = new Map(rows.map(row => [row.counterId, row.amount]))
    for (const [index, counter] of unsure.entries()) {
      // A request that began in the meantime changed the lease. The next round reads it again.
      if (counter.flight !== null || counter.lease !== before[index]) continue
      const idle = counter.idle + (byId.get(counter.id as bigint) ?? 0n) - counter.lease
      counter.idle = idle > 0n ? idle : 0n
      counter.unsure = false
    }
  }

  async #request(counters: readonly Counter[], needs: readonly bigint[], partial: boolean): Promise<Held | Refused> {
    const generation = this.generation
    const reserved = needs.map((need, i) => reserve(counters[i] as Counter, need))
    const short = counters.filter((_, i) => (reserved[i] as bigint) < (needs[i] as bigint))
    const done = beginRequest(short)
    const giveUp = (): void => {
      for (const [i, counter] of counters.entries()) unreserve(counter, reserved, i)
    }
    try {
      await this.ensure(short)
      // This process may know of a call that cost more than its hold before the database does, so it flushes first.
      const dear = short.filter(counter => counter.untold || (counter.overdrawn && counter.unflushed > 0n))
      for (const counter of dear) counter.untold = false
      if (dear.length > 0) await this.#options.giveBack(dear)
      let answer = await this.#ask(counters, needs, reserved, partial)
      if (answer.kind === 'refused' && (await this.#makeRoom(answer, counters, reserved))) answer = await this.#ask(counters, needs, reserved, partial)
      if (generation !== this.generation) throw new FencedError('fenced while asking')
      if (answer.kind === 'granted' && answer.got.some((got, i) => got < (needs[i] as bigint)) && short.some(counter => counter.unflushed > 0n)) {
        // The grant is smaller than the need, and calls of this process have released amounts that are not in the database yet.
        for (const [i, got] of answer.got.entries()) reserved[i] = got
        await this.#options.giveBack(short)
        const more = await this.#ask(counters, needs, reserved, partial)
        if (more.kind === 'granted') answer = more
      }
      // No other request of these counters begins before `done`, so they still have the figures of this grant.
      if (answer.kind === 'granted') return { amounts: this.#hold(counters, needs, answer.got), beyondUinr: beyondOf(counters, short) }
      giveUp()
      // Amounts that calls released in the meantime may be enough.
      if (this.take(counters, needs, this.#options.clock.monotonicMs())) return { amounts: needs, beyondUinr: null }
      return await this.#refuse(counters, needs, answer.counters)
    } catch (error) {
      giveUp()
      throw error
    } finally {
      done()
    }
  }

  /** Turns the reserved and granted amounts into holds, none above its need. */
  #hold(counters: readonly Counter[], needs: readonly bigint[], totals: readonly bigint[]): readonly bigint[] {
    const nowMs = this.#options.clock.monotonicMs()
    return counters.map((counter, i) => {
      const need = needs[i] as bigint
      const total = totals[i] as bigint
      const held = total < need ? total : need
      counter.held += held
      counter.idle += total - held
      counter.taken += held
      counter.usedAtMs = nowMs
      return held
    })
  }

  async #ask(counters: readonly Counter[], needs: readonly bigint[], reserved: readonly bigint[], partial: boolean): Promise<Answer> {
    const short = counters.flatMap((counter, i) =>
      (reserved[i] as bigint) < (needs[i] as bigint) ? [{ counter, need: (needs[i] as bigint) - (reserved[i] as bigint) }] : [],
    )
    if (short.length === 0) return { kind: 'granted', got: reserved }
    const rows = await this.#send(
      short.map(s => s.counter),
      short.map(s => s.need),
      short.map(s => this.#want(s.counter, s.need)),
      partial,
    )
    const byId = new Map(rows.map(row => [row.id, row]))
    const gone = short.filter(s => !byId.has(s.counter.id as bigint))
    if (gone.length > 0) {
      // A failover has lost the rows. The caller begins again with new ones.
      this.#options.onGone(gone.map(s => s.counter))
      throw new FencedError('a counter row is gone')
    }
    if (rows[0]?.granted !== true)
      return { kind: 'refused', counters: short.map(s => s.counter).filter(counter => byId.get(counter.id as bigint)?.got === 0n), rows: byId }
    const got = counters.map(
      (counter, i) => (reserved[i] as bigint) + ((reserved[i] as bigint) < (needs[i] as bigint) ? (byId.get(counter.id as bigint)?.got ?? 0n) : 0n),
    )
    return { kind: 'granted', got }
  }

  async #send(counters: readonly Counter[], needs: readonly bigint[], wants: readonly bigint[], partial: boolean) {
    const { db, registry, clock } = this.#options
    const divisor = db.kind === 'embedded' ? 1n : 2n * BigInt(registry.live)
    this.acquires++
    try {
      const rows = await db.many(
        acquire,
        registry.id,
        counters.map(counter => counter.id as bigint),
        needs,
        wants,
        divisor,
        partial,
      )
      registry.touch()
      if (rows.length === 0) {
        const { generation } = this
        await this.#options.refence()
        // Otherwise the rows of all these counters may be gone, such as those of a run that rested for long.
        const gone = generation === this.generation ? await withoutRow(db, counters) : []
        if (gone.length > 0) this.#options.onGone(gone)
        throw new FencedError('this process was fenced off, or the counters are gone')
      }
      for (const row of rows) this.#learn(row, counters, needs, clock.monotonicMs())
      return rows
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) for (const counter of counters) counter.unsure = true
      throw error
    }
  }

  #learn(row: CounterRow & IncreaseRow & { got: bigint; granted: boolean }, counters: readonly Counter[], needs: readonly bigint[], nowMs: number): void {
    const index = counters.findIndex(counter => counter.id === row.id)
    const counter = counters[index]
    if (counter === undefined) return
    counter.strict = row.strict
    counter.learnSpent(row.spent)
    if (counter.learnIncrease(row.extra, row.extraUntil)) this.#options.onIncrease()
    counter.taken = 0n
    counter.askedAtMs = nowMs
    counter.slice = row.granted && row.got >= 4n * (needs[index] as bigint) && row.got > 4n ? row.got : 0n
    if (!row.granted) return
    counter.refusal = null
    const beyond = row.cap === null ? 0n : row.spent + row.leased + row.got - row.cap
    counter.beyond = beyond > 0n ? beyond : 0n
    counter.overdrawn = beyond > 0n
  }

  /**
   * Returns the amount to request: at least the need and the needs of waiting callers, and otherwise ALLOWANCE_SECONDS of the recent demand. The
   * statement bounds it by what is left.
   */
  #want(counter: Counter, need: bigint): bigint {
    const least = need + counter.waiting
    const { allowanceSeconds, db, clock } = this.#options
    if (allowanceSeconds === 0) return least
    const isRate = !isMoney(counter.metric)
    if (isRate && db.kind === 'embedded') return max(least, counter.cap ?? 0n)
    if (isRate && counter.cap !== null && (counter.metric === 'tpm' ? counter.cap < smallTokenCap : counter.cap <= smallCap)) return least
    const elapsedMs = Math.max(clock.monotonicMs() - counter.askedAtMs, 50)
    const demand = BigInt(Math.ceil((Number(counter.taken) / elapsedMs) * 1000 * allowanceSeconds))
    return max(max(least, demand), need * sliceNeeds)
  }

  /** Gives back this process's own rest and asks the other processes for their idle slices. Returns true when another request may succeed. */
  async #makeRoom(answer: Extract<Answer, { kind: 'refused' }>, counters: readonly Counter[], reserved: bigint[]): Promise<boolean> {
    const { db, clock, recallWaitMs, channel } = this.#options
    let isWorth = false
    const own = answer.counters.filter(counter => {
      const i = counters.indexOf(counter)
      const hasRest = (reserved[i] as bigint) > 0n || counter.idle > 0n || counter.unflushed > 0n
      if (hasRest) unreserve(counter, reserved, i)
      return hasRest
    })
    if (own.length > 0) {
      await this.#options.giveBack(own)
      isWorth = true
    }
    const nowMs = clock.monotonicMs()
    const recall = answer.counters.filter(counter => {
      const row = answer.rows.get(counter.id as bigint)
      return (
        row !== undefined && row.leased > counter.lease && nowMs - counter.recalledAtMs >= (counter.metric === 'running' ? recallRunningEveryMs : recallEveryMs)
      )
    })
    if (db.kind === 'embedded' || recall.length === 0 || recallWaitMs === 0) return isWorth
    for (const counter of recall) counter.recalledAtMs = nowMs
    await db.exec(notify, channel, `recall:${recall.map(counter => counter.id).join(',')}`)
    await clock.sleep(recallWaitMs)
    return true
  }

  async #refuse(counters: readonly Counter[], needs: readonly bigint[], refusing: readonly Counter[]): Promise<Refused> {
    const { db, clock, registry, silentMs } = this.#options
    const rows = await db.many(
      findEvidence,
      refusing.map(counter => counter.id as bigint),
      BigInt(silentMs),
    )
    let first: Refused | null = null
    for (const [i, counter] of counters.entries()) {
      const row = rows.find(candidate => candidate.id === counter.id)
      if (row === undefined) continue
      counter.learnSpent(row.spent)
      const held = max(0n, row.leased - row.inDoubt - counter.idle)
      const isOwn = row.leased <= counter.lease && counter.held === 0n && (counter.metric === 'rpm' || counter.metric === 'daily')
      const untilMs = clock.monotonicMs() + (isOwn ? Math.max(0, counter.endsAtMs - registry.nowMs()) : refusalMs)
      counter.refusal = { untilMs, needFrom: counter.strict ? (needs[i] as bigint) : 0n, cap: row.cap ?? 0n, spent: row.spent, held, inDoubt: row.inDoubt }
      first ??= { counter, note: counter.refusal }
    }
    if (first === null) throw new Error('a refusal without a counter')
    return first
  }

  #refillSoon(counter: Counter): void {
    if (counter.refusal !== null || counter.unsure || counter.id === null) return
    const done = beginRequest([counter])
    const generation = this.generation
    const want = this.#want(counter, 1n)
    this.#send([counter], [0n], [want], false)
      .then(rows => {
        const row = rows[0]
        if (generation !== this.generation || row === undefined) return
        if (row.granted) counter.idle += row.got
        counter.slice = row.granted ? row.got : 0n
      })
      // No call waits for a refill. When it fails, the next call that needs room asks and reports the error.
      .catch(() => undefined)
      .finally(done)
  }
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** Returns what the last grant of the counters that were short has beyond their caps, or null when it has nothing beyond any of them. */
const beyondOf = (counters: readonly Counter[], short: readonly Counter[]): readonly bigint[] | null =>
  short.some(({ beyond }) => beyond > 0n) ? counters.map(counter => (short.includes(counter) ? counter.beyond : 0n)) : null

const askOf = (counter: Counter): CounterAsk => counter

function reserve(counter: Counter, need: bigint): bigint {
  const part = counter.idle < need ? counter.idle : need
  counter.idle -= part
  return part
}

function unreserve(counter: Counter, reserved: bigint[], index: number): void {
  counter.idle += reserved[index] ?? 0n
  reserved[index] = 0n
}

/** Marks counters as being requested. The returned function ends that and wakes the waiting callers. */
function beginRequest(counters: readonly Counter[]): () => void {
  let end = (): void => {}
  const flight = new Promise<void>(resolve => {
    end = resolve
  })
  for (const counter of counters) counter.flight = flight
  return () => {
    for (const counter of counters) if (counter.flight === flight) counter.flight = null
    end()
  }
}

async function waitFor(counter: Counter, need: bigint): Promise<void> {
  counter.waiting += need
  try {
    await counter.flight
  } finally {
    counter.waiting -= need
  }
}

function cachedRefusal(counters: readonly Counter[], needs: readonly bigint[], nowMs: number): Refused | null {
  for (const [i, counter] of counters.entries()) {
    const note = counter.refusal
    if (note === null || counter.idle >= (needs[i] as bigint)) continue
    if (nowMs >= note.untilMs) counter.refusal = null
    else if ((needs[i] as bigint) >= note.needFrom) return { counter, note }
  }
  return null
}
