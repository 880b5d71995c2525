/** Starts the enabled parts of observation for this process: metrics, traces and probes. A part that is off costs a call nothing. */

import type { CatalogSnapshot } from '../../gateway/catalog/model.ts'
import type { Probes } from '../../gateway/http/documents/health-endpoints.ts'
import type { EdgeDeps } from '../../gateway/http/edge.ts'
import type { CallTraces } from '../../gateway/inference/call-trace.ts'
import type { CallWatch } from '../../gateway/inference/call-watch.ts'
import type { ToolWatch } from '../../mcp/tools/toolbox/tool-watch.ts'
import type { StoreWatch } from '../../memory/stores/watched-store.ts'
import type { AppDeps } from '../deps.ts'
import { createMetrics, labelNames, type MetricSources, probesOf, readinessOf, readMetrics } from './metrics.ts'
import { callWatchWithLines, edgeWatchWithLines, RequestLines, toolWatchWithLines } from './request-lines.ts'
import { startTelemetry, toolWatch } from './telemetry.ts'

/** The observers that services need. */
export interface ServiceWatch {
  readonly probes: Probes
  readonly calls: CallWatch | undefined
  readonly traces: CallTraces | undefined
}

/** The observers that exist before the domains are constructed. */
export interface ProcessWatch {
  readonly stores: StoreWatch | undefined
  readonly edge: Pick<EdgeDeps, 'watch' | 'placeOf'>
  readonly tools: ToolWatch | undefined
  /** Constructs the remaining observers, once their sources exist. */
  begin(sources: Omit<MetricSources, 'db' | 'catalog' | 'readiness'> & { isDraining(): boolean }): ServiceWatch
  /** Sends the remaining traces. */
  stop(): Promise<void>
}

/** What the watch of a process needs to know of the gateway. */
export interface WatchedGateway {
  /** Is first called when there are calls. */
  readonly catalog: () => CatalogSnapshot
  /** The addresses of the endpoint table. */
  readonly addresses: readonly string[]
}

/** Constructs counters, lines on a terminal if there is one, and traces if a collector is configured. Throws ConfigError. */
export async function watchProcess(deps: AppDeps, { catalog, addresses }: WatchedGateway): Promise<ProcessWatch> {
  const names = labelNames(catalog)
  const figures = createMetrics(deps, names)
  const telemetry = await startTelemetry(deps, names, figures)
  const lines = requestLines(deps, addresses)
  const tools = toolWatch(deps.clock, figures?.tools, telemetry?.telemetry)
  return {
    stores: figures?.stores,
    edge: { watch: lines === null ? figures?.edge : edgeWatchWithLines(figures?.edge, lines, deps.clock), placeOf: telemetry?.placeOf },
    tools: lines === null ? tools : toolWatchWithLines(tools, lines),
    begin(sources) {
      const readiness = readinessOf(sources, deps.config, sources.isDraining)
      if (figures !== null) readMetrics(figures, { ...sources, db: deps.db, catalog, readiness })
      return {
        probes: probesOf(deps, figures, readiness),
        calls: lines === null ? figures?.inference : callWatchWithLines(figures?.inference, lines),
        traces: telemetry?.calls,
      }
    },
    stop: async () => telemetry?.stop(),
  }
}

/** Returns the lines for requests. Null when nobody at a terminal reads them, so that a call does nothing for them. */
function requestLines({ config, clock, requestsOn }: AppDeps, addresses: readonly string[]): RequestLines | null {
  if (requestsOn === undefined || requestsOn === null) return null
  return new RequestLines({ terminal: requestsOn, clock, addresses, showsAll: config.LOG_LEVEL !== 'info' })
}
