/** What a token of an agent is good for, as words: how a mint narrows them and how a token's are read. Pure. */
import { fail } from '../../platform/errors.ts'
import { type AgentScope, agentScopes } from '../../platform/security/principal.ts'

/**
 * The scopes that a mint asks for, of those that it may give. Nothing asked is all of them. Throws `bad_request` for what is no scope and
 * `forbidden` for one that is not there to give.
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

/** Claim `ver` of tokens whose `scope` says what they are good for. Those of before say `inference` and are good for everything. */
export const scopedTokenVersion = 2

/** What a genuine token is good for. Words that this version does not know grant nothing. */
export function scopesOfClaims({ scope, ver }: { readonly scope?: string | undefined; readonly ver?: number | undefined }): readonly AgentScope[] {
  if (ver === undefined || ver < scopedTokenVersion) return agentScopes
  const words = (scope ?? '').split(' ')
  return agentScopes.filter(known => words.includes(known))
}
