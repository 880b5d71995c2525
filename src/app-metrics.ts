/** The figures of this process: what counts them, what they read when somebody asks, and who may ask. */
import { timingSafeEqual } from 'node:crypto'
import type { AppDeps } from './app-deps.ts'
import type { Domains } from './app-domains.ts'
import { EdgeCounts, InferenceCounts, type LabelNames, storeCounts, ToolCounts } from './app-metrics-counts.ts'
import { challenge } from './gateway/access/authenticate.ts'
import type { CatalogSnapshot } from './gateway/catalog/model.ts'
import { routeId } from './gateway/catalog/model.ts'
import type { MetricsCaller, Probes, Readiness } from './gateway/http/health-endpoints.ts'
import type { Circuits } from './gateway/routing/circuit.ts'
import type { StoreWatch } from './memory/watched-store.ts'
import { plainAddress } from './platform/address-ranges.ts'
import type { Config } from './platform/config.ts'
import { fail } from './platform/errors.ts'
import { Metrics, metricsContentType, type Sample } from './platform/metrics.ts'
import { hashKey } from './platform/secrets.ts'
import { version } from './version.ts'

/** What counts, and the text of it. */
export interface Figures {
  readonly metrics: Metrics
  readonly edge: EdgeCounts
  readonly inference: InferenceCounts
  readonly tools: ToolCounts
  readonly stores: StoreWatch
  /** How often an export of telemetry has failed. */
  exportFailed(signal: string): void
}

/** Names that may be labels: what the catalog knows, and `other`. Names that organisations give their own servers and models are none. */
export function labelNames(catalog: () => CatalogSnapshot): LabelNames {
  return {
    model: id => (catalog().models.has(id) ? id : 'other'),
    provider: id => (catalog().providers.has(id) ? id : 'other'),
  }
}

/** Makes the counters; null when METRICS is off. */
export function createFigures({ config, clock }: AppDeps, names: LabelNames): Figures | null {
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

/** What figures read when somebody asks. */
export interface FigureSources extends Pick<Domains, 'inflight' | 'limits' | 'controlLog' | 'jobs'> {
  readonly db: AppDeps['db']
  readonly circuits: Circuits
  readonly catalog: () => CatalogSnapshot
  readonly readiness: () => Readiness
}

const one = (value: number): readonly Sample[] => [{ labels: {}, value }]

/** Adds what is known in memory anyway: nothing here asks the database. */
export function readFigures({ metrics }: Figures, sources: FigureSources): void {
  const { inflight, limits, controlLog, jobs, db, readiness } = sources
  metrics.gauge('brigade_build_info', 'The version that runs.', ['version', 'node'], () => [{ labels: { version, node: process.version }, value: 1 }])
  metrics.gauge('brigade_ready', 'Whether this process may have calls, as /readyz says.', [], () => one(readiness().isReady ? 1 : 0))
  metrics.gauge('brigade_calls_in_flight', 'Calls with a credential under way, MCP included.', [], () => one(inflight.size))
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

function poolStates({ pool }: AppDeps['db']): readonly Sample[] {
  if (pool === undefined) return []
  const { inUse, idle } = pool
  return [
    { labels: { state: 'in_use' }, value: inUse },
    { labels: { state: 'idle' }, value: idle },
  ]
}

/** By provider of the catalog; those of organisations' own servers together. */
function openCircuits({ circuits, catalog }: FigureSources): readonly Sample[] {
  const counts = new Map<string, number>()
  for (const id of catalog().providers.keys()) counts.set(id, 0)
  const providers = new Map([...catalog().models.values()].flatMap(({ routes }) => routes.map(route => [routeId(route), route.provider.id] as const)))
  for (const id of circuits.openRoutes()) {
    const provider = providers.get(id) ?? 'other'
    counts.set(provider, (counts.get(provider) ?? 0) + 1)
  }
  return [...counts].map(([provider, value]) => ({ labels: { provider }, value }))
}

/** How soon a process that serves no call is worth another look. */
const retrySeconds = 2

/** Whether this process may have calls. Reads what is known; asks nobody. */
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

/** What probes ask of this process. */
export function probesOf(config: Config, figures: Figures | null, readiness: () => Readiness): Probes {
  const token = config.METRICS_TOKEN === null ? null : hashKey(config.METRICS_TOKEN.reveal())
  return {
    readiness,
    async metrics(asked) {
      if (figures === null) throw fail('not_found', { message: 'Figures are switched off here (METRICS=off).' })
      if (token === null) checkLocal(asked)
      else checkToken(asked, token)
      return { text: await figures.metrics.text(), contentType: metricsContentType }
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

/** A proxy on this machine calls from this machine too, for everybody; a page in a browser may have been led here by a name of its own. */
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
