/** Endpoints for probes of a running process: liveness, readiness and metrics. */
import { z } from 'zod'
import { endpointOf, reply } from '../../../platform/endpoint.ts'

/** Whether a process can take calls, and the state of its dependencies. */
export interface Readiness {
  readonly isReady: boolean
  /** After this time a probe may check again. */
  readonly retryAfterSeconds: number
  readonly checks: {
    readonly process: 'running' | 'draining'
    /** away: the database has not replied for longer than OFFLINE_MAX, and the process serves no calls. */
    readonly database: 'ok' | 'away'
    /** full: usage that is not yet in the database has reached JOURNAL_MAX_BYTES. */
    readonly journal: 'ok' | 'full'
    /** late: agent tokens get 503 until the process reads revocations again. Keys are served. */
    readonly news: 'ok' | 'late'
  }
}

/** The data that the health endpoints return. */
export interface Probes {
  readiness(): Readiness
  /** Returns the metrics as Prometheus text. Throws `not_found` when they are off, `invalid_api_key` and `forbidden` for callers who may not read them. */
  metrics(asked: MetricsCaller): Promise<{ readonly text: string; readonly contentType: string }>
}

/** The caller of the metrics endpoint. */
export interface MetricsCaller {
  readonly authorization: string | undefined
  /** The Host header. It shows DNS rebinding: a browser page that reaches this process in that way sends another name than this machine's. */
  readonly host: string | undefined
  /** True when the request has a header that proxies add. */
  readonly isForwarded: boolean
  clientIp(): string
}

const row = endpointOf<{ probes: Probes }>()

const forwardedHeaders = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-forwarded-host', 'via'] as const
const metricsHeaders = z.object({
  authorization: z.string().optional(),
  host: z.string().optional(),
  'x-forwarded-for': z.string().optional(),
  forwarded: z.string().optional(),
  'x-real-ip': z.string().optional(),
  'x-forwarded-host': z.string().optional(),
  via: z.string().optional(),
})

const uncached = { 'cache-control': 'no-store' }

export const healthEndpoints = {
  livez: row({
    at: 'GET /livez',
    auth: 'public',
    access: {},
    tag: 'operations',
    summary: 'This process answers: 200 as long as it runs, also while it drains and while the database is away. Restart it when this fails.',
    input: {},
    output: z.object({ status: z.literal('ok') }),
    errors: [],
    always: true,
    handle: () => reply.json({ status: 'ok' }, 200, uncached),
  }),
  readyz: row({
    at: 'GET /readyz',
    auth: 'public',
    access: {},
    tag: 'operations',
    summary: 'Whether this process can take calls: 200, or 503 with retry-after while it drains or cannot serve. For load balancers.',
    input: {},
    output: z.object({
      status: z.enum(['ready', 'not_ready']),
      checks: z.object({
        process: z.enum(['running', 'draining']),
        database: z.enum(['ok', 'away']),
        journal: z.enum(['ok', 'full']),
        news: z.enum(['ok', 'late']),
      }),
    }),
    errors: [],
    always: true,
    handle({ probes }) {
      const { isReady, checks, retryAfterSeconds } = probes.readiness()
      if (isReady) return reply.json({ status: 'ready', checks }, 200, uncached)
      return reply.json({ status: 'not_ready', checks }, 503, { ...uncached, 'retry-after': String(retryAfterSeconds) })
    },
  }),
  metrics: row({
    at: 'GET /metrics',
    auth: 'public',
    access: {},
    tag: 'operations',
    summary: 'Figures of this process for Prometheus: with METRICS_TOKEN as bearer token, without that setting from this machine only.',
    input: { headers: metricsHeaders },
    output: { media: 'text/plain' },
    errors: ['invalid_api_key', 'forbidden', 'not_found'],
    always: true,
    async handle({ probes }, { headers }, call) {
      const { text, contentType } = await probes.metrics({
        authorization: headers.authorization,
        host: headers.host,
        isForwarded: forwardedHeaders.some(name => headers[name] !== undefined),
        clientIp: () => call.clientIp(),
      })
      return reply.text(text, contentType, uncached)
    },
  }),
}
