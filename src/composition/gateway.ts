/** The composition root. This file assembles a whole gateway from the domains. */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Agents } from '../agents/agents.ts'
import type { Authenticator } from '../gateway/access/authenticate.ts'
import { createAccess } from '../gateway/access/create-access.ts'
import { sessionCaller } from '../gateway/access/session-caller.ts'
import type { Sessions } from '../gateway/access/sessions.ts'
import type { SignInLink } from '../gateway/access/sign-in/sign-in-links.ts'
import { Whoami } from '../gateway/access/whoami.ts'
import type { AuditTrail } from '../gateway/audit/audit.ts'
import { createByok } from '../gateway/byok/create-byok.ts'
import type { Catalog } from '../gateway/catalog/catalog.ts'
import { type SandboxState, sandboxState } from '../gateway/catalog/loading/sandbox.ts'
import type { CatalogSnapshot } from '../gateway/catalog/model.ts'
import { dearerRoute } from '../gateway/catalog/named-models.ts'
import type { Attestations } from '../gateway/compliance/attestation/attestation.ts'
import { ConsoleSite } from '../gateway/http/console/console-site.ts'
import { Cors } from '../gateway/http/cors.ts'
import type { Binding, EdgeDeps } from '../gateway/http/edge.ts'
import { OpenStreams } from '../gateway/http/replies/open-streams.ts'
import { RateHeaders } from '../gateway/http/replies/rate-headers.ts'
import { bindingsOf, endpointTable, type RowServices } from '../gateway/http/rows/endpoint-table.ts'
import { createEdge } from '../gateway/http/server.ts'
import type { ContentLog } from '../gateway/inference/content-log/content-log.ts'
import { tokenCountsIn } from '../gateway/inference/count-tokens/token-counts.ts'
import type { InferenceDeps } from '../gateway/inference/deps.ts'
import type { Idempotency } from '../gateway/inference/idempotency/idempotency.ts'
import { Inference } from '../gateway/inference/inference.ts'
import { Departures } from '../gateway/inference/leaving/departures.ts'
import { probeRoutes, type RouteProbeBounds } from '../gateway/inference/probe/route-probe.ts'
import type { ReplyCache } from '../gateway/inference/reply-cache/reply-cache.ts'
import type { Keys } from '../gateway/keys/keys.ts'
import { tightestOf } from '../gateway/limits/budgets/budget-view.ts'
import { balanceOf } from '../gateway/limits/budgets/prepaid.ts'
import type { LimitsEngine } from '../gateway/limits/engine/limits.ts'
import type { OrgLimits } from '../gateway/limits/org-limits.ts'
import type { Orgs } from '../gateway/orgs/orgs.ts'
import { dialectOf } from '../gateway/providers/dialects.ts'
import type { RouteCircuits } from '../gateway/routing/circuits/route-circuits.ts'
import type { RouteHealth } from '../gateway/routing/circuits/route-health.ts'
import type { Maintenance } from '../gateway/routing/outages/maintenance.ts'
import { Plans } from '../gateway/routing/plans.ts'
import { StickyRoutes } from '../gateway/routing/sticky/sticky-routes.ts'
import type { ToolCatalog } from '../gateway/tools/registry/callable-tool.ts'
import type { ToolRegistry } from '../gateway/tools/registry/create-tool-registry.ts'
import type { UsageEvent } from '../gateway/usage/events/record.ts'
import { cardDocuments } from '../mcp/documents/card-documents.ts'
import type { Memory } from '../memory/memory.ts'
import { type BackupReport, backUp } from '../operations/backup.ts'
import { diagnose } from '../operations/doctor/doctor.ts'
import type { Finding } from '../operations/doctor/finding.ts'
import { refusedSentence } from '../operations/doctor/provider-keys.ts'
import { routeFindings } from '../operations/doctor/routes.ts'
import { unknownSettings } from '../operations/doctor/unknown-settings.ts'
import { MasterKeys } from '../operations/master-keys.ts'
import { type Config, isBilling } from '../platform/config.ts'
import { isEmbedded } from '../platform/db/embedded/db-embedded.ts'
import type { Jobs } from '../platform/db/jobs.ts'
import type { Inflight } from '../platform/loop/inflight.ts'
import { StreamTurns } from '../platform/loop/stream-turns.ts'
import { AudioLengths } from '../platform/media/audio-length.ts'
import { ImageScaler } from '../platform/media/image-scaler.ts'
import { createOutbound, type Outbound } from '../platform/outbound/outbound.ts'
import { inrFromUinr } from '../platform/values/money.ts'
import { version } from '../version.ts'
import { type ProcessBounds, processBounds } from './bounds.ts'
import { identitiesOf } from './cloud-identities.ts'
import type { AppDeps } from './deps.ts'
import { auditServices, strangers } from './domains/audit.ts'
import { billingServices } from './domains/billing.ts'
import { collectionServices } from './domains/collections.ts'
import { complianceServices } from './domains/compliance.ts'
import { hintServices } from './domains/hints.ts'
import { keyServices } from './domains/keys.ts'
import { budgetServices } from './domains/limits.ts'
import { type OperatorParts, operatorRowServices } from './domains/operator.ts'
import { orgServices, profileServices } from './domains/orgs.ts'
import { toolServices } from './domains/tools.ts'
import { reportServices, runsOfCalls } from './domains/usage.ts'
import { createDomains, type Domains } from './domains.ts'
import { drain, retire } from './drain.ts'
import { discoveryOf } from './edges/discovery.ts'
import { mcpOf, mcpOfServer } from './edges/mcp.ts'
import { mcpOfOrg, oauthServices } from './edges/oauth.ts'
import { type OperatorServices, operatorServices } from './edges/operator.ts'
import type { AppParts } from './parts.ts'
import { batchServices } from './routes/batches.ts'
import { publicDataServices, type StartedCatalog, startCatalog } from './routes/catalog.ts'
import { imageSettings } from './routes/images.ts'
import { createRouteState } from './routes/route-state.ts'
import { routingServices } from './routes/routing.ts'
import { watchProcess } from './telemetry/telemetry-start.ts'

