import { pino } from 'pino'
import { terminalOf } from './terminal/terminal.ts'
import { terminalSink } from './terminal/terminal-log.ts'

/**
 * The fields of a log line. A line contains only these fields, so it cannot contain prompts, bodies, headers or credentials. Other fields are dropped at
 * run time, even if a cast hides them from the type checker. Decision 0009 gives the reasons.
 */
export interface LogFields {
  readonly requestId?: string
  /** Id of the trace to which the request belongs, when traces are made. */
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
  /** Number of this process among several behind one port. */
  readonly worker?: number
  readonly job?: string
  readonly url?: string
  /** An unexpected error, logged with message and stack. It must not be built from content of users. */
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

/**
 * Returns the allowed fields. An error becomes its class, the first 300 characters of its message, and its stack frames. Its other
 * properties are dropped.
 */
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

/**
 * Returns a log that writes JSON lines to stderr, or to a sink in tests. When stderr is a terminal, it writes text for people. `level` comes from the
 * settings.
 */
export function makeLog(level: string, sink?: { write(line: string): void }): Log {
  const out = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, sink ?? ownSink())
  return {
    info: (event, fields = {}) => out.info(onlyAllowed(fields), event),
    warn: (event, fields = {}) => out.warn(onlyAllowed(fields), event),
    error: (event, fields = {}) => out.error(onlyAllowed(fields), event),
  }
}

function ownSink(): { write(line: string): void } {
  const terminal = terminalOf(process.stderr)
  return terminal === null ? pino.destination({ fd: 2, sync: false }) : terminalSink(terminal)
}

/** A log that writes nothing. */
export const silentLog: Log = { info() {}, warn() {}, error() {} }
