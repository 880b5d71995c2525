import { pino } from 'pino'

/**
 * The log. A line can carry the fields of `LogFields` and nothing else: prompts, bodies, headers and credentials have no way in.
 * Unknown fields are dropped at run time too, so that a cast does not open a hole. Decision 0009 says why.
 */
export interface LogFields {
  readonly requestId?: string
  /** Of the trace that the request is part of, when traces are made. */
  readonly traceId?: string
  readonly orgId?: number
  readonly keyId?: number
  readonly agentId?: number
  readonly provider?: string
  readonly model?: string
  readonly method?: string
  readonly path?: string
  readonly status?: number
  readonly code?: string
  readonly latencyMs?: number
  readonly count?: number
  readonly bytes?: number
  /** Id of a payment at the payment provider. */
  readonly paymentId?: string
  readonly processId?: string
  /** Number of one of several processes behind one port. */
  readonly worker?: number
  readonly job?: string
  readonly url?: string
  /** Message and stack of an unexpected error; must not be built from user content. */
  readonly error?: unknown
}

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

const allowed = [
  'requestId',
  'traceId',
  'orgId',
  'keyId',
  'agentId',
  'provider',
  'model',
  'method',
  'path',
  'status',
  'code',
  'latencyMs',
  'count',
  'bytes',
  'paymentId',
  'processId',
  'worker',
  'job',
  'url',
] as const

/** Keeps the allow-listed fields; an error becomes its class, message (first 300 characters) and stack frames, never its own properties. */
export function onlyAllowed(fields: LogFields): Record<string, unknown> {
  const line: Record<string, unknown> = {}
  for (const name of allowed) if (fields[name] !== undefined) line[name] = fields[name]
  const thrown = fields.error
  if (thrown instanceof Error) {
    line['error'] = `${thrown.name}: ${thrown.message.slice(0, 300)}`
    line['stack'] = (thrown.stack ?? '')
      .split('\n')
      .filter(frame => frame.trimStart().startsWith('at '))
      .slice(0, 12)
      .join('\n')
  } else if (thrown !== undefined) line['error'] = typeof thrown
  return line
}

/** A log that writes JSON lines to stderr (level from config), or to a sink in tests. */
export function makeLog(level: string, sink?: { write(line: string): void }): Log {
  const out = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, sink ?? pino.destination({ fd: 2, sync: false }))
  return {
    info: (event, fields = {}) => out.info(onlyAllowed(fields), event),
    warn: (event, fields = {}) => out.warn(onlyAllowed(fields), event),
    error: (event, fields = {}) => out.error(onlyAllowed(fields), event),
  }
}

/** A log that says nothing. */
export const silentLog: Log = { info() {}, warn() {}, error() {} }
