/**
 * The tracing interface for the rest of the gateway: spans with attributes, and a call's place in a trace. Only telemetry-otel.ts knows OpenTelemetry,
 * and without an endpoint for it no traces exist. Decision 0355 says why.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** A span as its children and other processes name it. */
export interface SpanLink {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
  /** The header `tracestate` as it came. */
  readonly tracestate: string | null
}

export type Attributes = Readonly<Record<string, string | number | boolean | string[]>>

export interface Span {
  readonly link: SpanLink
  rename(name: string): void
  set(attributes: Attributes): void
  /** Ends it, once. `errorType` says that it has failed, and how, in one word. */
  end(errorType?: string): void
}

/** Notes one value. */
export type Recorder = (value: number, attributes: Attributes) => void

/** Makes spans and distributions for a collector. Nothing of it throws or waits. */
export interface Telemetry {
  /** A span below `parent`; null: the root of a new trace, which is sampled by the setting. */
  begin(name: string, kind: 'server' | 'client' | 'internal', parent: SpanLink | null, attributes: Attributes): Span
  histogram(name: string, unit: string, description: string, bounds: readonly number[]): Recorder
}

/** The place of one call in traces: its parent and, after its span has begun, its trace. The edge makes it, the log names its trace. */
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

/** Reads a request's place in a trace from its headers `traceparent` and `tracestate` (W3C Trace Context). Malformed headers are ignored. */
export function placeOf(headers: IncomingHttpHeaders): TracePlace {
  const { traceparent, tracestate } = headers
  const found = typeof traceparent === 'string' ? traceparentForm.exec(traceparent.trim()) : null
  const [, version = 'ff', traceId = '', spanId = '', flags = '0', more] = found ?? []
  if (version === 'ff' || (version === '00' && more !== undefined) || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return new TracePlace(null)
  const state = Array.isArray(tracestate) ? tracestate.join(',') : tracestate
  const isKept = typeof state === 'string' && state !== '' && state.length <= tracestateMaxChars
  return new TracePlace({ traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1, tracestate: isKept ? state : null })
}

/** The fields of a log line that name the trace of a call. */
export const traceFields = (place: TracePlace | undefined): { readonly traceId?: string } =>
  place === undefined || place.traceId === null ? {} : { traceId: place.traceId }
