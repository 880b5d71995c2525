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

/** Constructs counters and, if a collector is configured, traces. `catalog` is first called when there are calls. Throws ConfigError. */
export async function watchProcess(deps: AppDeps, catalog: () => CatalogSnapshot): Promise<ProcessWatch> {
  const names = labelNames(catalog)
  const figures = createMetrics(deps, names)
  const telemetry = await startTelemetry(deps, names, figures)
  return {
    stores: figures?.stores,
    edge: { watch: figures?.edge, placeOf: telemetry?.placeOf },
    tools: toolWatch(deps.clock, figures?.tools, telemetry?.telemetry),
    begin(sources) {
      const readiness = readinessOf(sources, deps.config, sources.isDraining)
      if (figures !== null) readMetrics(figures, { ...sources, db: deps.db, catalog, readiness })
      return { probes: probesOf(deps, figures, readiness), calls: figures?.inference, traces: telemetry?.calls }
    },
    stop: async () => telemetry?.stop(),
  }
}
