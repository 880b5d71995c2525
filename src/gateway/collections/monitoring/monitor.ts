import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { quietAlerts } from '../alerts/alert-queries.ts'
import { askedRoundsMax, type CanaryBudget, type Exhausted } from '../canaries/canary-budget.ts'
import type { CanaryWorker } from '../canaries/canary-worker.ts'
import { type CollectionRow, findOwn } from '../collection-queries.ts'
import { isSlug } from '../collection-slug.ts'
import { distinctSteps, type HealthDeps, healthOf, type StepHealth } from './health.ts'
import { claimRound, countMonitored, findRound, lockMonitorsOfOrg, setDue, setMonitored } from './monitor-queries.ts'

export interface MonitorDeps extends HealthDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly budget: Pick<CanaryBudget, 'take'>
  /** Returns a number for the founder of an organisation. */
  holderOf(orgId: number): Promise<number>
  readonly worker: Pick<CanaryWorker, 'joined' | 'run' | 'runAside' | 'stop'>
  /** The setting MONITOR_EVERY_S. */
  readonly everyS: number
  /** The setting MONITORED_MAX. */
  readonly monitoredMax: number
  /** The setting MONITOR_TIMEOUT_S. */
  readonly timeoutS: number
}

export interface CollectionHealth {
  readonly monitored: boolean
  readonly days: number
  readonly health: readonly StepHealth[]
}

/** Default number of days in a health report. */
export const healthDaysDefault = 7
/** Minimum age of a round before a caller can request another round of the same collection. */
const roundAgeMinMs = 15_000
/** Interval at which a waiting caller checks whether a round in another process has ended. */
const lookMs = 250

export const noCollection = (): GatewayError =>
  fail('not_found', { message: 'There is no such collection in this organisation. GET /me/collections lists its own; fork a public one to watch it.' })

/** Returns a collection of the organisation by its slug. Throws `not_found`, also for a public collection of another organisation. */
export async function ownCollection(db: Db, orgId: number, slug: string): Promise<CollectionRow> {
  const found = isSlug(slug) ? await db.maybe(findOwn, orgId, slug) : null
  if (found === null) throw noCollection()
  return found
}

/** Monitoring of collections: switching it on and off, requested rounds, and health. */
export class Monitor {
  readonly #deps: MonitorDeps
  constructor(deps: MonitorDeps) {
    this.#deps = deps
  }

