import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Attributes = Readonly<Record<string, unknown>>

/** A span as a collector receives it. */
export interface ReceivedSpan {
  readonly name: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly traceState: string
  readonly isError: boolean
  readonly attributes: Attributes
}

/** A point of a histogram. */
export interface ReceivedPoint {
  readonly metric: string
  readonly unit: string
  readonly count: number
  readonly sum: number
  readonly bounds: readonly number[]
  readonly attributes: Attributes
}

/** A fake OpenTelemetry collector that accepts OTLP over HTTP in JSON. */
export interface OtlpCollector {
  readonly url: string
  readonly spans: ReceivedSpan[]
  readonly points: ReceivedPoint[]
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, unknown>>[]
  readonly resources: Attributes[]
  /** Returns all received bytes as text. */
  text(): string
  /** Answers every request with this status from now on. */
  answer(status: number): void
  close(): Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: JSON of a protocol whose types are in packages that only the gateway imports.
type Json = any

const plain = (value: Json): unknown =>
  value.stringValue ?? value.boolValue ?? value.doubleValue ?? (value.intValue === undefined ? value.arrayValue?.values?.map(plain) : Number(value.intValue))
const attributesOf = (list: Json): Attributes => Object.fromEntries((list ?? []).map((item: Json) => [item.key, plain(item.value)]))

/** Starts a collector on a loopback port. */
export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: ReceivedSpan[] = []
  const points: ReceivedPoint[] = []
  const headers: Record<string, unknown>[] = []
  const resources: Attributes[] = []
  const bodies: string[] = []
  let status = 200
  const take = (body: Json): void => {
    for (const { resource, scopeSpans } of body.resourceSpans ?? []) {
      resources.push(attributesOf(resource?.attributes))
      for (const scope of scopeSpans)
        for (const span of scope.spans)
          spans.push({
            ...span,
            parentSpanId: span.parentSpanId ?? '',
            traceState: span.traceState ?? '',
            isError: span.status?.code === 2,
            attributes: attributesOf(span.attributes),
          })
    }
    for (const { scopeMetrics } of body.resourceMetrics ?? [])
      for (const scope of scopeMetrics)
        for (const { name, unit, histogram } of scope.metrics)
          for (const point of histogram?.dataPoints ?? [])
            points.push({
              metric: name,
              unit,
              count: Number(point.count),
              sum: point.sum,
              bounds: point.explicitBounds,
              attributes: attributesOf(point.attributes),
            })
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    bodies.push(`${request.url}\n${text}`)
    headers.push(request.headers)
    if (status === 200) take(JSON.parse(text))
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    points,
    headers,
    resources,
    text: () => bodies.join('\n'),
    answer(next) {
      status = next
    },
    close: () =>
      new Promise(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}
