import type { Clock } from '../../platform/clock.ts'
import type { NoPlace, Shares } from '../../platform/shares.ts'
import { SurfaceError } from '../surface.ts'

/** Maximum delay between a change of an account resource and its notification. It is also the minimum time between two notifications of one resource. */
export const accountPollMs = 10_000

/** A listener of one resource. */
export interface PollListener {
  /** Returns the resource as text. Returns null when it cannot be read now. */
  read(): Promise<string | null>
  /** Is called when the resource has changed. */
  notify(): void
}

interface Poll {
  readonly founder: string
  readonly listeners: Set<PollListener>
  known: string | null
}

/**
 * Polls account resources at a fixed interval. All streams of one credential that listen to the same resource share one poll. The process has one
 * timer. The places for polls are shared among founders (people who created organisations), and the polls of the founders take turns.
 */
export class AccountPolls {
  readonly #clock: Clock
  readonly #places: Shares<string>
  readonly #founderOf: (orgId: number) => string
  readonly #polls = new Map<string, Poll>()
  #stopTimer: (() => void) | null = null
  #isLooking = false

  /** `founderOf` returns the founder of an organisation. */
  constructor(clock: Clock, places: Shares<string>, founderOf: (orgId: number) => string) {
    this.#founderOf = founderOf
    this.#clock = clock
    this.#places = places
  }

  /** Listens until the returned function is called. `name` names the credential and the resource. Throws SurfaceError when there is no place. */
  async watch(name: string, orgId: number, listener: PollListener): Promise<() => void> {
    const known = this.#polls.get(name)
    const founder = known?.founder ?? this.#founderOf(orgId)
    const why = known === undefined ? this.#places.take(founder) : null
    if (why !== null) throw noPlace(why)
    const poll = known ?? { founder, listeners: new Set<PollListener>(), known: null }
    poll.listeners.add(listener)
    this.#polls.set(name, poll)
    this.#stopTimer ??= this.#clock.every(accountPollMs, () => void this.#look())
    // Later reads are compared with the value of this first read.
    if (known === undefined) poll.known = await listener.read()
    return () => this.#drop(name, poll, listener)
  }

  #drop(name: string, poll: Poll, listener: PollListener): void {
    poll.listeners.delete(listener)
    if (poll.listeners.size === 0 && this.#polls.get(name) === poll) {
      this.#polls.delete(name)
      this.#places.give(poll.founder)
    }
    if (this.#polls.size > 0) return
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      for (const poll of inTurn([...this.#polls.values()])) await this.#lookAt(poll)
    } finally {
      this.#isLooking = false
    }
  }

  async #lookAt(poll: Poll): Promise<void> {
    const [reader] = poll.listeners
    const now = reader === undefined ? null : await reader.read()
    if (now === null || now === poll.known) return
    const isFirst = poll.known === null
    poll.known = now
    if (!isFirst) for (const listener of [...poll.listeners]) listener.notify()
  }
}

/** Returns the first poll of each founder, then the second poll of each, and so on. No founder therefore waits for all polls of another founder. */
function inTurn(polls: readonly Poll[]): Poll[] {
  const counts = new Map<string, number>()
  const rounds: Poll[][] = []
  for (const poll of polls) {
    const round = counts.get(poll.founder) ?? 0
    counts.set(poll.founder, round + 1)
    const others = rounds[round]
    if (others === undefined) rounds.push([poll])
    else others.push(poll)
  }
  return rounds.flat()
}

function noPlace(why: NoPlace): SurfaceError {
  const message =
    why === 'share'
      ? 'This organisation, with the others of its founder, listens to as many account resources as it may in this process beside others (POLLS_MAX, ORG_SHARE_PERCENT). Close a stream, or listen to fewer.'
      : 'This process looks at as many account resources as it takes (POLLS_MAX). Try again later.'
  return new SurfaceError('refused', message, {
    code: 'rate_limit_exceeded',
    status: 429,
    limit_name: 'POLLS_MAX',
    ...(why === 'share' ? { scope: 'org' } : {}),
  })
}
