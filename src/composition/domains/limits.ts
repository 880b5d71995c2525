/** Constructs the budgets of an organisation, and connects them to the domains whose keys, members and workspaces can have budgets. */

import { keysOfUser, namesOfActiveKeys } from '../../gateway/keys/active-names.ts'
import type { BudgetTargets } from '../../gateway/limits/budgets/budget-targets.ts'
import { OrgBudgets } from '../../gateway/limits/budgets/org-budgets.ts'
import { BudgetZoneSetting } from '../../gateway/limits/budgets/periods/budget-zone.ts'
import { namesOfActiveMembers, namesOfWorkspaces } from '../../gateway/orgs/active-names.ts'
import type { AppParts } from '../parts.ts'

export function budgetServices(parts: AppParts) {
  const { db, limits, agents, controlLog } = parts
  return {
    orgBudgets: new OrgBudgets({
      db,
      budgets: limits.budgets,
      targets: targetsOf(parts),
      setAgentCap: (orgId, agentId, capUinr, options) => agents.budgets.set(orgId, agentId, capUinr, 'operator', options),
      journal: limits,
    }),
    budgetZones: new BudgetZoneSetting({ db, controlLog, nowMs: () => limits.nowMs() }),
  }
}

function targetsOf({ db, clock, orgs, agents }: AppParts): BudgetTargets {
  const names: BudgetTargets['names'] = (orgId, scope, ids) => {
    switch (scope) {
      case 'workspace':
        return namesOfWorkspaces(db, orgId, ids)
      case 'member':
        return namesOfActiveMembers(db, orgId, ids)
      case 'key':
        return namesOfActiveKeys(db, orgId, ids, clock.nowMs())
      case 'agent':
        return agents.activeNames(orgId, ids)
    }
  }
  const owned: BudgetTargets['owned'] = async (orgId, scope, ids, userId) => {
    switch (scope) {
      case 'workspace':
        return []
      case 'member':
        return ids.filter(id => id === userId)
      case 'key':
        return keysOfUser(db, orgId, ids, userId)
      case 'agent':
        return agents.ownedBy(orgId, ids, userId)
    }
  }
  return {
    names,
    owned,
    async org(orgId) {
      const org = await orgs.find(orgId)
      if (org === null) throw new Error('the organisation of a caller is gone')
      return org
    },
    name: async (orgId, scope, id) => (scope === 'agent' ? agents.activeName(orgId, id) : ((await names(orgId, scope, [id])).get(id) ?? null)),
  }
}
