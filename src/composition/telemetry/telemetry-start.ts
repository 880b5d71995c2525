/** Who watches this process: figures, traces and probes, each as far as it is switched on. Off costs nothing on the way of a call. */

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

/** What services are watched by. */
export interface ServiceWatch {
  readonly probes: Probes
  readonly calls: CallWatch | undefined
  readonly traces: CallTraces | undefined
}

/** What begins before the domains are made. */
export interface ProcessWatch {
  readonly stores: StoreWatch | undefined
  readonly edge: Pick<EdgeDeps, 'watch' | 'placeOf'>
  readonly tools: ToolWatch | undefined
  /** The rest, when there is something to read. */
  begin(sources: Omit<MetricSources, 'db' | 'catalog' | 'readiness'> & { isDraining(): boolean }): ServiceWatch
  /** Sends what is left of traces. */
  stop(): Promise<void>
}

/** Makes counters and, with a collector, traces. `catalog` is asked when there are calls. Throws ConfigError. */
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
