/** Calls of callers that share budgets in every order, so that transactions of many processes meet on the same rows. */
import { GatewayError } from '../../src/platform/errors.ts'
import { caller, eventOf, request, type TestEngine } from '../gateway/limits/engine.ts'

/** Everything is in one organisation: all processes want the same rows. */
export const soakScopes = { orgId: 1, keys: 6, users: 4, workspaces: 3, agents: 6 } as const

/** One call of a random caller: refused, given up, or settled below or above what it held. */
export async function soakCall(engine: TestEngine, random: () => number): Promise<void> {
  const below = (limit: number): number => Math.floor(random() * limit)
  const agents = Array.from({ length: soakScopes.agents }, (_, i) => i + 1).sort(() => random() - 0.5)
  const principal = caller({
    orgId: soakScopes.orgId,
    keyId: 1 + below(soakScopes.keys),
    userId: 1 + below(soakScopes.users),
    workspaceId: 1 + below(soakScopes.workspaces),
    limits: { rpmLimit: 6000, dailyLimit: 1_000_000 },
  })
  const asked = request(BigInt(1 + below(2000)), { principal, agentId: agents[0] ?? null, agentAncestorIds: agents.slice(1, 1 + below(4)) })
  try {
    await engine.limits.takeRate(principal)
    const permit = await engine.limits.admit(asked)
    if (random() < 0.1) return permit.release()
    await permit.open(eventOf(asked, 0n))
    if (random() < 0.3) await permit.extendTo(BigInt(2000 + below(3000)))
    await permit.settle(
      eventOf(asked, BigInt(below(4000)), { keyId: principal.keyId, userId: principal.userId, workspaceId: principal.workspaceId, agentId: agents[0] ?? null }),
    )
  } catch (error) {
    // Refusals are part of the load.
    if (!(error instanceof GatewayError)) throw error
  }
}