  /**
   * Switches monitoring on or off. When it is switched on, a first round begins immediately, unless a round has just begun. When it is switched off,
   * no canaries run, the history stays, and no alert is firing any more. Throws `not_found`, `cap`.
   */
  async set(orgId: number, slug: string, monitored: boolean): Promise<{ readonly monitored: boolean; readonly note: string }> {
    const { db } = this.#deps
    const collection = await ownCollection(db, orgId, slug)
    const changed = monitored ? await this.#switchOn(collection) : await this.#switchOff(collection)
    if (changed && monitored && this.#isProbed(collection)) await this.#beginFirst(collection)
    return { monitored, note: monitored ? this.#noteOn(collection) : 'No canaries run any more. What they found stays in GET …/health.' }
  }

  /** Returns the health of the present steps over the last `days` days. Throws `not_found`. */
  async health(orgId: number, slug: string, days = healthDaysDefault): Promise<CollectionHealth> {
    const collection = await ownCollection(this.#deps.db, orgId, slug)
    return { monitored: collection.monitored, days, health: await healthOf(collection, days, this.#deps) }
  }

  /**
   * Runs a canary of every step now, and then returns the health. When another process runs a round, the caller waits for that round. A round that
   * began in the last 15 seconds is not repeated. Throws `not_found`.
   */
  async check(orgId: number, slug: string): Promise<CollectionHealth & { readonly checked: boolean; readonly note: string }> {
    const collection = await ownCollection(this.#deps.db, orgId, slug)
    const { checked, note } = await this.#checked(collection)
    return { checked, note, ...(await this.health(orgId, slug)) }
  }

  /** Ends running rounds. */
  stop(): Promise<void> {
    return this.#deps.worker.stop()
  }

  async #switchOn({ id, orgId }: CollectionRow): Promise<boolean> {
    const { db, everyS, monitoredMax } = this.#deps
    return db.tx(async tx => {
      await tx.one(lockMonitorsOfOrg, orgId)
      const { count } = await tx.one(countMonitored, orgId)
      if ((await tx.exec(setMonitored, orgId, id, true)) === 0) return false
      if (count >= monitoredMax)
        throw fail('cap', {
          message: `An organisation may monitor ${monitoredMax} collections. Turn monitoring of another one off first; POST …/check works without.`,
        })
      await tx.exec(setDue, orgId, id, this.#in(everyS))
      return true
    })
  }

  async #switchOff({ id, orgId }: CollectionRow): Promise<boolean> {
    return this.#deps.db.tx(async tx => {
      if ((await tx.exec(setMonitored, orgId, id, false)) === 0) return false
      await tx.exec(setDue, orgId, id, null)
      await tx.exec(quietAlerts, orgId, id)
      return true
    })
  }

  async #beginFirst(collection: CollectionRow): Promise<void> {
    const begun = await this.#claim(collection)
    if (begun instanceof Date) this.#deps.worker.runAside(collection, begun)
  }

  /** Claims a round and returns its begin, or the reason why the caller may not run it. */
  async #claim({ id, orgId, steps }: CollectionRow): Promise<Date | 'recent' | Exhausted> {
    const { db, clock, everyS, ids, budget, holderOf } = this.#deps
    // This query comes before the transaction, because the embedded database has only one session.
    const holder = await holderOf(orgId)
    const nowMs = clock.nowMs()
    const begunAt = new Date(nowMs)
    const nextDue = this.#in(everyS * (0.9 + 0.2 * ids.random()))
    try {
      return await db.tx(async tx => {
        if ((await tx.maybe(claimRound, orgId, id, begunAt, new Date(nowMs - roundAgeMinMs), nextDue)) === null) return 'recent'
        const exhausted = await budget.take(tx, { orgId, holder }, distinctSteps(steps).length, true, nowMs)
        if (exhausted !== null) throw new NoRoom(exhausted)
        return begunAt
      })
    } catch (error) {
      if (error instanceof NoRoom) return error.exhausted
      throw error
    }
  }

  async #checked(collection: CollectionRow): Promise<{ checked: boolean; note: string }> {
    if (!this.#isProbed(collection)) return { checked: false, note: noteUnprobed }
    const { worker } = this.#deps
    const joined = worker.joined(collection.id)
    if (joined !== null) {
      await joined
      return { checked: true, note: 'These are the results of a round that was under way.' }
    }
    const begun = await this.#claim(collection)
    if (begun instanceof Date) {
      await worker.run(collection, begun)
      return { checked: true, note: 'Every step was called just now.' }
    }
    if (begun === 'recent') await this.#untilEnd(collection)
    return { checked: false, note: `No canary was sent: ${whyNone[begun]} These are the last results.` }
  }

  /** Waits for a round that another process runs, for at most the time limit of one canary. */
  async #untilEnd({ id, orgId }: CollectionRow): Promise<void> {
    const { db, clock, timeoutS } = this.#deps
    const untilMs = clock.monotonicMs() + timeoutS * 1000
    for (;;) {
      const round = await db.maybe(findRound, orgId, id)
      if (round === null || round.endedAt !== null || round.begunAt === null) return
      // A round whose process died never gets an end.
      if (clock.nowMs() - round.begunAt.getTime() > timeoutS * 1000 || clock.monotonicMs() >= untilMs) return
      await clock.sleep(lookMs)
    }
  }

  #noteOn(collection: CollectionRow): string {
    if (!this.#isProbed(collection)) return noteUnprobed
    return `Every step is called about every ${spanText(this.#deps.everyS)} with a call of one token, which is not billed here; what runs on a saved key, its provider bills. The first results are in GET …/health within seconds.`
  }

  #isProbed({ modelId, steps }: CollectionRow): boolean {
    return steps.some(step => this.#deps.isProbed(modelId, step))
  }

  #in(seconds: number): Date {
    return new Date(this.#deps.clock.nowMs() + seconds * 1000)
  }
}

/** Thrown to roll back the claim of a round when a limit is used up. */
class NoRoom extends Error {
  readonly exhausted: Exhausted
  constructor(exhausted: Exhausted) {
    super(exhausted)
    this.exhausted = exhausted
  }
}

const whyNone: Readonly<Record<'recent' | Exhausted, string>> = {
  recent: `a round of this collection began less than ${roundAgeMinMs / 1000} s ago.`,
  minute: `the organisation requested ${askedRoundsMax} rounds within this minute. Try again in the next one.`,
  'org-day': 'the organisation has had its canaries of today, with the others of its founder (CANARIES_ORG_MAX). Monitoring rests too, until midnight UTC.',
  day: 'this installation has sent its canaries of today (CANARIES_MAX). Monitoring rests too, until midnight UTC.',
}
const noteUnprobed = 'No canaries are sent: even the smallest call of a model for images or audio costs real money. Its health stays unknown.'
const spanText = (seconds: number): string => (seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`)
