/** The scopes of agent tokens: how a mint narrows them and how a token names them. The functions are pure. */
import { fail } from '../../platform/errors.ts'
import { type AgentScope, agentScopes } from '../../platform/security/principal.ts'

/**
 * Returns the requested scopes of a mint. A request without scopes gets all scopes that may be given. Throws `bad_request` for an unknown scope and
 * `forbidden` for a scope that may not be given.
 */
export function narrowedScopes(requested: string | undefined, given: readonly AgentScope[]): readonly AgentScope[] {
  if (requested === undefined) return given
  const words = requested.split(/\s+/).filter(word => word !== '')
  const unknown = words.find(word => !agentScopes.some(scope => scope === word))
  if (unknown !== undefined || words.length === 0)
    throw fail('bad_request', { message: `scope: one or more of ${agentScopes.join(', ')}, with spaces between them. Left out: everything that may be given.` })
  const missing = words.find(word => !given.some(scope => scope === word))
  if (missing !== undefined)
    throw fail('forbidden', { message: `scope: this token is not good for ${missing} and cannot pass it on; it has ${given.join(' ')}.` })
  return given.filter(scope => words.includes(scope))
}

/** The scopes of tokens without the claim `ver`, or with a smaller one than below. A scope that is added later is not among them. */
const firstScopes: readonly AgentScope[] = ['inference', 'memory:read', 'memory:write', 'usage:read']

/** The value of the claim `ver` in tokens whose `scope` lists every scope. Older tokens name only `inference` but have the first four scopes. */
export const scopedTokenVersion = 2

/** Returns the scopes of a genuine token. Unknown words in its `scope` grant nothing. */
export function scopesOfClaims({ scope, ver }: { readonly scope?: string | undefined; readonly ver?: number | undefined }): readonly AgentScope[] {
  if (ver === undefined || ver < scopedTokenVersion) return firstScopes
  const words = (scope ?? '').split(' ')
  return agentScopes.filter(known => words.includes(known))
}
