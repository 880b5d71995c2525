/** What the address of the list of agents says. */

export const agentStates = ['active', 'paused', 'revoked'] as const
export const agentSorts = ['created', 'name', 'last_call', 'spend'] as const

/** The filters of the list, as the gateway takes them. `new` opens the form for a new agent. */
export interface AgentsSearch {
  readonly q?: string
  readonly state?: (typeof agentStates)[number]
  /** The id of a member, or `me`. */
  readonly owner?: string
  /** The id of the agent above, or `none`. */
  readonly parent?: string
  readonly sort?: (typeof agentSorts)[number]
  readonly new?: true
}
