import { createUsage, type Usage } from '../../gateway/usage/create-usage.ts'
import type { AppParts } from '../parts.ts'

/** Connects the usage reports to the journal and to the names of agents. */
export function reportServices({ db, clock, ids, log, config, agents, limits, jobs }: AppParts): Usage {
  const agentNames = agents.names.bind(agents)
  return createUsage({ db, clock, ids, log, keepDays: config.USAGE_KEEP_DAYS, journal: limits, agentNames, jobs })
}
