/** The metrics of this process: counters, values that are read on request, and the check of who may read the metrics. */
import { timingSafeEqual } from 'node:crypto'
import { challenge } from '../../gateway/access/authenticate.ts'
import type { CatalogSnapshot } from '../../gateway/catalog/model.ts'
import { routeId } from '../../gateway/catalog/model.ts'
import type { MetricsCaller, Probes, Readiness } from '../../gateway/http/documents/health-endpoints.ts'
import type { RouteCircuits } from '../../gateway/routing/circuits/route-circuits.ts'
import type { StoreWatch } from '../../memory/stores/watched-store.ts'
import type { Config } from '../../platform/config.ts'
import { fail } from '../../platform/errors.ts'
import { Metrics, metricsContentType, type Sample, textOfWorkers } from '../../platform/observe/metrics.ts'
import { plainAddress } from '../../platform/outbound/address-ranges.ts'
import { hashKey } from '../../platform/security/secrets.ts'
import { version } from '../../version.ts'
import type { ProcessBounds } from '../bounds.ts'
import type { AppDeps } from '../deps.ts'
import type { Domains } from '../domains.ts'
import { EdgeCounts, InferenceCounts, type LabelNames, storeCounts, ToolCounts } from './metric-counts.ts'

/** The counters, and the registry that writes them as text. */
export interface GatewayMetrics {
  readonly metrics: Metrics
  readonly edge: EdgeCounts
  readonly inference: InferenceCounts
  readonly tools: ToolCounts
  readonly stores: StoreWatch
  /** Counts a failed export of telemetry. */
  exportFailed(signal: string): void
}

/**
 * Returns the names that may be labels: the names of the catalog, and `other`. Names that organisations give to their own servers and models become
 * `other`.
 */
export function labelNames(catalog: () => CatalogSnapshot): LabelNames {
  return {
    model: id => (catalog().models.has(id) ? id : 'other'),
    provider: id => (catalog().providers.has(id) ? id : 'other'),
  }
}

/** Constructs the counters. Returns null when METRICS is off. */
export function createMetrics({ config, clock }: AppDeps, names: LabelNames): GatewayMetrics | null {
  if (!config.METRICS) return null
  const metrics = new Metrics()
  const exportFailures = metrics.counter('brigade_telemetry_export_failures_total', 'Exports to the OpenTelemetry collector that failed.', ['signal'])
  return {
    metrics,
    edge: new EdgeCounts(metrics, clock),
    inference: new InferenceCounts(metrics, names),
    tools: new ToolCounts(metrics),
    stores: storeCounts(metrics),
    exportFailed: signal => {
      exportFailures.of(signal).value++
    },
  }
}

/** The sources of the values that are read on request. */
export interface MetricSources extends Pick<Domains, 'inflight' | 'limits' | 'controlLog' | 'jobs' | 'heldReplies'> {
  readonly bounds: ProcessBounds
  readonly db: AppDeps['db']
  readonly circuits: RouteCircuits
  readonly catalog: () => CatalogSnapshot
  readonly readiness: () => Readiness
}

const one = (value: number): readonly Sample[] => [{ labels: {}, value }]

