/**
 * Keeps the runs with caps in the memory of every process, so that a warm call makes no query. A run without caps costs one look-up in a map. The control
 * log brings changed caps. Decision 0810 gives the reasons.
 */
import { LRUCache } from 'lru-cache'
import type { Db, Tx } from '../../../../platform/db/db.ts'
import type { ControlLog } from '../../../../platform/db/db-control-log.ts'
import { fail } from '../../../../platform/errors.ts'
import type { Log } from '../../../../platform/observe/log.ts'
import { capsText, type RunCaps } from '../../../../platform/security/run-caps.ts'
import { type RunRef, runKeyOf } from '../ended-runs.ts'
import { beginRun, hasBoth } from './begin-run.ts'
import { type CapsRow, type CountedRow, findCappedRun, findRunsWithCaps, lockRun, setRunCaps } from './cap-queries.ts'
import { type AskedCaps, afterAsking, askedOf, type EffectiveCaps, effectiveCaps, haveCaps, type RunRules } from './effective-caps.ts'

/** The kind of news about changed caps of a run. Its ref is the key of the run. */
export const runCapsChanged = 'run_caps'

/** The most runs with caps that a process knows. */
const knownMax = 50_000
/** The most runs with caps of their own that a process knows. Beyond it, the oldest is known again when a call asks for caps. */
const ownMax = 200_000
/** The most sub-agents that a process knows, of all runs. The database has all of them. */
const seenMax = 50_000
/** A run that rests is forgotten long before its counters are deleted. */
const knownTtlMs = 24 * 3600_000
/** The most times that a look-up begins again because another process changed the run. */
const roundsMax = 8

/** What a run has used, and its caps on it. */
interface Counted {
  readonly id: bigint
  readonly cap: bigint | null
  readonly spent: bigint
}

/** A run with caps. A change of its caps makes a new object. */
export interface CappedRun {
  readonly number: bigint
  readonly runId: string
  readonly spend: Counted
  readonly calls: Counted
  readonly strict: boolean
  /** The admission of its first call, in Unix milliseconds. */
  readonly firstAtMs: number
  readonly minutes: number | null
  readonly subagents: number | null
  readonly depth: number | null
  /** The depths of the sub-agents that this process has seen, of all runs. */
  readonly seen: Pick<LRUCache<string, number>, 'get' | 'set'>
}

/** The counters of runs. Limits have them. */
export interface RunCounterBook {
  make(tx: Tx, orgId: number, number: bigint, used: Used, caps: CounterCaps): Promise<CounterIds>
  lock(tx: Tx, runs: readonly NumberedRun[]): Promise<void>
  set(tx: Tx, orgId: number, number: bigint, used: Used, caps: CounterCaps): Promise<CounterIds>
  remove(tx: Tx, runs: readonly NumberedRun[]): Promise<readonly bigint[]>
}
/** The row of a run. */
export interface NumberedRun {
  readonly orgId: number
  readonly number: bigint
}
type Used = Pick<CapsRow, 'valueUinr' | 'calls'>
type CounterCaps = Pick<EffectiveCaps, 'costUinr' | 'calls' | 'strict'>
interface CounterIds {
  readonly spendId: bigint
  readonly callsId: bigint
}

export interface CappedRunsDeps {
  readonly db: Db
  readonly log: Log
  readonly controlLog: ControlLog
  readonly counters: RunCounterBook
  /** The time of the database's clock in Unix milliseconds. */
  readonly nowMs: () => number
}

/** A known run, and what decided about its caps. */
interface Known {
  readonly run: CappedRun
  readonly owner: RunCaps | null
  /** The lowest caps that calls have asked for. */
  readonly asked: AskedCaps
}

