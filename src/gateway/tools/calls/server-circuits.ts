import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { fail } from '../../../platform/errors.ts'

export interface ServerCircuitsDeps {
  readonly clock: Clock
  /** The settings CIRCUIT_FAILURES and CIRCUIT_OPEN_MS. */
  readonly failuresToOpen: number
  readonly openMs: number
}

/** Maximum number of servers whose failures are remembered. */
const serversMax = 5000

interface State {
  readonly failures: number
  readonly openUntilMs: number
}

/**
 * The circuits of MCP servers in this process, one for each server and credential. After several failures in a row, calls are refused for a time without a
 * dial. The first call after that is the probe: its failure opens the circuit again.
 */
export class ServerCircuits {
  readonly #deps: ServerCircuitsDeps
  readonly #states = new LRUCache<string, State>({ max: serversMax })

  constructor(deps: ServerCircuitsDeps) {
    this.#deps = deps
  }

  /** Throws `tool_server_unavailable`, with the seconds to wait, while the circuit is open. */
  check(key: string): void {
    const { clock } = this.#deps
    const leftMs = (this.#states.get(key)?.openUntilMs ?? 0) - clock.nowMs()
    if (leftMs <= 0) return
    throw fail('tool_server_unavailable', {
      message: 'The server of this tool has failed several times in a row, so it is left alone for a moment. Nothing was sent to it.',
      retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
    })
  }

  succeeded(key: string): void {
    this.#states.delete(key)
  }

  failed(key: string): void {
    const { clock, failuresToOpen, openMs } = this.#deps
    const failures = (this.#states.get(key)?.failures ?? 0) + 1
    this.#states.set(key, { failures, openUntilMs: failures >= failuresToOpen ? clock.nowMs() + openMs : 0 })
  }
}