/** A whole gateway that does not listen yet. The caller makes `server` listen. */
export interface App {
  readonly server: Server
  readonly orgs: Orgs
  readonly keys: Keys
  readonly agents: Agents
  readonly limits: LimitsEngine<UsageEvent>
  readonly orgLimits: OrgLimits
  readonly memory: Memory
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly inflight: Inflight
  readonly circuits: RouteCircuits
  readonly health: RouteHealth
  readonly maintenance: Maintenance
  /** The sweeps of this process. */
  readonly jobs: Jobs
  readonly idempotency: Idempotency
  readonly contentLog: ContentLog
  readonly replyCache: ReplyCache
  readonly audit: AuditTrail
  /** The service that signs attestations. */
  readonly attestations: Attestations
  /** The approved tools of organisations, as this process keeps them in memory. */
  readonly toolCatalog: ToolCatalog
  /** The services with which the operator reads and changes money and webhooks. */
  readonly operator: OperatorServices
  /** Copies the embedded installation as of one moment. Throws BackupError. */
  backUp(options: { readonly to: string; readonly withMasterKey: boolean }): Promise<BackupReport>
  /** The master key, and the values that it has sealed. */
  readonly masterKeys: MasterKeys
  baseUrl(): string
  setBaseUrl(url: string): void
  /** Returns a chat model that this gateway can serve now, for examples. */
  exampleModel(): string
  /** Returns one line for the log at start: the database and the providers. */
  describe(): string
  /** Returns what a person wants to know about the providers at a start. */
  providersAtStart(): ProvidersAtStart
  /** Tries the provider keys of the operator once, and logs a warning for each that its provider refuses. It never rejects. */
  reportRefusedKeys(): Promise<void>
  doctor(): Promise<Finding[]>
  /** Tries the configured routes with small calls that the operator pays for. */
  probeRoutes(bounds: RouteProbeBounds): Promise<Finding[]>
  /** Returns a one-time sign-in link for the person with that address. Throws `not_found`. */
  makeSignInLink(email: string): Promise<SignInLink>
  /** Serves the open connections until they end, for at most DRAIN_MS, after another process has taken over the new ones. Calls are still served. */
  retire(): Promise<void>
  /** Stops accepting calls, drains, flushes usage, returns leases, and closes the database. */
  stop(): Promise<void>
}

