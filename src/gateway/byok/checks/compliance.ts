/** What a server must be able to do before calls are sent to it. Decision 0126 says why. */
import type { Clock } from '../../../platform/clock.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { Provider } from '../../providers/provider.ts'

/** One thing that was looked at. */
export interface ComplianceCheck {
  readonly name: 'chat' | 'stream' | 'usage' | 'tools' | 'errors' | 'latency'
  /** False: a failure is a warning and does not keep the server out. */
  readonly required: boolean
  readonly pass: boolean
  /** How long the server took; for a stream until its first byte. 0 when nothing was sent. */
  readonly latencyMs: number
  /** For people. At most a short sentence of the server's own error, never its key. */
  readonly detail: string
}

export interface Compliance {
  /** Every required check passed. */
  readonly pass: boolean
  readonly checks: readonly ComplianceCheck[]
}

export interface Candidate {
  /** With the address and the key that are tried. */
  readonly provider: Provider
  readonly upstreamModel: string
  /** Whether the catalog says that the model calls tools. */
  readonly expectsTools: boolean
}

export interface ComplianceDeps {
  readonly dial: Outbound['toUserUrl']
  readonly clock: Clock
  /** All of it may take so long. */
  readonly timeoutMs: number
}
