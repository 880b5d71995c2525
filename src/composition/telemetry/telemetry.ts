/** Sends traces and GenAI distributions to an OpenTelemetry collector, if one is configured. Without a collector, no OpenTelemetry package is loaded. */

import { type CallTraces, callTraces } from '../../gateway/inference/call-trace.ts'
import type { ToolWatch } from '../../mcp/tools/toolbox/tool-watch.ts'
import type { Clock } from '../../platform/clock.ts'
import { ConfigError } from '../../platform/config.ts'
import { placeOf, type Telemetry, TracePlace } from '../../platform/observe/tracing.ts'
import { version } from '../../version.ts'
import type { AppDeps } from '../deps.ts'
import type { LabelNames, ToolCounts } from './metric-counts.ts'
import type { GatewayMetrics } from './metrics.ts'

/** The telemetry of this process. */
export interface AppTelemetry {
  readonly telemetry: Telemetry
  readonly calls: CallTraces
  readonly placeOf: typeof placeOf
  /** Sends the remaining data. It waits for at most a few seconds. */
  stop(): Promise<void>
}

/** How long a stop waits for the collector. */
const lastExportMs = 3000

/** Starts the telemetry. Returns null when no endpoint is configured. Throws ConfigError. */
export async function startTelemetry({ config, clock, ids, log }: AppDeps, names: LabelNames, figures: GatewayMetrics | null): Promise<AppTelemetry | null> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = config
  if (endpoint === null) return null
  const { startOtel } = await import('../../platform/observe/telemetry-otel.ts')
  const isSent = { traces: true, metrics: true }
  const otel = startOtel({
    endpoint,
    headers: headersOf(headers?.reveal() ?? ''),
    serviceName: config.OTEL_SERVICE_NAME,
    version,
    instanceId: ids.uuidv7(clock.nowMs()),
    samplePercent: config.OTEL_TRACES_SAMPLE_PERCENT,
    onExport(signal, wasSent) {
      if (!wasSent) figures?.exportFailed(signal)
      // The log gets one line when failures begin and one when they end, not one for every batch.
      if (wasSent === isSent[signal]) return
      isSent[signal] = wasSent
      if (wasSent) log.info('telemetry export works again', { code: signal })
      // Only the origin is logged, because the URL may contain a password or a token.
      else log.warn('telemetry export failed', { code: signal, url: new URL(endpoint).origin })
    },
  })
  return {
    telemetry: otel,
    calls: callTraces({ telemetry: otel, clock, modelLabel: names.model, providerLabel: names.provider }),
    placeOf,
    async stop() {
      const isOver = new AbortController()
      await Promise.race([otel.stop(), clock.sleep(lastExportMs, isOver.signal).catch(() => {})])
      isOver.abort()
    },
  }
}

/** Reads headers in the form `name=value,name=value`, with percent-encoded values. Every OpenTelemetry program accepts this form. Throws ConfigError. */
export function headersOf(text: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const item of text.split(',')) {
    if (item.trim() === '') continue
    const mark = item.indexOf('=')
    const name = item.slice(0, Math.max(0, mark)).trim()
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) throw new ConfigError('OTEL_EXPORTER_OTLP_HEADERS must list name=value pairs, separated by commas.')
    headers[name] = decoded(item.slice(mark + 1).trim())
  }
  return headers
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** Returns a watch that counts and traces tool calls. Undefined when both are off. */
export function toolWatch(clock: Clock, tools: ToolCounts | undefined, telemetry: Telemetry | undefined): ToolWatch | undefined {
  if (tools === undefined && telemetry === undefined) return undefined
  return {
    begin(tool, { trace, requestId }) {
      const startedMs = clock.monotonicMs()
      const span =
        telemetry === undefined || trace === undefined
          ? undefined
          : telemetry.begin(`tools/call ${tool}`, 'server', trace.parent, {
              'mcp.method.name': 'tools/call',
              'gen_ai.operation.name': 'execute_tool',
              'gen_ai.tool.name': tool,
              'brigade.request_id': requestId,
            })
      if (span !== undefined && trace !== undefined) trace.traceId = span.link.traceId
      return {
        below: span === undefined ? {} : { trace: new TracePlace(span.link) },
        end(isOk) {
          tools?.ended(tool, isOk, clock.monotonicMs() - startedMs)
          span?.end(isOk ? undefined : 'tool_error')
        },
      }
    },
  }
}
