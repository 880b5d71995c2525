import { BrigadeError } from '../../agents/toolkit/brigade-error.ts'
import type { AgentBudget } from '../../agents/toolkit/connect-agent.ts'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'

/** What `brigade status` says about the caller and its organisation. A part is null when the credential may not know it. */
export interface MyStatus {
  readonly you: { readonly kind: string; readonly name: string; readonly org: string; readonly role: string | null; readonly scope: string }
  /** Of the organisation, in this month. */
  readonly spend: { readonly calls: number; readonly cost_inr: number } | null
  /** The budget of the caller with the smallest remaining amount. */
  readonly budget: AgentBudget | null
  readonly agents: { readonly active: number; readonly paused: number } | null
}

interface Whoami {
  readonly principal: { readonly kind: string; readonly name: string }
  readonly org: { readonly name: string }
  readonly role: string | null
  readonly scope: string
}

/** Asks the gateway concurrently for the parts. Throws BrigadeError when the credential is refused. */
export async function myStatus(client: GatewayClient): Promise<MyStatus> {
  const agentsIn = async (state: string): Promise<number> =>
    (await client.json<{ total_estimate?: number }>('GET', '/v1/me/agents', { query: { state, limit: 1 } })).total_estimate ?? 0
  const [me, spend, budgets, agents] = await Promise.all([
    client.json<Whoami>('GET', '/v1/me/whoami'),
    unlessForbidden(client.json<{ totals: { requests: number; cost_inr: number } }>('GET', '/v1/usage')),
    unlessForbidden(client.json<{ budgets: AgentBudget[] }>('GET', '/v1/me/budgets')),
    unlessForbidden(Promise.all([agentsIn('active'), agentsIn('paused')])),
  ])
  return {
    you: { kind: me.principal.kind, name: me.principal.name, org: me.org.name, role: me.role, scope: me.scope },
    spend: spend === null ? null : { calls: spend.totals.requests, cost_inr: spend.totals.cost_inr },
    budget: tightest(budgets?.budgets ?? []),
    agents: agents === null ? null : { active: agents[0], paused: agents[1] },
  }
}

function tightest(budgets: readonly AgentBudget[]): AgentBudget | null {
  return budgets.reduce<AgentBudget | null>((least, one) => (least === null || one.remaining_inr < least.remaining_inr ? one : least), null)
}

/** Returns null instead of a refusal for a missing scope. An agent token may have only some scopes. */
async function unlessForbidden<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof BrigadeError && error.status === 403) return null
    throw error
  }
}
