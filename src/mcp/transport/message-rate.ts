/**
 * Counts what a POST to /mcp takes from the caller's rate: one unit for each JSON-RPC message. A tool may call endpoints of the gateway. Such a call first uses
 * the units that its POST already took, so a tool that calls one endpoint takes one unit in all. Decision 0395 says why.
 */
import { translate } from '../../gateway/http/translate.ts'
import { toGatewayError } from '../../platform/errors.ts'
import { surfaceErrorCodes } from '../surface.ts'
import { toolError } from '../tools/toolbox/tool-errors.ts'
import { messagesMax } from './rpc-body.ts'

/** The units of a POST that no call of a row has used yet. */
export class PaidUnits {
  #left = 0

  add(): void {
    this.#left++
  }

  /** Uses one unit. Returns false when none is left. */
  use(): boolean {
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}

/** The answer to a message of a batch that exceeds the caller's rate. */
export interface RefusedMessage {
  readonly jsonrpc: '2.0'
  readonly id: string | number
  readonly error: { readonly code: number; readonly message: string; readonly data: Readonly<Record<string, unknown>> }
}

/** The part of a body that may run. */
export interface PaidBody {
  readonly body: unknown
  readonly refused: readonly RefusedMessage[]
}

/**
 * Takes one unit for each message of a batch after the first. The unit of the first message was taken before the body was read. When the rate has no
 * unit left, that message and all later ones do not run. Each of them that expects an answer gets its own refusal. Throws the errors of `take` except
 * `rate_limit_exceeded`.
 */
export async function payForBatch(body: unknown, units: PaidUnits, take: () => void | Promise<void>, requestId: string): Promise<PaidBody> {
  // The SDK refuses a longer batch as a whole.
  if (!Array.isArray(body) || body.length > messagesMax) return { body, refused: [] }
  const messages: readonly unknown[] = body
  for (let at = 1; at < messages.length; at++) {
    try {
      const wait = take()
      if (wait !== undefined) await wait
      units.add()
    } catch (thrown) {
      const error = toGatewayError(translate(thrown))
      if (error.errorName !== 'rate_limit_exceeded') throw thrown
      const { text, structured } = toolError(error, requestId)
      const why = { code: surfaceErrorCodes.refused, message: text, data: structured }
      return { body: messages.slice(0, at), refused: messages.slice(at).flatMap(message => refusedOf(message, why)) }
    }
  }
  return { body, refused: [] }
}

function refusedOf(message: unknown, error: RefusedMessage['error']): RefusedMessage[] {
  if (typeof message !== 'object' || message === null || !('method' in message) || !('id' in message)) return []
  const { id } = message
  return typeof id === 'string' || typeof id === 'number' ? [{ jsonrpc: '2.0', id, error }] : []
}