/** The state that changes while the gateway runs. */
interface RunState {
  baseUrl: string
  isDraining: boolean
  /** True after another process has taken over. Each open connection ends after its next reply. */
  isRetiring: boolean
}

/** Constructs a whole gateway. When the construction fails, it stops the sandbox and closes outbound connections before it throws. */
export async function createApp(deps: AppDeps): Promise<App> {
  const turns = new StreamTurns(deps.clock)
  const outbound = outboundOf(deps, turns)
  const started = await startCatalog({ ...deps, outbound })
  for (const sentence of unknownSettings(deps.config, started.catalog.snapshot)) deps.log.warn(sentence)
  try {
    return await createServices({ ...deps, ...started, outbound, turns })
  } catch (error) {
    await started.stopSandbox()
    await outbound.close()
    throw error
  }
}

/** Constructs the parts that need the catalog: domains, state of routes, services and edges. */
async function createServices(deps: AppDeps & StartedCatalog & { readonly outbound: Outbound; readonly turns: StreamTurns }): Promise<App> {
  const { config, db, catalog, outbound, turns } = deps
  const state: RunState = { baseUrl: config.BASE_URL ?? '', isDraining: false, isRetiring: false }
  const snapshot = (): CatalogSnapshot => catalog.snapshot
  const bindings = bindingsOf(endpointTable)
  const watched = await watchProcess(deps, { catalog: snapshot, addresses: bindings.map(({ at }) => at) })
  const domains = await createDomains({ ...deps, storeWatch: watched.stores }, () => state.baseUrl)
  turns.divideBy(domains.founders.known)
  const routes = createRouteState(deps, domains, snapshot)
  const { circuits, health } = routes
  catalog.showHealth(id => ({ available: circuits.available(id), maintenance: health.inMaintenance(id) }))
  await routes.start()
  const baseUrl = (): string => state.baseUrl
  const bounds = processBounds(deps, domains.founders.known)
  const watch = watched.begin({ ...domains, circuits, bounds, isDraining: () => state.isDraining })
  const operator = operatorServices(deps, domains, () => state.baseUrl)
  const masterKeys = new MasterKeys(deps)
  const doctor = (): Promise<Finding[]> => {
    const { memory, controlLog, mail, agents, limits } = domains
    const [signingKeys, attestationKeys, providerKeys] = [agents.signingKeys, services.attestations.keys, services.platformKeys]
    const parts = { db, config, catalog, memory, controlLog, mail, signingKeys, attestationKeys, operator, masterKeys, providerKeys, baseUrl: state.baseUrl }
    return diagnose({ ...parts, clock: deps.clock, identities, recovery: limits.recovery })
  }
  const identities = identitiesOf({ ...deps, ...domains })
  const parts: AppParts = { ...deps, ...domains, catalog, circuits, health, routeObserver: routes.observer, baseUrl, watch, identities }
  const services: Services = rowServices(parts, bindings, { maintenance: routes.maintenance, diagnose: doctor })
  const edge = { ...edgeDeps(deps, domains, services, state), ...bounds, ...watched.edge }
  const mcp = mcpOf(deps, domains, edge, bindings, watched.tools)
  const mcpPaths = {
    main: (request: IncomingMessage, response: ServerResponse) => void mcp.handle(request, response),
    ofServer: mcpOfServer(config, mcp, services.serverReads, edge),
    ofOrg: mcpOfOrg(config, mcp, services.mcpOAuth, edge),
  }
  const server = createEdge(bindings, edge, mcpPaths, new ConsoleSite({ isOn: config.CONSOLE }))
  const [stopBatches] = await Promise.all([services.startBatches(), services.hints.start(), domains.jobs.start()])
  return {
    ...domains,
    server,
    circuits,
    health,
    maintenance: routes.maintenance,
    operator,
    masterKeys,
    attestations: services.attestations,
    toolCatalog: services.toolCatalog,
    baseUrl: () => state.baseUrl,
    setBaseUrl(url) {
      state.baseUrl = url
    },
    exampleModel: () => exampleModel(catalog),
    describe: () => `${db.kind === 'embedded' ? `embedded database in ${deps.dataDir}` : 'PostgreSQL'}; providers: ${configuredProviders(catalog)}`,
    providersAtStart: () => providersAtStart(config, catalog),
    async reportRefusedKeys() {
      for (const look of await services.platformKeys.look())
        if (look.outcome.kind === 'rejected') deps.log.warn(refusedSentence(look), { provider: look.provider.id })
    },
    doctor,
    probeRoutes: services.probeRoutes,
    async backUp(options) {
      if (!isEmbedded(db)) throw new Error('PostgreSQL is backed up with pg_dump: docs/operate/backup-and-restore.md')
      return backUp({ ...deps, db }, options)
    },
    makeSignInLink: email => services.signInLinks.make(email),
    retire() {
      state.isRetiring = true
      return retire(deps, server, bounds.connections, services.hints)
    },
    async stop() {
      state.isDraining = true
      await drain(deps, domains.inflight, server, mcp, services.hints)
      await Promise.all([services.monitor.stop(), stopBatches()])
      await routes.stop()
      await deps.stopSandbox()
      await domains.stop()
      await outbound.close()
      await watched.stop()
      await db.close()
    },
  }
}

