import { RunCounters } from '../../gateway/limits/runs/run-counters.ts'
import { createUsage, type Usage } from '../../gateway/usage/create-usage.ts'
import { enterSubagent } from '../../gateway/usage/runs/caps/subagents.ts'
import type { RunsOfCalls } from '../../gateway/usage/runs/entry/run-caps.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { AppParts } from '../parts.ts'

/** Connects the usage reports to the journal, to the names of agents, and to the owners of agents and keys. */
export function reportServices({ db, clock, ids, log, config, agents, keys, limits, jobs, controlLog, orgDisplay, refusedCalls }: AppParts): Usage {
  const agentNames = agents.names.bind(agents)
  const checkOwner = async (principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<void> => {
    if (ownerKind === 'agent') return void (await agents.checkActing(principal, ownerId))
    const key = await keys.byId(ownerId)
    if (key === null || key.orgId !== principal.orgId) throw fail('not_found', { message: 'No key with this id.' })
    const isMine = principal.kind !== 'session' || principal.role !== 'member' || key.userId === principal.userId
    if (!isMine) throw fail('forbidden', { message: 'This key is not yours. Its person, and the owners and admins of the organisation, end its runs.' })
  }
  const raising = async (principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<Error | null> => {
    if (ownerKind === 'agent') return agents.checkActing(principal, ownerId)
    if (principal.role === 'owner' || principal.role === 'admin' || (principal.kind === 'key' && principal.userId === null)) return null
    return fail('forbidden', { message: 'Owners and admins of the organisation raise the caps of the runs of a key. You may lower them.' })
  }
  const ofRuns = { raising, runCounters: new RunCounters(ids), databaseMs: () => limits.nowMs() }
  const displayRateOf = orgDisplay.rateOf.bind(orgDisplay)
  return createUsage({
    ...ofRuns,
    displayRateOf,
    db,
    clock,
    ids,
    log,
    keepDays: config.USAGE_KEEP_DAYS,
    journal: limits,
    agentNames,
    jobs,
    controlLog,
    refusedCalls,
    checkOwner,
  })
}

/** Returns the runs with caps as calls need them. */
export const runsOfCalls = ({ db, cappedRuns, limits }: Pick<AppParts, 'db' | 'cappedRuns' | 'limits'>): RunsOfCalls => ({
  runs: cappedRuns,
  enter: (run, subagent, caps) => enterSubagent(db, run, subagent, caps),
  nowMs: () => limits.nowMs(),
})
