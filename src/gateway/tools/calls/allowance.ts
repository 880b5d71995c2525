import type { CallPolicy } from '../../../platform/security/principal.ts'
import { serverPatternOf } from '../../../platform/security/tool-patterns.ts'

/** The caller of a tool, with every agent whose rules bind the call. */
export interface ToolCaller {
  /** True for an API key. A key needs a rule of its own, also when it names an agent. */
  readonly isKey: boolean
  /** The charged agent and the agents above it, nearest first. Empty for a key that names no agent. */
  readonly agentIds: readonly number[]
  /** The rules of the key, of the agent and of every agent above it. */
  readonly policies: readonly CallPolicy[]
}

/** Returns whether a tool may be called. */
export type ToolAllowance = (publicName: string) => boolean

/**
 * Returns what a caller may call: the tools that its key allows, when the key has a rule or is the caller, and that the agent and every agent above it
 * allow. An agent or a key without a rule allows none. The rules are those of now, whenever the child or its token was made. Decision 0788 gives the reasons.
 */
export function allowanceOf({ isKey, agentIds, policies }: ToolCaller): ToolAllowance {
  const ofKey = policies.find(({ owner }) => owner === 'key')?.allowedTools ?? null
  const lists = agentIds.map(id => policies.find(({ owner, ownerId }) => owner === 'agent' && ownerId === id)?.allowedTools ?? null)
  if (isKey || ofKey !== null) lists.push(ofKey)
  if (lists.length === 0 || lists.some(list => list === null || list.length === 0)) return () => false
  const sets = lists.map(list => new Set(list))
  return name => {
    const server = serverPatternOf(name)
    return sets.every(set => set.has(name) || set.has(server))
  }
}
