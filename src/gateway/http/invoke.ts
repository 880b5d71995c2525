import type { AnyRow, Call } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { mayCall, type Principal } from '../../platform/principal.ts'
import { type EdgeDeps, translate } from './serve-row.ts'
import { parseInput, type RawInput } from './validate.ts'

/** Calls a row without HTTP, as an MCP tool does: the same rate, rule, validation and handler. */
export type Invoke = (row: AnyRow, raw: RawInput, call: Omit<Call<Principal>, 'baseUrl'>) => Promise<unknown>

/** Makes the invoker over the same dependencies as the HTTP edge. It throws GatewayError (database and cut errors translated) or what the handler threw. */
export function makeInvoke(deps: EdgeDeps): Invoke {
  return async (row, raw, call) => {
    try {
      if (call.principal.kind !== 'session') {
        const rate = deps.takeRate(call.principal)
        if (rate !== undefined) await rate
      }
      const verdict = mayCall(call.principal, row.access)
      if (!verdict.ok) throw fail('forbidden', { message: verdict.why })
      row.requires?.(deps.services)
      return await row.handle(deps.services, parseInput(row.input, raw), { ...call, baseUrl: deps.baseUrl() })
    } catch (thrown) {
      throw translate(thrown)
    }
  }
}
