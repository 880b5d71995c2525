import type { IncomingHttpHeaders } from 'node:http'
import { fail } from '../../platform/errors.ts'
import { type AgentPrincipal, lacksScope, type SessionPrincipal } from '../../platform/security/principal.ts'
import { type Authenticator, bearerToken } from './authenticate.ts'
import { checkOwnPage, type OwnPages } from './pages/own-pages.ts'
import type { Sessions } from './sessions.ts'

export interface SessionCallerDeps extends OwnPages {
  readonly sessions: Sessions
  readonly authenticator: Authenticator
}

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD'
const isAgentToken = (token: string | null): token is string => token !== null && token.split('.').length === 3

/**
 * Returns the caller of a row that needs a session: a signed-in person by cookie, or an agent by token. An agent reads with the rights of a plain
 * member, writes nothing, and needs the scope `usage:read`. An API key is not accepted. Throws `no_session`. Throws `foreign_origin` for a write from
 * a page of another site. Throws `forbidden` for a write by an agent, and for a token without that scope.
 */
export function sessionCaller(
  method: string,
  headers: IncomingHttpHeaders,
  deps: SessionCallerDeps,
): SessionPrincipal | Promise<SessionPrincipal | AgentPrincipal> {
  const token = bearerToken(headers)
  if (isAgentToken(token)) return agentCaller(method, token, deps)
  const principal = deps.sessions.principalOf(headers.cookie)
  if (isRead(method)) return principal
  return principal instanceof Promise ? principal.then(found => ownPage(found, headers, deps)) : ownPage(principal, headers, deps)
}

async function agentCaller(method: string, token: string, { authenticator }: SessionCallerDeps): Promise<AgentPrincipal> {
  const principal = await authenticator.byToken(token)
  if (principal.kind !== 'agent') throw fail('no_session')
  if (!isRead(method)) throw fail('forbidden', { message: 'An agent token may only read here. A signed-in person makes changes.' })
  if (!principal.scopes.includes('usage:read')) throw fail('forbidden', { message: lacksScope(principal, 'usage:read') })
  return { ...principal, role: 'member', capabilities: [] }
}

function ownPage(principal: SessionPrincipal, headers: IncomingHttpHeaders, deps: SessionCallerDeps): SessionPrincipal {
  checkOwnPage(headers, deps)
  return principal
}