/** Registers the values that are already in memory. No metric sends a query to the database. */
export function readMetrics({ metrics }: GatewayMetrics, sources: MetricSources): void {
  const { inflight, limits, controlLog, jobs, db, readiness, bounds, heldReplies } = sources
  const { bodies } = bounds
  metrics.gauge('brigade_build_info', 'The version that runs.', ['version', 'node'], () => [{ labels: { version, node: process.version }, value: 1 }])
  metrics.gauge('brigade_ready', 'Whether this process may have calls, as /readyz says.', [], () => one(readiness().isReady ? 1 : 0))
  metrics.gauge('brigade_calls_in_flight', 'Calls with a credential under way, MCP included.', [], () => one(inflight.size))
  metrics.gauge('brigade_request_bodies_bytes', 'Request bodies under way.', [], () => one(bodies.bytes))
  metrics.gauge('brigade_request_bodies_limit_bytes', 'What they may come to.', [], () => one(bodies.limits.totalBytes))
  metrics.counted(
    'brigade_request_bodies_refused_total',
    'Request bodies refused: no room left in all, no room left for the organisation, sent too slowly, cut into pieces that are too small.',
    ['reason'],
    () => Object.entries(bodies.refusals).map(([reason, value]) => ({ labels: { reason }, value })),
  )
  readBounds(metrics, bounds)
  readHeldReplies(metrics, heldReplies)
  metrics.gauge('brigade_circuits_open', 'Routes whose circuit is open.', ['provider'], () => openCircuits(sources))
  metrics.gauge('brigade_database_away', '1 when the database has not answered for OFFLINE_MAX.', [], () => one(limits.isOffline ? 1 : 0))
  metrics.gauge('brigade_control_log_lag_seconds', 'Since when news of other processes have not been read.', [], () => one(controlLog.lastSyncAgeMs() / 1000))
  metrics.gauge('brigade_journal_unflushed_bytes', 'Usage in the journal that is not in the database.', [], () => one(limits.journal.unflushedBytes))
  metrics.gauge('brigade_journal_lag_seconds', 'How long the oldest of it has been waiting.', [], () => one(limits.journal.lagMs / 1000))
  metrics.counted('brigade_journal_flush_failures_total', 'Flushes of the journal that failed.', [], () => one(limits.journal.failures))
  metrics.counted('brigade_limits_acquires_total', 'Times that room in budgets and limits was asked of the database.', [], () => one(limits.acquires))
  metrics.counted('brigade_database_round_trips_total', 'Statements sent to the database.', [], () => one(db.roundTrips))
  metrics.gauge('brigade_database_connections', 'Connections of the pool to PostgreSQL.', ['state'], () => poolStates(db))
  metrics.gauge('brigade_database_waiting', 'Callers that wait for a connection.', [], () => (db.pool === undefined ? [] : one(db.pool.waiting)))
  metrics.counted('brigade_job_runs_total', 'Runs of regular jobs in this process.', ['job', 'outcome'], () =>
    jobs.counts.flatMap(({ name, runs, failures }) => [
      { labels: { job: name, outcome: 'ok' }, value: runs },
      { labels: { job: name, outcome: 'failed' }, value: failures },
    ]),
  )
}

function readHeldReplies(metrics: Metrics, heldReplies: Domains['heldReplies']): void {
  const help =
    'Replies of providers, servers of organisations and memory stores that are kept: whole ones while they are read, and incomplete events of streams.'
  metrics.gauge('brigade_replies_held_bytes', help, [], () => one(heldReplies.bytes))
  metrics.gauge('brigade_replies_held_limit_bytes', 'What they may come to.', [], () => one(heldReplies.limits.totalBytes))
  metrics.counted('brigade_replies_waits_total', 'Times that a server waited because there was no room for its whole reply.', [], () => one(heldReplies.waits))
  metrics.counted('brigade_replies_refused_total', 'Streams without room: none left in all, none left for the organisation.', ['reason'], () =>
    Object.entries(heldReplies.refusals).map(([reason, value]) => ({ labels: { reason }, value })),
  )
}

function readBounds(metrics: Metrics, { connections, streamPlaces, polls, unread }: ProcessBounds): void {
  const kinds = Object.entries({ connections: connections.shares, streams: streamPlaces.shares, polls })
  metrics.gauge('brigade_places_held', 'Open connections, streamed replies under way, account resources that are looked at.', ['kind'], () =>
    kinds.map(([kind, { held }]) => ({ labels: { kind }, value: held })),
  )
  metrics.gauge('brigade_places_limit', 'How many of them this process takes.', ['kind'], () =>
    kinds.map(([kind, { total }]) => ({ labels: { kind }, value: total })),
  )
  metrics.counted('brigade_places_refused_total', 'Refusals: all places were taken, or the organisation or address had its share.', ['kind', 'reason'], () =>
    kinds.flatMap(([kind, { refusals }]) => Object.entries(refusals).map(([reason, value]) => ({ labels: { kind, reason }, value }))),
  )
  metrics.counted('brigade_connections_dropped_total', 'Connections closed without an answer because far too many were open.', [], () =>
    one(connections.dropped),
  )
  metrics.gauge('brigade_replies_unread_bytes', 'Replies that wait for clients who read slowly.', [], () => one(unread.bytes))
  metrics.gauge('brigade_replies_unread_limit_bytes', 'What they may come to.', [], () => one(unread.limits.totalBytes))
  metrics.counted(
    'brigade_replies_cut_total',
    'Connections cut because replies waited in them: no room left in all, no room left for the organisation, read too slowly.',
    ['reason'],
    () => Object.entries(unread.cuts).map(([reason, value]) => ({ labels: { reason }, value })),
  )
}

