/** The composition root: with app-domains.ts and app-catalog.ts the only place that constructs services. */
import type { Server } from 'node:http'
import type { Agents } from './agents/agents.ts'
import { accessServices } from './app-access.ts'
import { watchUsage } from './app-anomalies.ts'
import { auditServices, strangers } from './app-audit.ts'
import { billingAccountServices } from './app-billing-account.ts'
import { budgetServices } from './app-budgets.ts'
import { startCatalog } from './app-catalog.ts'
import { collectionServices } from './app-collections.ts'
import { complianceServices } from './app-compliance.ts'
import { createCustomServers } from './app-custom-servers.ts'
import type { AppDeps } from './app-deps.ts'
import { discoveryOf } from './app-discovery.ts'
import { diagnose } from './app-doctor.ts'
import { createDomains, type Domains } from './app-domains.ts'
import { imageSettings } from './app-images.ts'
import { invoiceServices } from './app-invoices.ts'
import { keyServices } from './app-keys.ts'
import { MasterKeys } from './app-master-keys.ts'
import { mcpOf } from './app-mcp.ts'
import { monitoringServices } from './app-monitoring.ts'
import { mcpOfOrg, oauthServices } from './app-oauth.ts'
import { type OperatorDesk, operatorDesk } from './app-operator.ts'
import { orgServices } from './app-orgs.ts'
import { paymentServices } from './app-payments.ts'
import { profileServices } from './app-profile.ts'
import { createProviderKeys } from './app-provider-keys.ts'
import { publicDataServices } from './app-public-data.ts'
import { reportServices } from './app-reports.ts'
import { createRouteState } from './app-route-state.ts'
import { routingServices } from './app-routing.ts'
import type { AppParts } from './app-services.ts'
import { watchProcess } from './app-watch.ts'
import { webhookServices } from './app-webhooks.ts'
import { type BackupReport, backUp } from './backup.ts'
import type { Finding } from './cli/doctor.ts'
import type { Authenticator } from './gateway/access/authenticate.ts'
import { sessionCaller } from './gateway/access/session-caller.ts'
import type { Sessions } from './gateway/access/sessions.ts'
import type { SignInLink } from './gateway/access/sign-in-links.ts'
import { Whoami } from './gateway/access/whoami.ts'
import type { AuditTrail } from './gateway/audit/audit.ts'
import type { Catalog } from './gateway/catalog/catalog.ts'
import type { Attestations } from './gateway/compliance/attestation.ts'
import { Cors } from './gateway/http/cors.ts'
import type { Binding, EdgeDeps } from './gateway/http/edge.ts'
import { bindingsOf, endpointTable, type RowServices } from './gateway/http/endpoint-table.ts'
import { OpenStreams } from './gateway/http/open-streams.ts'
import { createEdge } from './gateway/http/server.ts'
import type { ContentLog } from './gateway/inference/content-log.ts'
import type { InferenceDeps } from './gateway/inference/deps.ts'
import { Inference } from './gateway/inference/inference.ts'
import { tokenCountsIn } from './gateway/inference/token-counts.ts'
import type { Keys } from './gateway/keys/keys.ts'
import { tightestOf } from './gateway/limits/budget-view.ts'
import type { LimitsEngine } from './gateway/limits/limits.ts'
import { balanceOf } from './gateway/limits/prepaid.ts'
import type { Orgs } from './gateway/orgs/orgs.ts'
import { dialectOf } from './gateway/providers/dialects.ts'
import type { Circuits } from './gateway/routing/circuit.ts'
import type { Maintenance } from './gateway/routing/maintenance.ts'
import { resolve } from './gateway/routing/resolve.ts'
import type { RouteHealth } from './gateway/routing/route-health.ts'
import type { UsageEvent } from './gateway/usage/record.ts'
import type { Mcp } from './mcp/transport.ts'
import type { Memory } from './memory/memory.ts'
import { AudioLengths } from './platform/audio-length.ts'
import { isBilling } from './platform/config.ts'
import { isEmbedded } from './platform/db-embedded.ts'
import { ImageScaler } from './platform/image-scaler.ts'
import type { Inflight } from './platform/inflight.ts'
import type { Jobs } from './platform/jobs.ts'
import { inrFromUinr } from './platform/money.ts'
import { version } from './version.ts'

