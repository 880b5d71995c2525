import type { IncomingMessage, ServerResponse } from 'node:http'
import type { At } from '../../platform/endpoint.ts'

/** Receives the events of requests for the metrics of the process. Its methods must not throw. */
export interface EdgeWatch {
  /** A request on a row begins. The returned value is passed to `ended`. */
  begun(): number
  /** The response of a request has closed. `status` is the status that was sent, or null when the client left before. */
  ended(address: { readonly at: At }, begunAt: number, status: number | null): void
  /** A request came on a path that is no row: MCP, or an unknown path. */
  strayed(path: '/mcp' | 'other', request: IncomingMessage, response: ServerResponse): void
  /** A caller received an error of the error table. */
  refused(code: string): void
}
