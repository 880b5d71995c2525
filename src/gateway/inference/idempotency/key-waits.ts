/**
 * Lets repeated calls wait for the end of their first call. All calls of this process that wait for one key share one poll of the database, whose pauses grow.
 * Decision 0671 gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { type FounderOf, ownFounder } from '../../orgs/founders.ts'
import { findKey, type KeyRow } from './idempotency-queries.ts'

/** The pauses between two looks at a key: the first one, the growth, and the longest one. */
const firstPauseMs = 50
const pauseGrowth = 1.5
const pauseMaxMs = 500
/** The most repeated calls of one founder's organisations that wait in a process. */
export const waitersMax = 64

/** The identity of an idempotency key. */
export interface KeyIdentity {
  readonly orgId: number
  readonly principal: string
  readonly keyHash: Buffer
}

export interface KeyWaitsDeps {
  readonly db: Pick<Db, 'maybe'>
  readonly clock: Clock
  /** Returns the founder of an organisation. Absent when each organisation counts for itself. */
  readonly founderOf?: FounderOf
}

interface Waiter {
  readonly deadlineMs: number
  readonly signal: { readonly aborted: boolean }
  resolve(row: KeyRow | null): void
  reject(error: unknown): void
}

/** A key for which calls wait. */
interface Wait {
  /** The key as it was at the last look. */
  row: KeyRow
  readonly waiters: Set<Waiter>
}

/** The waits of one process. */
export class KeyWaits {
  readonly #deps: KeyWaitsDeps
  readonly #waits = new Map<string, Wait>()
  /** The number of waiting calls by founder. */
  readonly #counts = new Map<string, number>()

  constructor(deps: KeyWaitsDeps) {
    this.#deps = deps
  }

  /** Returns the key as it was at the last look, when calls of this process wait for it. Otherwise null. */
  peek(key: KeyIdentity): KeyRow | null {
    return this.#waits.get(textOf(key))?.row ?? null
  }

  /**
   * Waits until a reserved key is ended or free, until the deadline, or until the caller leaves. Returns the key, or null when it is free. The deadline is
   * in milliseconds of the monotonic clock. Throws `idempotency_in_progress` when too many calls of the founder wait, and the errors of the database.
   */
  async wait(key: KeyIdentity, row: KeyRow, deadlineMs: number, signal: Waiter['signal']): Promise<KeyRow | null> {
    const founder = (this.#deps.founderOf ?? ownFounder)(key.orgId)
    const count = this.#counts.get(founder) ?? 0
    if (count >= waitersMax)
      throw fail('idempotency_in_progress', {
        message: `A call with this Idempotency-Key is still running, and ${waitersMax} repeated calls of the organisation wait already, which is the most. Try again shortly.`,
      })
    this.#counts.set(founder, count + 1)
    try {
      return await new Promise<KeyRow | null>((resolve, reject) => this.#join(key, row).waiters.add({ deadlineMs, signal, resolve, reject }))
    } finally {
      this.#leave(founder)
    }
  }

  #join(key: KeyIdentity, row: KeyRow): Wait {
    const text = textOf(key)
    const known = this.#waits.get(text)
    if (known !== undefined) return known
    const wait: Wait = { row, waiters: new Set() }
    this.#waits.set(text, wait)
    void this.#poll(key, wait)
    return wait
  }

  #leave(founder: string): void {
    const rest = (this.#counts.get(founder) ?? 1) - 1
    if (rest === 0) this.#counts.delete(founder)
    else this.#counts.set(founder, rest)
  }

  /** Looks at the key until nobody waits for it. */
  async #poll(key: KeyIdentity, wait: Wait): Promise<void> {
    const { clock, db } = this.#deps
    const end = (how: (waiter: Waiter) => void): void => {
      this.#waits.delete(textOf(key))
      for (const waiter of wait.waiters) how(waiter)
    }
    try {
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * pauseGrowth, pauseMaxMs)) {
        await clock.sleep(Math.max(0, Math.min(pauseMs, nextDeadlineMs(wait) - clock.monotonicMs())))
        const row = await db.maybe(findKey, key.orgId, key.principal, key.keyHash)
        if (row === null || row.state !== 'reserved') return end(waiter => waiter.resolve(row))
        wait.row = row
        dismiss(wait, clock.monotonicMs())
        if (wait.waiters.size === 0) return end(() => undefined)
      }
    } catch (error) {
      end(waiter => waiter.reject(error))
    }
  }
}

/** Ends the waits of callers that have left or whose time is over. */
function dismiss({ row, waiters }: Wait, nowMs: number): void {
  for (const waiter of waiters) {
    if (!waiter.signal.aborted && nowMs < waiter.deadlineMs) continue
    waiters.delete(waiter)
    waiter.resolve(row)
  }
}

/** Returns infinity while no waiter is added. */
const nextDeadlineMs = ({ waiters }: Wait): number => Math.min(...[...waiters].map(({ deadlineMs }) => deadlineMs))

const textOf = ({ orgId, principal, keyHash }: KeyIdentity): string => `${orgId}|${principal}|${keyHash.toString('base64')}`
