import { createUsage, type Usage } from '../../gateway/usage/create-usage.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { AppParts } from '../parts.ts'

/** Connects the usage reports to the journal, to the names of agents, and to the owners of agents and keys. */
export function reportServices({ db, clock, ids, log, config, agents, keys, limits, jobs, controlLog, refusedCalls }: AppParts): Usage {
  const agentNames = agents.names.bind(agents)
  const checkOwner = async (principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<void> => {
    if (ownerKind === 'agent') return agents.checkActing(principal, ownerId)
    const key = await keys.byId(ownerId)
    if (key === null || key.orgId !== principal.orgId) throw fail('not_found', { message: 'No key with this id.' })
    const isMine = principal.kind !== 'session' || principal.role !== 'member' || key.userId === principal.userId
    if (!isMine) throw fail('forbidden', { message: 'This key is not yours. Its person, and the owners and admins of the organisation, end its runs.' })
  }
  return createUsage({ db, clock, ids, log, keepDays: config.USAGE_KEEP_DAYS, journal: limits, agentNames, jobs, controlLog, checkOwner, refusedCalls })
}
