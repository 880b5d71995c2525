/** The composition root: the only file that constructs services and hands them to each other. */
import type { Server } from 'node:http'
import { type Agents, createAgents } from './agents/agents.ts'
import { startCatalog } from './app-catalog.ts'
import { diagnose } from './app-doctor.ts'
import type { Finding } from './cli/doctor.ts'
import { Authenticator } from './gateway/access/authenticate.ts'
import { Whoami } from './gateway/access/whoami.ts'
import { routeId } from './gateway/catalog/model.ts'
import { bindingsOf, endpointTable, type RowServices } from './gateway/http/endpoint-table.ts'
import { makeInvoke } from './gateway/http/invoke.ts'
import { llmsTextOf } from './gateway/http/llms-text.ts'
import { openApiOf } from './gateway/http/openapi.ts'
import type { EdgeDeps } from './gateway/http/serve-row.ts'
import { createEdge } from './gateway/http/server.ts'
import { Inference } from './gateway/inference/inference.ts'
import { createKeys, type Keys } from './gateway/keys/keys.ts'
import { createLimits, type LimitsEngine } from './gateway/limits/limits.ts'
import { createOrgs, type Orgs } from './gateway/orgs/orgs.ts'
import { dialectOf } from './gateway/providers/dialects.ts'
import { Circuits } from './gateway/routing/circuit.ts'
import { dialObserver } from './gateway/routing/observe.ts'
import { resolve } from './gateway/routing/resolve.ts'
import { RouteHealth } from './gateway/routing/route-health.ts'
import { insertUsageEvents } from './gateway/usage/apply.ts'
import type { UsageEvent } from './gateway/usage/record.ts'
import { startPartitions } from './gateway/usage/partitions.ts'
import { UsageReports } from './gateway/usage/reports.ts'
import { mcpTools } from './mcp/tools.ts'
import { createMcp } from './mcp/transport.ts'
import { createMemory, type Memory } from './memory/memory.ts'
import type { Clock } from './platform/clock.ts'
import type { Config } from './platform/config.ts'
import type { Db } from './platform/db.ts'
import { ControlLog } from './platform/db-control-log.ts'
import { fail } from './platform/errors.ts'
import type { Ids } from './platform/ids.ts'
import { Inflight } from './platform/inflight.ts'
import type { Log } from './platform/log.ts'
import { createOutbound } from './platform/outbound.ts'
import { makeSealer } from './platform/secrets.ts'
import { version } from './version.ts'

export interface AppDeps {
  readonly config: Config
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly db: Db
  readonly dataDir: string
  readonly masterKey: Buffer
}

/** A whole gateway without a port: `server` listens when somebody tells it to. */
export interface App {
  readonly server: Server
  readonly orgs: Orgs
  readonly keys: Keys
  readonly agents: Agents
  readonly limits: LimitsEngine<UsageEvent>
  readonly memory: Memory
  readonly authenticator: Authenticator
  readonly inflight: Inflight
  readonly circuits: Circuits
  baseUrl(): string
  setBaseUrl(url: string): void
  /** A chat model that this gateway can serve now, for examples. */
  exampleModel(): string
  /** Database, providers: one line for the start. */
  describe(): string
  doctor(): Promise<Finding[]>
  /** Stops accepting, drains, flushes, gives leases back, closes the database. */
  stop(): Promise<void>
}

