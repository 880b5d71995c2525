import type { AnyRow, Call } from '../../platform/endpoint.ts'
import { fail, toGatewayError } from '../../platform/errors.ts'
import { mayCall, type Principal } from '../../platform/principal.ts'
import { isAct, performAct, recordForbidden } from './acts.ts'
import type { Binding, EdgeDeps } from './edge.ts'
import { translate } from './translate.ts'
import { parseInput, type RawInput } from './validate.ts'

/** Calls a row without HTTP, as an MCP tool does: the same rate, rule, validation and handler. */
export type Invoke = (row: AnyRow, raw: RawInput, call: Omit<Call<Principal>, 'baseUrl'>) => Promise<unknown>

/** Makes the invoker over the same dependencies as the HTTP edge. It throws GatewayError (database and cut errors translated) or what the handler threw. */
export function makeInvoke(deps: EdgeDeps, bindings: readonly Binding[]): Invoke {
  // A row comes before its twin, whose name is for the console.
  const names = new Map(bindings.toReversed().map(({ row, name }) => [row, name]))
  return async (row, raw, call) => {
    const act = isAct(row) ? { ...call, name: names.get(row) ?? row.at, params: raw.path ?? {} } : null
    try {
      if (call.principal.kind !== 'session') {
        const rate = deps.takeRate(call.principal)
        if (rate !== undefined) await rate
      }
      const verdict = mayCall(call.principal, row.access)
      if (!verdict.ok) {
        if (act !== null) await recordForbidden(act, deps)
        throw fail('forbidden', { message: verdict.why })
      }
      row.requires?.(deps.services)
      const input = parseInput(row.input, raw)
      const handle = (): unknown => row.handle(deps.services, input, { ...call, baseUrl: deps.baseUrl() })
      return await (act === null ? handle() : performAct(act, deps, handle))
    } catch (thrown) {
      const refusal = translate(thrown)
      deps.watch?.refused(toGatewayError(refusal).code)
      throw refusal
    }
  }
}
