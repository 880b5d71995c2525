import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { ControlLog } from '../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../platform/errors.ts'
import type { Inflight } from '../platform/loop/inflight.ts'
import type { Log } from '../platform/observe/log.ts'
import { pauseStates } from './queries.ts'

export interface PausesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: ControlLog
  readonly inflight: Inflight
}

/**
 * The kind of event for an agent that was paused or resumed. Its ref is the agent's id. Its epoch is the agent's pause_seq. An odd pause_seq means
 * that the agent is paused.
 */
export const agentPause = 'agent_pause'

const pruneEveryMs = 60_000
/** How long a process remembers a resume. An older pause event that arrives within this time has no effect. */
const rememberMs = 10 * 60_000

interface Known {
  readonly seq: number
  readonly knownAtMs: number
}

/** Keeps the paused agents in the memory of every process. A check costs almost nothing while no agent is paused. Decision 0401 says why. */
export class Pauses {
  readonly #deps: PausesDeps
  readonly #known = new Map<number, Known>()
  readonly #paused = new Set<number>()
  #stop: (() => void) | null = null

  constructor(deps: PausesDeps) {
    this.#deps = deps
    deps.controlLog.on(news => {
      if (news.kind === agentPause) this.#onNews(Number(news.ref), news.epoch ?? 0)
    })
    deps.controlLog.onGap(() => void this.#load().catch(error => deps.log.error('agent_pauses_load_failed', { error })))
  }

  /** Loads the paused agents. Call it after the control log has started. */
  async start(): Promise<void> {
    await this.#load()
    this.#stop = this.#deps.clock.every(pruneEveryMs, () => this.#prune())
  }

  stop(): void {
    this.#stop?.()
    this.#stop = null
  }

  /** Throws `agent_paused` when the agent or an agent above it is paused. */
  check(agentId: number, ancestorIds: readonly number[]): void {
    if (this.#paused.size === 0) return
    if (this.#paused.has(agentId)) throw pausedError()
    const above = ancestorIds.find(id => this.#paused.has(id))
    if (above !== undefined) throw pausedError(`Agent ${above}, which is above this agent, is paused. Try again once it is resumed.`)
  }

  #onNews(agentId: number, seq: number): void {
    const known = this.#known.get(agentId)
    if (known !== undefined && known.seq >= seq) return
    this.#known.set(agentId, { seq, knownAtMs: this.#deps.clock.monotonicMs() })
    if (!isPausedAt(seq)) {
      this.#paused.delete(agentId)
      return
    }
    this.#paused.add(agentId)
    this.#deps.inflight.abortAgent(agentId, 'agent_paused')
  }

  async #load(): Promise<void> {
    for (const { id, seq } of await this.#deps.db.many(pauseStates, [...this.#paused])) this.#onNews(id, seq)
  }

  #prune(): void {
    const oldestMs = this.#deps.clock.monotonicMs() - rememberMs
    for (const [id, { knownAtMs }] of this.#known) if (!this.#paused.has(id) && knownAtMs < oldestMs) this.#known.delete(id)
  }
}

/** Returns whether a pause_seq means that the agent is paused. */
export const isPausedAt = (seq: number): boolean => seq % 2 === 1

const pausedError = (message?: string): GatewayError => fail('agent_paused', message === undefined ? {} : { message })
