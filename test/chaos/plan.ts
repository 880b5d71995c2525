/** What a round does, made from a seed alone: who calls what through which process, and where one of them dies. */

/** Where a process dies: a kind of journal record or of transaction, and on which side of it. */
export interface Barrier {
  readonly at: string
  readonly side: 'before' | 'torn' | 'after'
  /** The how-manieth time. */
  readonly nth: number
}

export const callers = ['free', 'near', 'rpm', 'daily', 'agent', 'child'] as const
export type CallerName = (typeof callers)[number]

export interface Step {
  readonly label: string
  readonly caller: CallerName
  /** Which of the processes is called. */
  readonly target: number
  readonly tokens: number
  readonly stream: boolean
  /** A stream that runs for seconds, so that its progress is in the journal. */
  readonly slow: boolean
  /** Sent with an Idempotency-Key; a reply that is lost is asked for again at another process. */
  readonly once: boolean
  /** The client goes away in the middle. */
  readonly hangsUp: boolean
}

export interface Plan {
  readonly seed: number
  readonly victim: number
  /** null: killed from outside when half of the calls are sent. */
  readonly barrier: Barrier | null
  readonly lanes: readonly (readonly Step[])[]
}

/** A small generator with a seed, so that a failed round can be run again. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Every point at which a round can kill. A `close` is written for a call that was opened and never dialed, which is rare. */
export const barriers: readonly Omit<Barrier, 'nth'>[] = [
  ...['open', 'progress', 'settle', 'return', 'count'].flatMap(at => (['before', 'torn', 'after'] as const).map(side => ({ at, side }))),
  ...['flush', 'acquire'].flatMap(at => (['before', 'after'] as const).map(side => ({ at, side }))),
]

/** The points of workers, whose flushes run over a connection that is not wrapped. */
export const workerBarriers = barriers.filter(({ at }) => at !== 'flush')

const processes = 3

/** The load of a round, and the points at which it may kill. */
export interface PlanSize {
  readonly lanes: number
  readonly steps: number
  /** Default: all. */
  readonly barriers?: readonly Omit<Barrier, 'nth'>[]
}

/** The plan of round `index` of a seed; the kind of its barrier goes round through all of them, and then one is killed from outside. */
export function planOf(seed: number, index: number, size: PlanSize): Plan {
  const roundSeed = (seed + index * 7919) >>> 0
  const random = randomFrom(roundSeed)
  const below = (limit: number): number => Math.floor(random() * limit)
  const victim = below(processes)
  const kinds = size.barriers ?? barriers
  const kind = kinds[index % (kinds.length + 1)]
  const isRare = kind?.at === 'return' || kind?.at === 'count' || kind?.at === 'progress'
  const nth = 1 + below(isRare ? 2 : kind?.at === 'flush' ? 4 : 12)
  const step = (lane: number, i: number): Step => {
    const stream = random() < 0.5
    const slow = stream && random() < 0.1
    return {
      label: `s${roundSeed}-${lane}-${i}${slow ? '-slow' : ''}`,
      caller: callers[below(callers.length)] ?? 'free',
      // More often the one that dies.
      target: random() < 0.5 ? victim : below(processes),
      tokens: slow ? 300 : 1 + below(300),
      stream,
      slow,
      once: random() < 0.2,
      hangsUp: stream && random() < 0.05,
    }
  }
  const lanes = Array.from({ length: size.lanes }, (_, lane) => Array.from({ length: size.steps }, (_unused, i) => step(lane, i)))
  return { seed: roundSeed, victim, barrier: kind === undefined ? null : { ...kind, nth }, lanes }
}
