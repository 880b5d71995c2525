import type { IncomingMessage, ServerResponse } from 'node:http'
import type { At } from '../../platform/endpoint.ts'

/** Told of requests for the figures of the process. It must not throw. */
export interface EdgeWatch {
  /** A request on a row begins. Returns what `ended` is told again. */
  begun(): number
  /** Its response has closed: `status` is what was sent, null when the client went before there was any. */
  ended(address: { readonly at: At }, begunAt: number, status: number | null): void
  /** A request on a path that is no row: MCP, or one that is unknown. */
  strayed(path: '/mcp' | 'other', request: IncomingMessage, response: ServerResponse): void
  /** A caller has heard an error of the table. */
  refused(code: string): void
}
