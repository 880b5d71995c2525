import type { AnyRow, Call } from '../../../platform/endpoint.ts'
import { toGatewayError } from '../../../platform/errors.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import type { Binding, EdgeDeps } from '../edge.ts'
import { translate } from '../translate.ts'
import { runRow } from './run-row.ts'
import { parseInput, type RawInput } from './validate.ts'

/** A call without HTTP. `paid` counts units of the caller's rate that were already taken for it. */
export type InvokedCall = Omit<Call<Principal>, 'baseUrl'> & { readonly paid?: { use(): boolean } }

/** Calls a row without HTTP, as MCP tools do. The checks and their order are the same as over HTTP. */
export type Invoke = (row: AnyRow, raw: RawInput, call: InvokedCall) => Promise<unknown>

/** Makes the invoker over the dependencies of the HTTP edge. The invoker throws GatewayError (database and cut errors translated) or the handler's error. */
export function makeInvoke(deps: EdgeDeps, bindings: readonly Binding[]): Invoke {
  // A row comes before its twin in `bindings`, and the twin's name is for the console. The reversed order makes the row's name win.
  const names = new Map(bindings.toReversed().map(({ row, name }) => [row, name]))
  return async (row, raw, invoked) => {
    const { principal, paid } = invoked
    try {
      return await runRow(
        {
          row,
          access: row.access,
          principal,
          admit: () => (principal.kind === 'session' || paid?.use() === true ? undefined : deps.takeRate(principal)),
          call: () => ({ ...invoked, baseUrl: deps.baseUrl() }),
          read: () => parseInput(row.input, raw),
          act: () => ({ ...invoked, name: names.get(row) ?? row.at, params: raw.path ?? {} }),
        },
        deps,
      )
    } catch (thrown) {
      const refusal = translate(thrown)
      deps.watch?.refused(toGatewayError(refusal).code)
      throw refusal
    }
  }
}
