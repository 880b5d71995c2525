/**
 * Spans and distributions with OpenTelemetry, sent over OTLP/HTTP. Only this file imports OpenTelemetry, and it is loaded only when an
 * endpoint is configured. It registers nothing globally: the caller passes the parent of each span.
 */
import { createTraceState, type Histogram, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, type Tracer, trace } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader, type PushMetricExporter } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, type SpanExporter, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base'
import type { Attributes, Recorder, Span, SpanLink, Telemetry } from './tracing.ts'

export interface OtelOptions {
  /** Base URL of the collector. `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly version: string
  /** Distinguishes this process from the other processes of the installation. */
  readonly instanceId: string
  /** How many of the traces that begin in this process are sampled, in percent, 0 to 100. */
  readonly samplePercent: number
  /** Is called after an export fails or succeeds. */
  onExport(signal: 'traces' | 'metrics', isSent: boolean): void
}

/** Telemetry that can be stopped. */
export interface OtelTelemetry extends Telemetry {
  /** Sends the remaining data. The caller must set a time limit, because the collector may be slow. */
  stop(): Promise<void>
}

/** Maximum number of spans that wait to be sent. Further spans are dropped, so that an unavailable collector does not use up memory. */
const queueMax = 4096
const batchMax = 512
const batchDelayMs = 500
const exportTimeoutMs = 10_000
const metricsEveryMs = 60_000
/** Name of the instrumentation scope of our spans and metrics. */
const scope = 'brigade'

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const

/** Starts telemetry. */
export function startOtel(options: OtelOptions): OtelTelemetry {
  const { endpoint, headers, samplePercent, version } = options
  const resource = resourceFromAttributes({
    'service.name': options.serviceName,
    'service.version': version,
    'service.instance.id': options.instanceId,
  })
  const to = (path: string) => ({ url: `${endpoint}${path}`, headers: { ...headers }, timeoutMillis: exportTimeoutMs })
  const spans = watched<SpanExporter>(new OTLPTraceExporter(to('/v1/traces')), isSent => options.onExport('traces', isSent))
  const values = watched<PushMetricExporter>(new OTLPMetricExporter(to('/v1/metrics')), isSent => options.onExport('metrics', isSent))
  const tracers = new BasicTracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplePercent / 100) }),
    spanProcessors: [
      new BatchSpanProcessor(spans, {
        maxQueueSize: queueMax,
        maxExportBatchSize: batchMax,
        scheduledDelayMillis: batchDelayMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  })
  const meters = new MeterProvider({
    resource,
    readers: [new PeriodicExportingMetricReader({ exporter: values, exportIntervalMillis: metricsEveryMs, exportTimeoutMillis: exportTimeoutMs })],
  })
  const tracer = tracers.getTracer(scope, version)
  const meter = meters.getMeter(scope, version)
  return {
    begin: (name, kind, parent, attributes) => beginSpan(tracer, name, kinds[kind], parent, attributes),
    histogram: (name, unit, description, bounds) =>
      recorder(meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...bounds] } })),
    async stop() {
      await Promise.allSettled([tracers.shutdown(), meters.shutdown()])
    },
  }
}

const recorder =
  (histogram: Histogram): Recorder =>
  (value, attributes) =>
    histogram.record(value, attributes)

function beginSpan(tracer: Tracer, name: string, kind: SpanKind, parent: SpanLink | null, attributes: Attributes): Span {
  const span = tracer.startSpan(name, { kind, attributes }, parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(parent)))
  const { traceId, spanId, traceFlags } = span.spanContext()
  return {
    link: { traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0, tracestate: parent?.tracestate ?? null },
    rename: changed => void span.updateName(changed),
    set: more => void span.setAttributes(more),
    end(errorType) {
      if (errorType !== undefined) span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    },
  }
}

function contextOf({ traceId, spanId, isSampled, tracestate }: SpanLink) {
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return { traceId, spanId, traceFlags, isRemote: true, ...(tracestate === null ? {} : { traceState: createTraceState(tracestate) }) }
}

/** Returns the exporter and reports the result of each export. */
function watched<E extends SpanExporter | PushMetricExporter>(exporter: E, told: (isSent: boolean) => void): E {
  const send = exporter.export.bind(exporter) as (items: never, done: (result: { code: number }) => void) => void
  exporter.export = ((items: never, done: (result: { code: number }) => void) =>
    send(items, result => {
      told(result.code === 0)
      done(result)
    })) as E['export']
  return exporter
}
