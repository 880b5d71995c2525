/** Calls endpoint rows to get the data of resources and prompts. Failures of these calls become errors of the protocol. */
import type { RowInput, RowInvoker } from '../gateway/http/rows/row-invoker.ts'
import { translate } from '../gateway/http/translate.ts'
import type { AnyRow } from '../platform/endpoint.ts'
import { type GatewayError, toGatewayError } from '../platform/errors.ts'
import { abortSignalOf } from '../platform/loop/cancellation.ts'
import type { Log } from '../platform/observe/log.ts'
import { mayCall } from '../platform/security/principal.ts'
import { SurfaceError, type surfaceErrorCodes } from './surface.ts'
import { jsonOf, plainJson, type ToolCall } from './tools/toolbox/tool.ts'
import { toolError } from './tools/toolbox/tool-errors.ts'

/** Reads rows for one caller, with the caller's rights. */
export class RowReader {
  readonly call: ToolCall
  readonly #invoker: RowInvoker
  readonly #log: Log

  constructor(invoker: RowInvoker, call: ToolCall, log: Log) {
    this.#invoker = invoker
    this.call = call
    this.#log = log
  }

  /** Returns whether the caller may call the row. */
  may(row: AnyRow): boolean {
    return mayCall(this.call.principal, row.access).ok
  }

  /** Calls the row and returns its value. Throws SurfaceError. When the row returns 404, the error is `notThere` with the URI. */
  async value<R extends AnyRow>(row: R, input: RowInput<R>, signal: AbortSignal, uri?: string): Promise<unknown> {
    try {
      return await this.#invoker.call(row, input, { ...this.call, signal: AbortSignal.any([signal, abortSignalOf(this.call.signal)]) })
    } catch (thrown) {
      // The client does not wait for this answer any more. An abort is not logged as a failure.
      throw signal.aborted ? new SurfaceError('refused', 'The client cancelled this call.') : this.failure(thrown, row.at, uri)
    }
  }

  /** Runs work that uses several rows. Failures of the work itself become errors of the protocol too. Throws SurfaceError. */
  async guarded<T>(place: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (thrown) {
      throw this.failure(thrown, place)
    }
  }

  /** Returns the value of the row as plain data. Throws SurfaceError. */
  async json<R extends AnyRow>(row: R, input: RowInput<R>, signal: AbortSignal, uri?: string): Promise<unknown> {
    return plainJson(jsonOf(await this.value(row, input, signal, uri)))
  }

  /** Converts a failure into an error of the protocol. The error has the message and fields of a failed tool. A fault of the gateway itself is logged. */
  failure(thrown: unknown, place: string, uri?: string): SurfaceError {
    if (thrown instanceof SurfaceError) return thrown
    const error = toGatewayError(translate(thrown))
    // Clients recognise a missing resource when the error data contains only the URI.
    if (error.errorName === 'not_found' && uri !== undefined) return notThere(uri)
    const { requestId, principal } = this.call
    if (error.errorName === 'internal_error')
      this.#log.error('mcp request failed', { requestId, orgId: principal.orgId, path: `mcp:${place}`, code: error.code, error: error.cause })
    const { text, structured } = toolError(error, requestId)
    return new SurfaceError(kindOf(error), text, structured)
  }
}

/** Returns the error for a resource that does not exist for this caller. */
export function notThere(uri: string): SurfaceError {
  return new SurfaceError('notThere', 'There is no such resource.', { uri })
}

function kindOf(error: GatewayError): keyof typeof surfaceErrorCodes {
  if (error.errorName === 'internal_error') return 'internal'
  return error.status === 400 || error.status === 403 || error.status === 404 || error.status === 413 ? 'badParams' : 'refused'
}
