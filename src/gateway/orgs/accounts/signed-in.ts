import { fail } from '../../../platform/errors.ts'
import type { AgentPrincipal, Principal, SessionPrincipal } from '../../../platform/security/principal.ts'

/** Returns the signed-in person who calls an endpoint that changes something. Throws `no_session` for agents and keys. */
export function signedIn(principal: Principal): SessionPrincipal {
  if (principal.kind !== 'session') throw fail('no_session')
  return principal
}

/** Returns the caller of an endpoint that only reads: a signed-in person or an agent. Throws `no_session` for keys. */
export function reader(principal: Principal): SessionPrincipal | AgentPrincipal {
  if (principal.kind === 'key') throw fail('no_session')
  return principal
}