/** A whole gateway without a port: `server` listens when somebody tells it to. */
export interface App {
  readonly server: Server
  readonly orgs: Orgs
  readonly keys: Keys
  readonly agents: Agents
  readonly limits: LimitsEngine<UsageEvent>
  readonly memory: Memory
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly inflight: Inflight
  readonly circuits: Circuits
  readonly health: RouteHealth
  readonly maintenance: Maintenance
  /** The sweeps of this process. */
  readonly jobs: Jobs
  readonly contentLog: ContentLog
  readonly audit: AuditTrail
  /** What signs attestations. */
  readonly attestations: Attestations
  /** Money and webhooks, as the operator sees and moves them. */
  readonly operator: OperatorDesk
  /** A copy of the embedded installation as of one moment. Throws BackupError. */
  backUp(options: { readonly to: string; readonly withMasterKey: boolean }): Promise<BackupReport>
  /** The master key and what it sealed. */
  readonly masterKeys: MasterKeys
  baseUrl(): string
  setBaseUrl(url: string): void
  /** A chat model that this gateway can serve now, for examples. */
  exampleModel(): string
  /** Database, providers: one line for the start. */
  describe(): string
  doctor(): Promise<Finding[]>
  /** A one-time sign-in link for the person of that address. Throws `not_found`. */
  makeSignInLink(email: string): Promise<SignInLink>
  /** Stops accepting, drains, flushes, gives leases back, closes the database. */
  stop(): Promise<void>
}

/** What changes while the gateway runs. */
interface RunState {
  baseUrl: string
  isDraining: boolean
}

export async function createApp(deps: AppDeps): Promise<App> {
  const { config, db } = deps
  const state: RunState = { baseUrl: config.BASE_URL ?? '', isDraining: false }
  const watched = await watchProcess(deps, () => catalog.snapshot)
  const domains = await createDomains({ ...deps, storeWatch: watched.stores }, () => state.baseUrl)
  const routes = createRouteState(deps, domains, () => catalog.snapshot)
  const { circuits, health } = routes
  const healthOf = (id: string) => ({ available: circuits.available(id), maintenance: health.inMaintenance(id) })
  const { catalog, stopSandbox } = await startCatalog({ ...deps, outbound: domains.outbound, healthOf })
  await routes.start()
  watchUsage(deps, domains)
  const bindings = bindingsOf(endpointTable)
  const baseUrl = (): string => state.baseUrl
  const watch = watched.begin({ ...domains, circuits, isDraining: () => state.isDraining })
  const services = rowServices({ ...deps, ...domains, catalog, circuits, health, routeObserver: routes.observer, baseUrl, watch }, bindings)
  const edge = { ...edgeDeps(deps, domains, services, state), ...watched.edge }
  const mcp = mcpOf(deps, domains, edge, bindings, watched.tools)
  const server = createEdge(bindings, edge, {
    main: (request, response) => void mcp.handle(request, response),
    ofOrg: mcpOfOrg(config, mcp, services.mcpOAuth, edge),
  })
  const operator = operatorDesk(deps, domains, () => state.baseUrl)
  const masterKeys = new MasterKeys(deps)
  return {
    ...domains,
    server,
    circuits,
    health,
    maintenance: routes.maintenance,
    operator,
    masterKeys,
    attestations: services.attestations,
    baseUrl: () => state.baseUrl,
    setBaseUrl(url) {
      state.baseUrl = url
    },
    exampleModel: () => exampleModel(catalog),
    describe: () => `${db.kind === 'embedded' ? `embedded database in ${deps.dataDir}` : 'PostgreSQL'}; providers: ${configuredProviders(catalog)}`,
    doctor: () =>
      diagnose({
        db,
        config,
        catalog,
        memory: domains.memory,
        controlLog: domains.controlLog,
        mail: domains.mail,
        signingKeys: domains.agents.signingKeys,
        attestationKeys: services.attestations.keys,
        recovery: domains.limits.recovery,
        operator,
        masterKeys,
        baseUrl: state.baseUrl,
      }),
    async backUp(options) {
      if (!isEmbedded(db)) throw new Error('PostgreSQL is backed up with pg_dump: docs/operate.md')
      return backUp({ ...deps, db }, options)
    },
    makeSignInLink: email => services.signInLinks.make(email),
    async stop() {
      state.isDraining = true
      await drain(deps, domains.inflight, server, mcp)
      await services.monitor.stop()
      await routes.stop()
      await stopSandbox()
      await domains.stop()
      await watched.stop()
      await db.close()
    },
  }
}

