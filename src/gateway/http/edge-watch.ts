import type { IncomingMessage, ServerResponse } from 'node:http'
import type { At } from '../../platform/endpoint.ts'
import type { Principal } from '../../platform/security/principal.ts'

/** A request whose response has closed. */
export interface EndedRequest {
  readonly requestId: string
  /** The caller, when it was known. */
  readonly principal: Principal | null
  /** True for probes of the process. */
  readonly isProbe: boolean
}

/** Receives the events of requests for the metrics of the process. Its methods must not throw. */
export interface EdgeWatch {
  /** A request to an endpoint of the table begins. The returned value is passed to `ended`. */
  begun(): number
  /** The response of a request has closed. `status` is the status that was sent, or null when the client disconnected first. */
  ended(address: { readonly at: At }, begunAt: number, status: number | null, request: EndedRequest): void
  /** A request came for a path outside the endpoint table: MCP, or an unknown path. */
  strayed(path: '/mcp' | 'other', request: IncomingMessage, response: ServerResponse): void
  /** A caller received an error of the error table. `requestId` is absent where the error is a part of a longer reply. */
  refused(code: string, requestId?: string): void
}
