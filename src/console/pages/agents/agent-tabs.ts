/** The tabs of the page of an agent. */
import type { AgentFamily } from './use-agents.ts'

export const agentTabs = ['overview', 'connect', 'family', 'tokens', 'memory', 'calls', 'rules', 'tools'] as const
export type AgentTab = (typeof agentTabs)[number]

/** What each tab gets. */
export interface TabProps {
  readonly agent: AgentFamily
  /** Whether the person may act on the agent, and the agent has not ended. */
  readonly isMine: boolean
}