type AllServices = RowServices & ToolRegistry & Pick<App, 'probeRoutes'>

function outboundOf({ config, lookup }: AppDeps, turns: StreamTurns): Outbound {
  return createOutbound({
    connectTimeoutMs: config.CONNECT_TIMEOUT_MS,
    firstByteTimeoutMs: config.FIRST_BYTE_TIMEOUT_MS,
    streamIdleTimeoutMs: config.STREAM_IDLE_TIMEOUT_MS,
    allow: config.OUTBOUND_ALLOW,
    turns,
    ...(lookup ? { lookup } : {}),
  })
}

/** The services of rows, and what else is started with them. */
type Services = AllServices & { startBatches(): () => Promise<void> }

function rowServices(parts: AppParts, bindings: readonly Binding[], ofOperator: OperatorParts): Services {
  const { config, clock, ids, log, db, outbound, inflight, limits, contentLog, agents, memory, catalog, circuits, health } = parts
  const byok = createByok(parts)
  const routing = routingServices(parts, byok.providerKeys, byok.customServers)
  const plans = new Plans({ catalog: () => catalog.snapshot, circuits, health, clock })
  const inference: InferenceDeps = {
    clock,
    ids,
    log,
    outbound,
    inflight,
    departures: new Departures(parts.founders.known),
    limits,
    isBilling: isBilling(config),
    contentLog,
    replyCache: parts.replyCache,
    dialectOf,
    noteTokenCount: tokenCountsIn(db, clock),
    audioLengths: new AudioLengths(clock, { founderOf: parts.founders.known, sharePercent: config.ORG_SHARE_PERCENT }),
    imageScaler: new ImageScaler(clock, parts.founders.known),
    heldReplies: parts.heldReplies,
    heavyTurns: parts.heavyTurns,
    recheck: principal => agents.tokens.recheck(principal),
    resolve: request => plans.resolve(request),
    sticky: new StickyRoutes({ clock, circuits, health, controlLog: parts.controlLog }),
    dearerRoute: (asked, model) => dearerRoute(catalog.snapshot, asked, model),
    observer: parts.routeObserver,
    identities: parts.identities,
    watch: parts.watch.calls,
    traces: parts.watch.traces,
    timeouts: { firstByteMs: config.FIRST_BYTE_TIMEOUT_MS, wholeReplyMs: config.WHOLE_REPLY_TIMEOUT_MS },
    images: imageSettings(config),
    endedRuns: parts.endedRuns,
    cappedRuns: runsOfCalls(parts),
    runLoops: parts.runLoops,
    agentByLabel: (orgId, label) => agents.byLabel(orgId, label),
    orgRouting: orgId => routing.orgRoutings.get(orgId),
  }
  const batches = batchServices(parts, inference)
  const people = orgServices(parts, batches.batchFiles)
  return {
    ...people,
    ...batches,
    ...createAccess({ ...parts, invitations: people.invitations }),
    ...profileServices(parts),
    ...keyServices(parts),
    ...complianceServices(parts),
    ...billingServices(parts),
    ...auditServices(parts),
    webhooks: parts.webhooks,
    webhookDeliveries: parts.webhookDeliveries,
    ...oauthServices(parts),
    ...publicDataServices(parts),
    ...routing,
    ...byok,
    catalog,
    agents,
    memory,
    budgets: limits,
    ...budgetServices(parts),
    inference: new Inference(inference, parts.idempotency),
    probeRoutes: async bounds => routeFindings(await probeRoutes(catalog.snapshot.models.values(), bounds, inference), bounds.costMaxUinr),
    ...collectionServices(parts, routing.chains, inference),
    ...toolServices(parts),
    whoami: whoamiOf(parts),
    ...reportServices(parts),
    ...hintServices(parts),
    ...operatorRowServices(parts, ofOperator),
    mcpCard: cardDocuments(config.SERVICE_ID, version),
    probes: parts.watch.probes,
    discovery: discoveryOf(catalog, circuits, bindings, () => parts.watch.probes.readiness()),
  }
}