export async function createApp(deps: AppDeps): Promise<App> {
  const { config, clock, ids, log, db, dataDir } = deps
  let publicUrl = config.BASE_URL ?? ''
  let isDraining = false
  const baseUrl = (): string => publicUrl
  const sealer = makeSealer(deps.masterKey)
  const inflight = new Inflight()
  const outbound = createOutbound({ connectTimeoutMs: config.CONNECT_TIMEOUT_MS, firstByteTimeoutMs: config.FIRST_BYTE_TIMEOUT_MS, streamIdleTimeoutMs: config.STREAM_IDLE_TIMEOUT_MS, allow: config.OUTBOUND_ALLOW })
  const controlLog = new ControlLog({ db, clock, log, pollMs: config.CONTROL_POLL_MS })
  const orgs = createOrgs({ db, clock, cacheTtlMs: config.CACHE_TTL_MS })
  const keys = createKeys({ db, clock, ids, controlLog, cacheTtlMs: config.CACHE_TTL_MS, defaultRpm: config.DEFAULT_RPM })
  const limits = await createLimits({ db, config, clock, ids, log, dataDir, controlLog, appliers: [insertUsageEvents] })
  const agents: Agents = createAgents({
    db, clock, ids, log, controlLog, inflight, keys, sealer, baseUrl,
    tokenTtlSeconds: config.AGENT_TOKEN_TTL_S,
    staleMs: config.AGENT_STALE_MS,
    cacheTtlMs: config.CACHE_TTL_MS,
    budgetOf: (orgId, agentIds) => agentBudgets(limits, orgId, agentIds),
    setBudget: (orgId, agentId, capUinr) => limits.budgets.set(orgId, 'agent', String(agentId), capUinr),
  })
  await controlLog.start()
  await agents.start()
  const stopKeyUse = keys.use.start(log)
  const stopPartitions = await startPartitions({ db, clock, log })
  const health = new RouteHealth(clock)
  const circuits = new Circuits({ clock, rule: { failuresToOpen: config.CIRCUIT_FAILURES, openMs: config.CIRCUIT_OPEN_MS } })
  const { catalog, stopSandbox } = await startCatalog({ config, clock, ids, log, outbound, healthOf: id => ({ available: circuits.available(id), maintenance: health.inMaintenance(id) }) })
  const memory = createMemory({ db, config, clock, ids, log, sealer, guard: outbound.guard, kind: db.kind, dataDir, agentByLabel: (orgId, label) => agents.byLabel(orgId, label) })
  const authenticator = new Authenticator(keys, agents.tokens)
  const recheck = agents.tokens.recheck.bind(agents.tokens)
  const inference = new Inference({
    clock, ids, log, outbound, inflight, limits, dialectOf, recheck,
    resolve: request => resolve(request, { catalog: catalog.snapshot, circuits, health, clock }),
    observer: dialObserver(circuits, health),
    agentByLabel: (orgId, label) => agents.byLabel(orgId, label),
  })
  const whoami = new Whoami({ version, orgName: async orgId => (await orgs.find(orgId))?.name ?? '', memoryConfigured: orgId => memory.isConfigured(orgId) })
  const bindings = bindingsOf(endpointTable)
  const services: RowServices = {
    inference, catalog, whoami, agents, memory, budgets: limits,
    usage: new UsageReports({ db, clock, flushNow: () => limits.flushNow(), agentNames: (orgId, agentIds) => agents.names(orgId, agentIds) }),
    mcpCard: { serviceId: config.SERVICE_ID, version },
    discovery: {
      openApi: url => openApiOf(bindings, url, version),
      llmsText: url => llmsTextOf(bindings, url),
      health: () => ({
        status: 'ok',
        version,
        providers: catalog.publicProviders().map(({ id, configured, residency }) => ({ id, configured, residency })),
        routes: [...catalog.snapshot.models.values()].filter(model => model.kind !== 'virtual').flatMap(model =>
          model.routes.map(route => {
            const available = circuits.available(routeId(route))
            return { model: model.id, provider: route.provider.id, available, circuit: available ? 'closed' : 'open' }
          }),
        ),
      }),
    },
  }
  const edge: EdgeDeps = {
    services, ids, log, inflight, baseUrl, recheck: principal => {
      if (principal.kind !== 'session') recheck(principal)
    },
    bodyLimitBytes: config.BODY_LIMIT_BYTES,
    inferenceBodyLimitBytes: config.INFERENCE_BODY_LIMIT_BYTES,
    authenticate: headers => authenticator.authenticate(headers),
    authenticateSession: () => Promise.reject(fail('no_session')),
    takeRate: principal => limits.takeRate(principal),
    isDraining: () => isDraining,
  }
  const mcp = createMcp({ tools: mcpTools(config.MEMORY_MCP_MAX_BYTES), invoke: makeInvoke(edge), ids, clock, log, inflight, baseUrl, allowedHosts: config.ALLOWED_HOSTS, serviceId: config.SERVICE_ID, version, authenticate: edge.authenticate, recheck, isDraining: edge.isDraining })
  const server = createEdge(bindings, edge, (request, response) => void mcp.handle(request, response))

  const stop = async (): Promise<void> => {
    isDraining = true
    const closed = new Promise<void>(done => (server.listening ? server.close(() => done()) : done()))
    server.closeIdleConnections()
    const drained = new AbortController()
    await Promise.race([inflight.whenIdle(), clock.sleep(config.DRAIN_MS, drained.signal).catch(() => {})])
    drained.abort()
    inflight.abortAll('shutdown')
    await mcp.close()
    await Promise.race([inflight.whenIdle(), clock.sleep(1000)])
    server.closeAllConnections()
    await closed
    await stopSandbox()
    agents.stop()
    await memory.stop()
    await limits.stop()
    await stopKeyUse()
    stopPartitions()
    await controlLog.stop()
    await outbound.close()
    await db.close()
  }
  return {
    server, orgs, keys, agents, limits, memory, authenticator, inflight, circuits, baseUrl, stop,
    setBaseUrl(url) {
      publicUrl = url
    },
    exampleModel: () => [...catalog.snapshot.models.values()].find(model => model.kind === 'chat' && model.routes.some(route => route.provider.configured && !route.byokOnly))?.id ?? 'auto',
    describe: () => `${db.kind === 'embedded' ? `embedded database in ${dataDir}` : 'PostgreSQL'}; providers: ${catalog.publicProviders().filter(provider => provider.configured).map(provider => provider.id).join(', ') || 'none'}`,
    doctor: () => diagnose({ db, config, catalog, memory, controlLog }),
  }
}

async function agentBudgets(limits: LimitsEngine<UsageEvent>, orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, { capUinr: bigint | null; spendMonthUinr: bigint }>> {
  const views = await limits.budgets.list(orgId, agentIds.map(id => ({ scope: 'agent' as const, scopeId: String(id) })))
  return new Map(views.map(view => [Number(view.id), { capUinr: view.capUinr, spendMonthUinr: view.spentUinr }]))
}
