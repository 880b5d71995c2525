import type { Clock } from '../../../platform/clock.ts'
import type { Config } from '../../../platform/config.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Jobs } from '../../../platform/db/jobs.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { UrlGuard } from '../../../platform/outbound/url-guard.ts'
import type { AddressTests } from '../../../platform/security/address-tests.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { AuditTrail } from '../../audit/audit.ts'
import type { Upstreams } from '../upstream/upstream.ts'
import { ToolApprovals } from './approvals/approvals.ts'
import type { ToolCatalog } from './callable-tool.ts'
import { MemoryCatalog } from './memory-catalog.ts'
import { ToolServers } from './servers/tool-servers.ts'
import { syncDueServers, syncJobMs } from './sync/sync-job.ts'
import { ToolLooks } from './sync/tool-look.ts'
import { ToolSync } from './sync/tool-sync.ts'

export interface ToolRegistryDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly config: Config
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly guard: UrlGuard
  readonly addressTests: AddressTests
  readonly audit: AuditTrail
  readonly jobs: Jobs
  readonly upstreams: Pick<Upstreams, 'listTools'>
  readonly baseUrl: () => string
}

export interface ToolRegistry {
  readonly toolServers: ToolServers
  readonly toolApprovals: ToolApprovals
  readonly toolCatalog: ToolCatalog
}

/** Constructs the registry of MCP servers, and registers the job that reads their tools again. Without TOOL_GATEWAY no server is ever dialed. */
export function createToolRegistry(deps: ToolRegistryDeps): ToolRegistry {
  const { db, clock, log, config, controlLog, jobs } = deps
  const looks = new ToolLooks({ clock, listTools: deps.upstreams.listTools, toolsMax: config.TOOLS_PER_SERVER })
  const sync = new ToolSync({ ...deps, looks })
  const enabled = config.TOOL_GATEWAY
  const pauseMs = config.TOOL_SYNC_MINUTES * 60_000
  // A server may be slow or never answer, so the job is in the line of the jobs that wait for others.
  if (enabled) jobs.every('tools.sync', syncJobMs, signal => syncDueServers({ db, clock, log, sync, looks, pauseMs }, signal), 'stores')
  return {
    toolServers: new ToolServers({ ...deps, enabled, looks, sync, serversMax: config.TOOL_SERVERS_PER_ORG, pauseMs }),
    toolApprovals: new ToolApprovals({ db, clock, controlLog, audit: deps.audit }),
    toolCatalog: new MemoryCatalog({ ...deps, enabled, timeoutMs: config.TOOL_TIMEOUT_MS }),
  }
}
