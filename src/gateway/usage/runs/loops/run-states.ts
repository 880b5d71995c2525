/** Keeps what the watch for loops knows of runs, within bounds for all runs, for each organisation and for each run. */

/** The most runs of this process. */
const runsMax = 10_000
/** The most runs of one organisation. Beyond it, the organisation loses the run that was called least recently. */
const runsOfOrgMax = 2_500
/** A run without a call for so long begins again. */
const restMs = 3600_000

/** What a run repeats. */
export const loopKinds = ['same_call', 'same_body', 'pace'] as const
export type LoopKind = (typeof loopKinds)[number]

/** The last turn of a main agent or a sub-agent. All texts are keyed hashes. */
export interface TurnState {
  readonly sample: string
  /** Of the whole turn. Null until the sample is repeated. */
  readonly full: string | null
  /** The sample of the body that brought the turn. */
  readonly body: string | null
  /** How often the turn was there in a row. */
  readonly count: number
}

/** A body with one sample. */
export interface BodyState {
  /** Of the whole body. Null until the sample is repeated. */
  readonly full: string | null
  /** The times of the last answers, in Unix milliseconds. */
  readonly answeredAtMs: readonly number[]
}

/** What this process knows of the calls of one run. */
export class RunState {
  /** By main agent or sub-agent. */
  readonly turns = new Map<string, TurnState>()
  /** By the sample of the body. */
  readonly bodies = new Map<string, BodyState>()
  /** What was reported, with the time until which it is not reported again. */
  readonly reported = new Map<LoopKind, number>()
  minute = 0
  callsOfMinute = 0
  /** How many minutes directly before this one had too many calls. */
  fastMinutes = 0
  usedAtMs: number

  constructor(nowMs: number) {
    this.usedAtMs = nowMs
  }
}

/** The states of all runs that this process knows. */
export class RunStates {
  /** By organisation, the runs in the order of their last calls. */
  readonly #orgs = new Map<number, Map<string, RunState>>()
  #count = 0

  get size(): number {
    return this.#count
  }

  /** Returns the state of a run, which is called now. */
  of(orgId: number, key: string, nowMs: number): RunState {
    const runs = this.#orgs.get(orgId) ?? new Map<string, RunState>()
    this.#orgs.set(orgId, runs)
    const known = runs.get(key)
    if (known !== undefined) {
      runs.delete(key)
      this.#count--
    }
    const state = known === undefined || nowMs - known.usedAtMs > restMs ? new RunState(nowMs) : known
    state.usedAtMs = nowMs
    runs.set(key, state)
    this.#count++
    if (known === undefined) this.#makeRoom(orgId, runs, nowMs)
    return state
  }

  #makeRoom(orgId: number, runs: Map<string, RunState>, nowMs: number): void {
    for (const { usedAtMs } of runs.values()) {
      if (nowMs - usedAtMs <= restMs && runs.size <= runsOfOrgMax) break
      this.#dropOldest(orgId, runs)
    }
    while (this.#count > runsMax) {
      let most = runs
      let mostOrg = orgId
      for (const [id, each] of this.#orgs) if (each.size > most.size) [most, mostOrg] = [each, id]
      this.#dropOldest(mostOrg, most)
    }
  }

  #dropOldest(orgId: number, runs: Map<string, RunState>): void {
    for (const oldest of runs.keys()) {
      runs.delete(oldest)
      this.#count--
      break
    }
    if (runs.size === 0) this.#orgs.delete(orgId)
  }
}
