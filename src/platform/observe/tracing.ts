/**
 * The tracing interface for the rest of the gateway: spans with attributes, and the place of a call in a trace. Only telemetry-otel.ts
 * knows OpenTelemetry. Without a configured endpoint, no spans are made. Decision 0355 gives the reasons.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** The identity of a span for its children and for other processes. */
export interface SpanLink {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
  /** The header `tracestate` as it arrived. */
  readonly tracestate: string | null
}

export type Attributes = Readonly<Record<string, string | number | boolean | string[]>>

export interface Span {
  readonly link: SpanLink
  rename(name: string): void
  set(attributes: Attributes): void
  /** Ends the span, once. `errorType` means that it failed, and names the kind of error in one word. */
  end(errorType?: string): void
}

/** Records one value. */
export type Recorder = (value: number, attributes: Attributes) => void

/** Makes spans and distributions for a collector. No function throws or waits. */
export interface Telemetry {
  /** Begins a span below `parent`. With null it begins a new trace, which is sampled according to the setting. */
  begin(name: string, kind: 'server' | 'client' | 'internal', parent: SpanLink | null, attributes: Attributes): Span
  histogram(name: string, unit: string, description: string, bounds: readonly number[]): Recorder
}

/**
 * The place of one call in traces: its parent, and its own trace after its span has begun. The HTTP edge makes the place, and log lines contain its trace
 * id.
 */
export class TracePlace {
  readonly parent: SpanLink | null
  traceId: string | null

  constructor(parent: SpanLink | null) {
    this.parent = parent
    this.traceId = parent?.traceId ?? null
  }
}

const traceparentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const tracestateMaxChars = 512

/**
 * Reads a request's place in a trace from the headers `traceparent` and `tracestate` (W3C Trace Context). Malformed headers are ignored.
 */
export function placeOf(headers: IncomingHttpHeaders): TracePlace {
  const { traceparent, tracestate } = headers
  const found = typeof traceparent === 'string' ? traceparentForm.exec(traceparent.trim()) : null
  const [, version = 'ff', traceId = '', spanId = '', flags = '0', more] = found ?? []
  if (version === 'ff' || (version === '00' && more !== undefined) || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return new TracePlace(null)
  const state = Array.isArray(tracestate) ? tracestate.join(',') : tracestate
  const isKept = typeof state === 'string' && state !== '' && state.length <= tracestateMaxChars
  return new TracePlace({ traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1, tracestate: isKept ? state : null })
}

/** Returns the log fields that name the trace of a call. */
export const traceFields = (place: TracePlace | undefined): { readonly traceId?: string } =>
  place === undefined || place.traceId === null ? {} : { traceId: place.traceId }