function rowServices(parts: AppParts, bindings: readonly Binding[]): RowServices {
  const { config, clock, ids, log, db, outbound, inflight, limits, contentLog, agents, memory, orgs, catalog, circuits, health } = parts
  const people = orgServices(parts)
  const byok = { providerKeys: createProviderKeys(parts), customServers: createCustomServers(parts) }
  const routing = routingServices(parts, byok.providerKeys, byok.customServers)
  const webhooks = webhookServices(parts)
  const inference: InferenceDeps = {
    clock,
    ids,
    log,
    outbound,
    inflight,
    limits,
    isBilling: isBilling(config),
    contentLog,
    dialectOf,
    noteTokenCount: tokenCountsIn(db, clock),
    audioLengths: new AudioLengths(clock),
    imageScaler: new ImageScaler(),
    recheck: principal => agents.tokens.recheck(principal),
    resolve: request => resolve(request, { catalog: catalog.snapshot, circuits, health, clock }),
    observer: parts.routeObserver,
    watch: parts.watch.calls,
    traces: parts.watch.traces,
    images: imageSettings(config),
    agentByLabel: (orgId, label) => agents.byLabel(orgId, label),
    orgRouting: orgId => routing.orgRoutings.get(orgId),
  }
  return {
    ...people,
    ...accessServices(parts, people.invitations),
    ...profileServices(parts),
    ...keyServices(parts),
    ...billingAccountServices(parts),
    ...complianceServices(parts),
    ...paymentServices(parts),
    ...auditServices(parts),
    ...invoiceServices(parts),
    ...webhooks,
    ...oauthServices(parts),
    ...publicDataServices(parts),
    ...routing,
    ...collectionServices(parts, routing.chains),
    ...byok,
    catalog,
    agents,
    memory,
    budgets: limits,
    ...budgetServices(parts),
    inference: new Inference(inference, parts.idempotency),
    ...monitoringServices(parts, inference, webhooks.webhooks),
    whoami: new Whoami({
      version,
      orgName: async orgId => (await orgs.find(orgId))?.name ?? '',
      memoryConfigured: orgId => memory.isConfigured(orgId),
      tightestBudget: async principal => tightestOf(await limits.budgetsOf(principal)),
      balanceInr: async orgId => (isBilling(config) ? inrFromUinr(await balanceOf(db, orgId)) : null),
    }),
    ...reportServices(parts),
    mcpCard: { serviceId: config.SERVICE_ID, version },
    probes: parts.watch.probes,
    discovery: discoveryOf(catalog, circuits, bindings, () => parts.watch.probes.readiness()),
  }
}

function edgeDeps(deps: AppDeps, { inflight, agents, authenticator, sessions, limits, audit }: Domains, services: RowServices, state: RunState): EdgeDeps {
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
    streams: new OpenStreams(clock, config.KEEP_ALIVE_MS),
    cors: new Cors(config.CORS_ORIGINS, config.CONSOLE_ORIGINS),
    takeRate: principal => limits.takeRate(principal),
    isDraining: () => state.isDraining,
  }
}

/** After the cut-off, how long a cut call may take to write its end. */
const lastWordsMs = 1000

/**
 * Takes no calls any more, waits for running ones at most DRAIN_MS, then cuts them in their own protocol. While calls run, connections are
 * still taken, so that probes hear what becomes of this process.
 */
async function drain({ clock, config }: AppDeps, inflight: Inflight, server: Server, mcp: Mcp): Promise<void> {
  server.closeIdleConnections()
  mcp.endSubscriptions()
  const isIdle = new AbortController()
  await Promise.race([inflight.whenIdle(), clock.sleep(config.DRAIN_MS, isIdle.signal).catch(() => {})])
  isIdle.abort()
  const closed = new Promise<void>(done => (server.listening ? server.close(() => done()) : done()))
  inflight.abortAll('shutdown')
  await mcp.close()
  await Promise.race([inflight.whenIdle(), clock.sleep(lastWordsMs)])
  server.closeAllConnections()
  await closed
}

function exampleModel(catalog: Catalog): string {
  const models = [...catalog.snapshot.models.values()]
  return models.find(model => model.kind === 'chat' && model.routes.some(route => route.provider.configured && !route.byokOnly))?.id ?? 'auto'
}

function configuredProviders(catalog: Catalog): string {
  const ids = catalog.publicProviders().flatMap(provider => (provider.configured ? [provider.id] : []))
  return ids.join(', ') || 'none'
}
