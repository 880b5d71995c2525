/** The abilities that a server must prove before calls are sent to it. Decision 0126 says why. */
import type { Clock } from '../../../platform/clock.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { Provider } from '../../providers/provider.ts'

/** The result of one check. */
export interface ComplianceCheck {
  readonly name: 'chat' | 'stream' | 'usage' | 'tools' | 'errors' | 'latency'
  /** False when a failure is only a warning and the server can still be registered. */
  readonly required: boolean
  readonly pass: boolean
  /** The time that the server took. For a stream, the time until its first byte. 0 when no request was sent. */
  readonly latencyMs: number
  /** Text for people. It may quote one short sentence of the server's own error. It never contains the server's key. */
  readonly detail: string
}

export interface Compliance {
  /** True when every required check passed. */
  readonly pass: boolean
  readonly checks: readonly ComplianceCheck[]
}

export interface Candidate {
  /** The provider with the address and key to test. */
  readonly provider: Provider
  readonly upstreamModel: string
  /** True when the catalog says that the model calls tools. */
  readonly expectsTools: boolean
}

export interface ComplianceDeps {
  readonly dial: Outbound['toUserUrl']
  readonly clock: Clock
  /** Time limit of the whole test. */
  readonly timeoutMs: number
}
