import { claimDue } from '../../../platform/db/jobs.ts'
import { Cancellation } from '../../../platform/loop/cancellation.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { distinctSteps } from '../monitoring/health.ts'
import { claimDueRounds, endRound, type RoundCollection } from '../monitoring/monitor-queries.ts'
import type { CanaryBudget } from './canary-budget.ts'
import { type CanaryRoundsDeps, type Round, runRound } from './canary-rounds.ts'
import { CanarySlots } from './canary-slots.ts'

export interface CanaryWorkerDeps extends CanaryRoundsDeps {
  readonly log: Log
  readonly budget: Pick<CanaryBudget, 'take'>
  /** MONITOR_EVERY_S. */
  readonly everyS: number
}

/** Rounds of monitored collections under way in this process; most of them wait for a slot when there are many. */
const roundsMax = 256
/** Concurrent canaries of those rounds, and separately of rounds that a caller waits for. */
const slotsOfMonitors = 64
const slotsOfChecks = 64
/** Of one founder: a whole round. */
const slotsOfFounder = 10
const lookMinMs = 100
const lookMaxMs = 1_000
const looksPerPause = 10

/**
 * Runs the rounds of canaries: those that are due, which every process claims and no two have, and those that somebody asks for. A process
 * that dies loses the rounds that it has begun; the next ones come a pause later. Decision 0334 says why.
 */
export class CanaryWorker {
  readonly #deps: CanaryWorkerDeps
  readonly #cut = new Cancellation()
  readonly #monitorSlots = new CanarySlots(slotsOfMonitors, slotsOfFounder)
  readonly #checkSlots = new CanarySlots(slotsOfChecks, slotsOfFounder)
  /** Rounds under way by collection. */
  readonly #running = new Map<number, { readonly round: Round; readonly end: Promise<void> }>()
  #monitoring = 0
  #look: Promise<unknown> | null = null
  #stopTimer: () => void = () => {}

  constructor(deps: CanaryWorkerDeps) {
    this.#deps = deps
  }

  /** Looks for rounds that are due, from now on until `stop`. */
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

  /** Nothing begins any more; what is under way is cut and writes nothing. */
  async stop(): Promise<void> {
    this.#stopTimer()
    this.#cut.abort(new Error('the process stops'))
    await this.#look
    await Promise.allSettled([...this.#running.values()].map(({ end }) => end))
  }

  /** The round that this process runs for a collection right now, joined: what it finds is written in any case. */
  joined(collectionId: number): Promise<void> | null {
    const running = this.#running.get(collectionId)
    if (running === undefined || running.round.isDropped === true) return null
    running.round.isAsked = true
    return running.end
  }

  /** Runs a round that was claimed for somebody who waits. Rejects when what it found could not be written. */
  run(collection: RoundCollection, begunAt: Date): Promise<void> {
    return this.#begin({ collection, begunAt, isAsked: true }, this.#checkSlots)
  }

  /** The same for nobody: a failure is logged. */
  runAside(collection: RoundCollection, begunAt: Date): void {
    this.#noting(this.#begin({ collection, begunAt, isAsked: false }, this.#checkSlots))
  }

  async #beginDue(): Promise<void> {
    const { db, clock, everyS } = this.#deps
    if (this.#monitoring >= roundsMax) return
    const begunAt = new Date(clock.nowMs())
    const claim = (): [now: Date, pauseS: number, limit: number] => [begunAt, everyS, roundsMax - this.#monitoring]
    await claimDue(db, claimDueRounds, claim, async collection => this.#beginMonitored(collection, begunAt), 1)
  }

  #beginMonitored(collection: RoundCollection, begunAt: Date): void {
    this.#monitoring++
    const end = this.#beginWithRoom({ collection, begunAt, isAsked: false })
    this.#noting(
      end.finally(() => {
        this.#monitoring--
      }),
    )
  }

  /** A round that there is no room for today is left out: the next one is looked at a pause later. */
  async #beginWithRoom(round: Round): Promise<void> {
    const { db, budget, log, holderOf } = this.#deps
    const { id, orgId, steps } = round.collection
    const exhausted = await budget.take(db, { orgId, holder: await holderOf(orgId) }, distinctSteps(steps).length, false, round.begunAt.getTime())
    if (exhausted === null) return this.#begin(round, this.#monitorSlots)
    await db.exec(endRound, orgId, id, round.begunAt, round.begunAt)
    log.warn('canaries_used_up', { orgId, code: exhausted })
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
