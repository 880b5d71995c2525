import { claimDue } from '../../../platform/db/jobs.ts'
import { Cancellation } from '../../../platform/loop/cancellation.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { Shares } from '../../../platform/shares.ts'
import { distinctSteps } from '../monitoring/health.ts'
import { claimDueRounds, endRound, type RoundCollection } from '../monitoring/monitor-queries.ts'
import type { CanaryBudget, Exhausted } from './canary-budget.ts'
import { type CanaryRoundsDeps, type Round, runRound } from './canary-rounds.ts'
import { CanarySlots } from './canary-slots.ts'

export interface CanaryWorkerDeps extends CanaryRoundsDeps {
  readonly log: Log
  readonly budget: Pick<CanaryBudget, 'take'>
  /** The setting MONITOR_EVERY_S. */
  readonly everyS: number
}

/** Maximum number of monitoring rounds that run in this process. Most of them wait for a slot. */
const roundsMax = 256
/** One founder may take this percentage of the rounds that others leave free. */
const roundsPercent = 50
/** Maximum number of concurrent canaries of monitoring rounds. Rounds for which a caller waits have a limit of their own. */
const slotsOfMonitors = 64
const slotsOfChecks = 64
/** Maximum number of slots of one founder. It is enough for a whole round. */
const slotsOfFounder = 10
const lookMinMs = 100
const lookMaxMs = 1_000
const looksPerPause = 10

/**
 * Runs the rounds of canaries that are due and the rounds that callers request. Every process claims due rounds, and each round runs in one process.
 * When a process dies, its running rounds are lost. The next rounds of these collections come after the usual pause. Decision 0334 and Decision 0476
 * say why.
 */
export class CanaryWorker {
  readonly #deps: CanaryWorkerDeps
  readonly #cut = new Cancellation()
  readonly #monitorSlots = new CanarySlots(slotsOfMonitors, slotsOfFounder)
  readonly #checkSlots = new CanarySlots(slotsOfChecks, slotsOfFounder)
  /** Running rounds by collection. */
  readonly #running = new Map<number, { readonly round: Round; readonly end: Promise<void> }>()
  /** The running monitoring rounds by founder. */
  readonly #places = new Shares<number>(roundsMax, roundsPercent)
  #look: Promise<unknown> | null = null
  #stopTimer: () => void = () => {}

  constructor(deps: CanaryWorkerDeps) {
    this.#deps = deps
  }

  /** Starts to look for due rounds. `stop` ends this. */
  start(): void {
    const { clock, everyS, log } = this.#deps
    const lookMs = Math.min(lookMaxMs, Math.max(lookMinMs, (everyS * 1000) / looksPerPause))
    this.#stopTimer = clock.every(lookMs, () => {
      if (this.#look !== null || this.#cut.aborted) return
      this.#look = this.#beginDue()
        .catch((error: unknown) => {
          if (!this.#cut.aborted) log.warn('canaries_look_failed', { error })
        })
        .finally(() => {
          this.#look = null
        })
    })
  }

  /** Starts no more rounds. Running rounds are cancelled and store nothing. */
  async stop(): Promise<void> {
    this.#stopTimer()
    this.#cut.abort(new Error('the process stops'))
    await this.#look
    await Promise.allSettled([...this.#running.values()].map(({ end }) => end))
  }

  /**
   * Waits for the running round of a collection in this process. The results of this round are then stored in any case. Returns null when no round is
   * running.
   */
  joined(collectionId: number): Promise<void> | null {
    const running = this.#running.get(collectionId)
    if (running === undefined || running.round.isDropped === true) return null
    running.round.isAsked = true
    return running.end
  }

  /** Runs a claimed round for a waiting caller. Rejects when its results could not be stored. */
  run(collection: RoundCollection, begunAt: Date): Promise<void> {
    return this.#begin({ collection, begunAt, isAsked: true }, this.#checkSlots)
  }

  /** Runs a claimed round for which no caller waits. A failure is logged. */
  runAside(collection: RoundCollection, begunAt: Date): void {
    this.#noting(this.#begin({ collection, begunAt, isAsked: false }, this.#checkSlots))
  }

  async #beginDue(): Promise<void> {
    const { db, clock, everyS } = this.#deps
    const free = (): number => roundsMax - this.#places.held
    if (free() <= 0) return
    const begunAt = new Date(clock.nowMs())
    const claim = (): [now: Date, pauseS: number, limit: number] => [begunAt, everyS, free()]
    await claimDue(db, claimDueRounds, claim, collection => this.#placeDue({ collection, begunAt, isAsked: false }), 1)
  }

  /** Starts a due round. The round is skipped while the previous round of the collection runs, and when its founder has reached the limit. */
  async #placeDue(round: Round): Promise<void> {
    const { id, orgId } = round.collection
    const holder = await this.#deps.holderOf(orgId)
    if (this.#running.has(id)) this.#noting(this.#leaveOut(round, 'running'))
    else if (this.#places.take(holder) !== null) this.#noting(this.#leaveOut(round, 'share'))
    else this.#noting(this.#runPlaced(round, holder).finally(() => this.#places.give(holder)))
  }

  async #runPlaced(round: Round, holder: number): Promise<void> {
    const { orgId, steps } = round.collection
    const { db, budget } = this.#deps
    const exhausted = await budget.take(db, { orgId, holder }, distinctSteps(steps).length, false, round.begunAt.getTime())
    return exhausted === null ? this.#begin(round, this.#monitorSlots) : this.#leaveOut(round, exhausted)
  }

  /** Skips a round. The collection's next round comes after the usual pause. */
  async #leaveOut({ collection: { id, orgId }, begunAt }: Round, code: Exhausted | 'running' | 'share'): Promise<void> {
    const { db, log } = this.#deps
    await db.exec(endRound, orgId, id, begunAt, begunAt)
    if (code !== 'running') log.warn(code === 'share' ? 'canaries_left_out' : 'canaries_used_up', { orgId, code })
  }

  #begin(round: Round, slots: CanarySlots): Promise<void> {
    const { id } = round.collection
    const running = { round, end: runRound(round, slots, this.#cut, this.#deps) }
    this.#running.set(id, running)
    const forget = (): void => {
      if (this.#running.get(id) === running) this.#running.delete(id)
    }
    running.end.then(forget, forget)
    return running.end
  }

  #noting(end: Promise<void>): void {
    end.catch((error: unknown) => {
      if (!this.#cut.aborted) this.#deps.log.warn('canaries_round_lost', { error })
    })
  }
}
