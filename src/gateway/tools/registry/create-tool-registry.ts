import type { Clock } from '../../../platform/clock.ts'
import type { Config } from '../../../platform/config.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Jobs } from '../../../platform/db/jobs.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { AddressTests } from '../../../platform/security/address-tests.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { AuditTrail } from '../../audit/audit.ts'
import { EndedConnections, endedSweepMs } from '../oauth/connections/connection-end.ts'
import { ToolConnections } from '../oauth/connections/tool-connections.ts'
import { ToolTokens } from '../oauth/connections/tool-tokens.ts'
import { TokenRequests } from '../oauth/issuer/token-requests.ts'
import { ReadingCredentials } from '../oauth/reading-credential.ts'
import { ServerOAuth } from '../oauth/server-oauth.ts'
import { ToolCredentials } from '../oauth/tool-credentials.ts'
import type { Upstreams } from '../upstream/upstream.ts'
import { ToolApprovals } from './approvals/approvals.ts'
import type { ToolCatalog } from './callable-tool.ts'
import { MemoryCatalog } from './memory-catalog.ts'
import { ToolServers } from './servers/tool-servers.ts'
import { syncDueServers, syncJobMs } from './sync/sync-job.ts'
import { ToolLooks } from './sync/tool-look.ts'
import { ToolSync } from './sync/tool-sync.ts'
import { toolConnectionEnded } from './tool-news.ts'

export interface ToolRegistryDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly config: Config
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly outbound: Pick<Outbound, 'toUserUrl' | 'guard'>
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
  readonly toolConnections: ToolConnections
  readonly toolCredentials: ToolCredentials
}

/** Constructs the registry of MCP servers, and registers the job that reads their tools again. Without TOOL_GATEWAY no server is ever dialed. */
export function createToolRegistry(deps: ToolRegistryDeps): ToolRegistry {
  const { db, clock, log, config, controlLog, jobs } = deps
  const looks = new ToolLooks({ clock, listTools: deps.upstreams.listTools, toolsMax: config.TOOLS_PER_SERVER })
  const enabled = config.TOOL_GATEWAY
  const requests = new TokenRequests(deps)
  const oauth = new ServerOAuth({ ...deps, requests })
  const tokens = new ToolTokens({
    ...deps,
    nextTokens: (row, signal) => oauth.nextTokens(row, signal),
    revokeUnkept: (row, token) => oauth.revokeUnkept(row, token),
  })
  const sync = new ToolSync({ ...deps, looks, credentials: new ReadingCredentials({ sealer: deps.sealer, tokens }) })
  const pauseMs = config.TOOL_SYNC_MINUTES * 60_000
  // A server may be slow or never answer, so the job is in the line of the jobs that wait for others.
  if (enabled) jobs.every('tools.sync', syncJobMs, signal => syncDueServers({ db, clock, log, sync, looks, pauseMs }, signal), 'stores')
  const toolConnections = new ToolConnections({ ...deps, requests, oauth, onConnected: (orgId, id) => readSoon(deps, sync, orgId, id) })
  revokeEnded(deps, enabled, new EndedConnections(db, oauth), toolConnections)
  return {
    toolConnections,
    toolCredentials: new ToolCredentials({ clock, tokens, consoleUrl: () => `${deps.baseUrl()}/console` }),
    toolServers: new ToolServers({ ...deps, guard: deps.outbound.guard, enabled, looks, sync, oauth, serversMax: config.TOOL_SERVERS_PER_ORG, pauseMs }),
    toolApprovals: new ToolApprovals({ db, clock, controlLog, audit: deps.audit }),
    toolCatalog: new MemoryCatalog({ ...deps, enabled, timeoutMs: config.TOOL_TIMEOUT_MS }),
  }
}

/** Reads the tools of a server with the connection that was just made. The sync job comes back to a server that cannot be read now. */
function readSoon({ log }: ToolRegistryDeps, sync: ToolSync, orgId: number, serverId: string): void {
  sync.sync(orgId, serverId, new AbortController().signal).catch((error: unknown) => log.warn('tool_sync_failed', { orgId, error }))
}

/** Revokes the tokens of connections that end, soon after they end and again every minute. Deletes consents that were never finished. */
function revokeEnded({ controlLog, jobs }: ToolRegistryDeps, enabled: boolean, ended: EndedConnections, connections: ToolConnections): void {
  if (!enabled) return
  controlLog.on(({ kind }) => {
    if (kind === toolConnectionEnded) ended.kick()
  })
  const sweep = async (signal: AbortSignal): Promise<void> => {
    await ended.run(signal)
    await connections.sweep()
  }
  jobs.every('tools.connections', endedSweepMs, sweep, 'stores')
}
