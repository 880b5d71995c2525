import { fail } from '../../../platform/errors.ts'
import type { AgentPrincipal, Principal, SessionPrincipal } from '../../../platform/security/principal.ts'

/** The signed-in person behind a row that changes something; agents do not get there. Throws `no_session`. */
export function signedIn(principal: Principal): SessionPrincipal {
  if (principal.kind !== 'session') throw fail('no_session')
  return principal
}

/** The caller of a row that reads: a signed-in person, or an agent. Throws `no_session`. */
export function reader(principal: Principal): SessionPrincipal | AgentPrincipal {
  if (principal.kind === 'key') throw fail('no_session')
  return principal
}