/** The runs with caps that this process knows. */
export class CappedRuns {
  readonly #deps: CappedRunsDeps
  readonly #known = new LRUCache<string, Known>({ max: knownMax, ttl: knownTtlMs, ttlResolution: 0, updateAgeOnGet: true })
  readonly #seen = new LRUCache<string, number>({ max: seenMax })
  /** By organisation, the runs whose calls must be looked up although no rule of their callers says so. The organisation with most runs loses its oldest. */
  readonly #own = new Map<number, Set<string>>()
  #ownCount = 0
  readonly #loading = new Map<string, Promise<CappedRun>>()
  /** Increases with each change of caps, so that a look-up from before it is not kept. */
  #changes = 0

  constructor(deps: CappedRunsDeps) {
    this.#deps = deps
    deps.controlLog.on(news => {
      if (news.kind !== runCapsChanged) return
      this.#changes++
      this.#known.delete(news.ref)
      this.#noteOwn(news.ref)
    })
    deps.controlLog.onGap(() => {
      this.forget()
      void this.start().catch(error => deps.log.error('capped_runs_load_failed', { error }))
    })
  }

  /** Loads the runs with caps of their own. Call it after the control log has started. */
  async start(): Promise<void> {
    for (const ref of (await this.#deps.db.many(findRunsWithCaps, ownMax)).toReversed()) this.#noteOwn(runKeyOf(ref))
  }

  /** Forgets all runs, because their counters may be gone or have other caps. The next call of each looks it up. */
  forget(): void {
    this.#changes++
    this.#known.clear()
  }

  /**
   * Returns the run of a call with its caps, or null when it has none. `asked` are the caps that the call itself asks for; they can lower a cap and never
   * raise one. Returns a promise only when the database must be asked. Throws `database_unavailable`, and `cap` when too many runs begin on a day.
   */
  of(key: string, ref: RunRef, rules: RunRules, asked: AskedCaps | null): CappedRun | null | Promise<CappedRun> {
    const known = this.#known.get(key)
    if (known === undefined)
      return asked === null && this.#own.get(ref.orgId)?.has(key) !== true && !haveCaps(rules) ? null : this.#find(key, ref, rules, asked)
    return fits(known, rules, asked) ? known.run : this.#find(key, ref, rules, asked)
  }

  async #find(key: string, ref: RunRef, rules: RunRules, asked: AskedCaps | null): Promise<CappedRun> {
    for (let round = 0; round < roundsMax; round++) {
      const known = this.#known.get(key)
      if (known !== undefined && fits(known, rules, asked)) return known.run
      const other = this.#loading.get(key)
      if (other === undefined) {
        const loading = this.#load(key, ref, rules, asked).finally(() => this.#loading.delete(key))
        this.#loading.set(key, loading)
        return await loading
      }
      await other
    }
    throw fail('database_unavailable')
  }

  async #load(key: string, ref: RunRef, rules: RunRules, asked: AskedCaps | null): Promise<CappedRun> {
    const { db } = this.#deps
    const { orgId, ownerKind, ownerId, runId } = ref
    for (let round = 0; round < roundsMax; round++) {
      const before = this.#changes
      const row = await db.maybe(findCappedRun, orgId, ownerKind, ownerId, runId)
      if (row !== null && isAsWanted(row, rules, asked)) {
        const found = runOf(row, runId, rules.owner, this.#seen)
        if (before === this.#changes) this.#keep(key, found, rules.owner, row)
        return found
      }
      await this.#write(key, ref, row, rules, asked)
    }
    throw fail('database_unavailable')
  }

  /** Writes what the call asks for, and makes the counters agree. Does nothing when the row is not as `row` says any more. */
  async #write(key: string, ref: RunRef, row: CountedRow | null, rules: RunRules, asked: AskedCaps | null): Promise<void> {
    const { counters, controlLog } = this.#deps
    const { orgId, ownerKind, ownerId, runId } = ref
    await controlLog.change(async tx => {
      const same = { value: undefined, news: [] }
      const hasCounters = hasBoth(row)
      // A flush locks counters before the rows of runs.
      if (hasCounters) await counters.lock(tx, [{ orgId, number: row.number }])
      const locked = row === null ? await beginRun(tx, ref, this.#deps.nowMs()) : await tx.maybe(lockRun, orgId, ownerKind, ownerId, runId)
      if (locked === null || (locked.capped && !hasCounters && row?.capped !== true)) return same
      const own = afterAsking(locked, askedOf(asked, rules.key))
      const caps = effectiveCaps(own, rules.owner)
      await tx.exec(setRunCaps, locked.number, own.askedCostUinr, own.askedCalls, capsText(own.setCaps))
      if (hasCounters) await counters.set(tx, orgId, locked.number, locked, caps)
      else await counters.make(tx, orgId, locked.number, locked, caps)
      const isNews = own.askedCostUinr !== locked.askedCostUinr || own.askedCalls !== locked.askedCalls
      return { value: undefined, news: isNews ? [{ kind: runCapsChanged, ref: key }] : [] }
    })
  }

  #keep(key: string, run: CappedRun, owner: RunCaps | null, { askedCostUinr, askedCalls }: CapsRow): void {
    this.#known.set(key, { run, owner, asked: { costUinr: askedCostUinr, calls: askedCalls } })
  }

  #noteOwn(key: string): void {
    const orgId = Number(key.slice(0, key.indexOf(':')))
    const ofOrg = this.#own.get(orgId) ?? new Set<string>()
    if (ofOrg.has(key)) return
    this.#own.set(orgId, ofOrg)
    ofOrg.add(key)
    if (++this.#ownCount <= ownMax) return
    let most = ofOrg
    for (const each of this.#own.values()) if (each.size > most.size) most = each
    for (const oldest of most) if (most.delete(oldest)) break
    this.#ownCount--
  }
}

/** Returns true when what is known of the run holds for this call too. */
function fits(known: Known, { owner, key }: RunRules, asked: AskedCaps | null): boolean {
  if (asked !== null && (isBelow(asked.costUinr, known.asked.costUinr) || isBelow(asked.calls, known.asked.calls))) return false
  if (key !== null && (isBelow(key.maxCostUinr, known.asked.costUinr) || isBelow(key.maxCalls, known.asked.calls))) return false
  return known.owner === owner || areSame(known.owner, owner)
}

const isBelow = (is: bigint | number | null, was: bigint | null): boolean => is !== null && (was === null || is < was)

/** Almost always both are the same object, which lives as long as its key or agent is cached, so that this is not called. */
function areSame(a: RunCaps | null, b: RunCaps | null): boolean {
  if (a === null || b === null) return false
  return (
    a.maxCostUinr === b.maxCostUinr &&
    a.maxCalls === b.maxCalls &&
    a.maxMinutes === b.maxMinutes &&
    a.maxSubagents === b.maxSubagents &&
    a.maxDepth === b.maxDepth &&
    a.isStrict === b.isStrict
  )
}

/** Returns true when row and counters have what the rules and the call want, so that nothing must be written. */
function isAsWanted(row: CountedRow, rules: RunRules, asked: AskedCaps | null): row is CountedRow & { spendId: bigint; callsId: bigint } {
  if (!row.capped || row.spendId === null || row.callsId === null || afterAsking(row, askedOf(asked, rules.key)) !== row) return false
  const { costUinr, calls, strict } = effectiveCaps(row, rules.owner)
  const areCounted = row.spendSpent === row.valueUinr && row.callsSpent === row.calls
  return areCounted && row.spendCap === costUinr && row.callsCap === calls && row.strict === strict
}

function runOf(row: CountedRow & { spendId: bigint; callsId: bigint }, runId: string, owner: RunCaps | null, seen: CappedRun['seen']): CappedRun {
  const { minutes, subagents, depth, strict } = effectiveCaps(row, owner)
  return {
    number: row.number,
    runId,
    spend: { id: row.spendId, cap: row.spendCap, spent: row.spendSpent ?? 0n },
    calls: { id: row.callsId, cap: row.callsCap, spent: row.callsSpent ?? 0n },
    strict,
    firstAtMs: row.firstAt.getTime(),
    minutes,
    subagents,
    depth,
    seen,
  }
}
