import type { Call } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { abortSignalOf, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import type { ChargedAgent } from '../charge/meter.ts'
import type { InferenceDeps } from '../deps.ts'
import type { Departure } from './departure.ts'
import { departureOf, type LeavableCall } from './leaving.ts'

/** The events that can end a call from outside, and the check of the kill switch before each dial. */
export interface Watch {
  /** True when a plain key names the agent. The end of the agent then does not end the key. */
  readonly isNamed: boolean
  readonly signal: CancelSignal
  recheck(): void
  /** Is called once, before the first dial, because the named agent may have been revoked before the watch began. Throws `agent_revoked_label`. */
  confirm(): void | Promise<void>
  /** Reads the provider's reply after the caller has left. It is then also the signal. Null when no route of the plan needs that. */
  readonly departure: Departure | null
  end(): void
}

/** Watches a call until `end`. */
export function watchCall(leavable: LeavableCall, call: Call, deps: InferenceDeps): Watch {
  const watch = watchAgent(leavable.principal, leavable.agent, call, deps)
  const departure = departureOf(leavable, watch, deps)
  if (departure === null) return watch
  return {
    isNamed: watch.isNamed,
    signal: departure,
    departure,
    recheck: () => watch.recheck(),
    confirm: () => watch.confirm(),
    end() {
      departure.dispose()
      watch.end()
    },
  }
}

/** The watch of a call that nobody but its own credential can end. It is a class because nearly every call has one. */
class OwnWatch implements Watch {
  readonly isNamed = false
  readonly departure = null
  readonly signal: CancelSignal
  readonly #principal: BearerPrincipal
  readonly #deps: InferenceDeps

  constructor(signal: CancelSignal, principal: BearerPrincipal, deps: InferenceDeps) {
    this.signal = signal
    this.#principal = principal
    this.#deps = deps
  }

  recheck(): void {
    this.#deps.recheck(this.#principal)
  }

  confirm(): void {}

  end(): void {}
}

/** A plain key's call in an agent's name ends when that agent ends. Otherwise the label would be a way around the kill switch. */
function watchAgent(principal: BearerPrincipal, agent: ChargedAgent, call: Call, deps: InferenceDeps): Watch {
  const { agentId, ancestorIds } = agent
  return principal.kind === 'agent' || agentId === null ? new OwnWatch(call.signal, principal, deps) : watchNamed(principal, agentId, ancestorIds, call, deps)
}

function watchNamed(principal: BearerPrincipal, agentId: number, ancestorIds: readonly number[], call: Call, deps: InferenceDeps): Watch {
  const controller = new AbortController()
  return {
    isNamed: true,
    signal: AbortSignal.any([abortSignalOf(call.signal), controller.signal]),
    recheck: () => deps.recheck(principal),
    confirm() {
      const named = deps.agentByLabel(principal.orgId, String(agentId))
      return named instanceof Promise ? named.then(refuseRevoked) : refuseRevoked(named)
    },
    departure: null,
    end: deps.inflight.register({ agentIds: [agentId, ...ancestorIds], keyId: null }, controller),
  }
}

function refuseRevoked(named: { readonly status: string } | null): void {
  if (named?.status === 'revoked') throw fail('agent_revoked_label')
}