function poolStates({ pool }: AppDeps['db']): readonly Sample[] {
  if (pool === undefined) return []
  const { inUse, idle } = pool
  return [
    { labels: { state: 'in_use' }, value: inUse },
    { labels: { state: 'idle' }, value: idle },
  ]
}

/** Counts open circuits by provider of the catalog. The circuits of organisations' own servers are counted together as `other`. */
function openCircuits({ circuits, catalog }: MetricSources): readonly Sample[] {
  const counts = new Map<string, number>()
  for (const id of catalog().providers.keys()) counts.set(id, 0)
  const providers = new Map([...catalog().models.values()].flatMap(({ routes }) => routes.map(route => [routeId(route), route.provider.id] as const)))
  for (const id of circuits.openRoutes()) {
    const provider = providers.get(id) ?? 'other'
    counts.set(provider, (counts.get(provider) ?? 0) + 1)
  }
  return [...counts].map(([provider, value]) => ({ labels: { provider }, value }))
}

/** The number of seconds after which a prober should ask again when this process accepts no calls. */
const retrySeconds = 2

/** Returns a function that says whether this process may receive calls. It reads only values in memory. */
export function readinessOf({ limits, controlLog }: Pick<Domains, 'limits' | 'controlLog'>, config: Config, isDraining: () => boolean): () => Readiness {
  return () => {
    const draining = isDraining()
    const isAway = limits.isOffline
    const { isFull } = limits.journal
    return {
      isReady: !draining && !isAway && !isFull,
      retryAfterSeconds: retrySeconds,
      checks: {
        process: draining ? 'draining' : 'running',
        database: isAway ? 'away' : 'ok',
        journal: isFull ? 'full' : 'ok',
        news: controlLog.lastSyncAgeMs() > config.AGENT_STALE_MS ? 'late' : 'ok',
      },
    }
  }
}

/** Returns the answers to the probes of this process. */
export function probesOf({ config, workers }: Pick<AppDeps, 'config' | 'workers'>, figures: GatewayMetrics | null, readiness: () => Readiness): Probes {
  if (figures !== null) workers?.offerFigures(() => figures.metrics.snapshots())
  const token = config.METRICS_TOKEN === null ? null : hashKey(config.METRICS_TOKEN.reveal())
  return {
    readiness,
    async metrics(asked) {
      if (figures === null) throw fail('not_found', { message: 'Metrics are switched off here (METRICS=off).' })
      if (token === null) checkLocal(asked)
      else checkToken(asked, token)
      const text = workers === undefined ? await figures.metrics.text() : await textOfWorkers(await workers.figuresOfAll())
      return { text, contentType: metricsContentType }
    },
  }
}

function checkToken({ authorization }: MetricsCaller, token: Buffer): void {
  const [, given] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? []
  if (given !== undefined && timingSafeEqual(hashKey(given), token)) return
  throw fail('invalid_api_key', {
    message: 'Send "Authorization: Bearer <METRICS_TOKEN>": the token that the operator has set for figures.',
    headers: challenge,
  })
}

/**
 * Throws `forbidden` unless the caller is on this machine. A proxy on this machine calls for other people, so forwarded requests are refused. A web
 * page in a browser may point its own domain name at this machine, so the host name is checked too.
 */
function checkLocal({ host, isForwarded, clientIp }: MetricsCaller): void {
  const name = (host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  const isHere = isLoopback(clientIp()) && (name === '' || name === 'localhost' || isLoopback(name))
  if (isHere && !isForwarded) return
  throw fail('forbidden', {
    message:
      'Without a token, figures are given to callers on this machine only and not through a proxy. The operator sets METRICS_TOKEN to read them from elsewhere.',
  })
}

function isLoopback(address: string): boolean {
  const plain = plainAddress(address)
  return plain !== null && (plain === '::1' || plain.startsWith('127.'))
}