function whoamiOf({ config, db, limits, memory, orgs }: AppParts): Whoami {
  return new Whoami({
    version,
    orgName: async orgId => (await orgs.find(orgId))?.name ?? '',
    memoryConfigured: orgId => memory.isConfigured(orgId),
    tightestBudget: async principal => tightestOf(await limits.budgetsOf(principal)),
    balanceInr: async orgId => (isBilling(config) ? inrFromUinr(await balanceOf(db, orgId)) : null),
  })
}

function edgeDeps(
  deps: AppDeps,
  { inflight, agents, authenticator, sessions, limits, audit }: Domains,
  services: RowServices,
  state: RunState,
): Omit<EdgeDeps, keyof ProcessBounds> {
  const { ids, log, config, clock } = deps
  return {
    ...strangers(deps, () => state.baseUrl),
    services,
    ids,
    log,
    inflight,
    baseUrl: () => state.baseUrl,
    recheck: principal => {
      if (principal.kind !== 'session') agents.tokens.recheck(principal)
    },
    bodyLimitBytes: config.BODY_LIMIT_BYTES,
    formLimits: { fileBytes: config.FORM_FILE_LIMIT_BYTES, totalBytes: config.FORM_LIMIT_BYTES },
    inferenceBodyLimitBytes: config.INFERENCE_BODY_LIMIT_BYTES,
    authenticate: headers => authenticator.authenticate(headers),
    authenticateSession: (method, headers) =>
      sessionCaller(method, headers, { sessions, authenticator, baseUrl: () => state.baseUrl, origins: config.CONSOLE_ORIGINS }),
    acts: audit,
    onAct: act => services.hints.acted(act),
    streams: new OpenStreams(clock, config.KEEP_ALIVE_MS),
    cors: new Cors(config.CORS_ORIGINS, config.CONSOLE_ORIGINS),
    takeRate: principal => limits.takeRate(principal),
    noteRefused: (principal, error, requestId) => services.refusedCalls.note(principal, error, requestId),
    rates: new RateHeaders({ requestsLeft: principal => limits.requestsLeft(principal), withFields: config.RATELIMIT_FIELDS }),
    isDraining: () => state.isDraining,
    isRetiring: () => state.isRetiring,
  }
}

function exampleModel(catalog: Catalog): string {
  const models = [...catalog.snapshot.models.values()]
  return models.find(model => model.kind === 'chat' && model.routes.some(route => route.provider.configured && !route.byokOnly))?.id ?? 'auto'
}

/** The providers that a start shows. */
export interface ProvidersAtStart {
  /** The ids of the providers that serve, the sandbox included. */
  readonly ids: readonly string[]
  readonly sandbox: SandboxState
}

function providersAtStart(config: Config, catalog: Catalog): ProvidersAtStart {
  const ids = catalog.publicProviders().flatMap(provider => (provider.configured ? [provider.id] : []))
  return { ids, sandbox: sandboxState(config, catalog.snapshot) }
}

function configuredProviders(catalog: Catalog): string {
  const ids = catalog.publicProviders().flatMap(provider => (provider.configured ? [provider.id] : []))
  return ids.join(', ') || 'none'
}
