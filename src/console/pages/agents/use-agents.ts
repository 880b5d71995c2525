import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { hasRole, type Me } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { toast } from '../../ui/overlays/toast.tsx'
import { type AgentsSearch, agentsQuery } from './search.ts'
import { text } from './text.ts'

export type Agent = ReplyOf<'listAgentsConsole'>['agents'][number]
export type AgentFamily = ReplyOf<'getAgentConsole'>
export type FamilyMember = AgentFamily['children'][number]
export type RuleChanges = Omit<CallOptions<'updateAgentConsole'>['body'], 'owner_uid'>

const nameSearchMax = 200

type AgentsQuery = Omit<AgentsSearch, 'new'>

/** Returns the agents that fit the filters, in the pages that were read so far, and how many there are. */
export function useAgents(query: AgentsQuery) {
  return useInfiniteQuery({
    ...agentsQuery(query),
    placeholderData: keepPreviousData,
    select: data => ({
      agents: data.pages.flatMap(({ agents }) => agents),
      total: data.pages[0]?.total_estimate ?? null,
    }),
  })
}

/** Returns one agent with its family. */
export const useAgent = (id: number) => useQuery(apiQuery('getAgentConsole', { path: { id } }))

/** Reads again what pages show of agents. */
export const agentsChanged = (): Promise<void> => invalidate('listAgentsConsole', 'getAgentConsole', 'orgBudgets')

/** Returns whether the gateway lets the person act on an agent: its owner does, and owners and admins of the organisation. */
export const mayAct = (me: Me, { owner_uid: owner }: Pick<Agent, 'owner_uid'>): boolean => hasRole(me, 'admin') || (owner !== null && owner === me.user.id)

/** Returns who acts on an agent that is not the person's, in words. It names the owners of the organisation, so that the person knows whom to ask. */
export function useWhomToAsk(): (agent: Pick<Agent, 'owner_name'>) => string {
  const owners = useOwners()
  return agent => text.askFor(agent.owner_name, owners)
}

/** Pauses or resumes an agent. Both can be undone, so neither has a dialog. */
export function usePause() {
  return useMutation({
    mutationFn: ({ id, pause }: { id: number; pause: boolean }) => api(pause ? 'pauseAgentConsole' : 'resumeAgentConsole', { path: { id } }),
    onSuccess: async agent => {
      await agentsChanged()
      toast(agent.status === 'paused' ? text.pausedToast(agent.name) : text.resumedToast(agent.name))
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

/** What a person typed for a new agent. `parentId` makes it a child. */
export interface NewAgent {
  readonly name: string
  readonly parentId?: number
  /** Null: no limit. */
  readonly budgetInr: number | null
  readonly rules: RuleChanges
}

/** A new agent with what could not be done for it. */
export interface MadeAgent {
  readonly agent: Agent
  /** The sentence of the gateway when the budget was refused. The agent exists then. */
  readonly budgetError: string | null
}

/**
 * Makes an agent. The gateway takes a known name as a change of that agent, so the name is looked up first: a form for a new agent never changes another. The
 * budget is a second call, and its refusal does not hide that the agent exists.
 */
export async function makeAgent({ name, parentId, budgetInr, rules }: NewAgent): Promise<MadeAgent> {
  const named = await api('listAgentsConsole', { query: { q: name, limit: nameSearchMax } })
  if (named.agents.some(agent => agent.name === name && agent.status !== 'revoked')) throw new Error(text.nameTaken)
  if (parentId !== undefined) {
    const budget = budgetInr === null ? {} : { monthly_budget_inr: budgetInr }
    return { agent: await api('createChildByPerson', { path: { id: parentId }, body: { name, ...budget, ...rules } }), budgetError: null }
  }
  const agent = await api('createAgentConsole', { body: { name, ...rules } })
  if (budgetInr === null) return { agent, budgetError: null }
  try {
    return { agent: await api('setAgentBudgetConsole', { path: { id: agent.id }, body: { monthly_budget_inr: budgetInr } }), budgetError: null }
  } catch (error) {
    return { agent, budgetError: apiErrorOf(error).message }
  }
}
