import type { z } from 'zod'
import type { AnyRow, Call, InputSpec } from '../../../platform/endpoint.ts'
import { toGatewayError } from '../../../platform/errors.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import type { Binding, EdgeDeps } from '../edge.ts'
import { translate } from '../translate.ts'
import { runRow } from './run-row.ts'
import { parseInput } from './validate.ts'

/** A call without HTTP. `paid` contains units of the caller's rate limit that were already counted for this call. */
export type InvokedCall = Omit<Call<Principal>, 'baseUrl'> & { readonly paid?: { use(): boolean } }

/** The field names of a schema of path, query or headers. */
type NamesOf<S> = S extends z.ZodType ? keyof z.input<S> & string : never
type BodyOf<I extends InputSpec> = I['bodyKind'] extends 'raw' | 'inference' ? Uint8Array : I['body'] extends z.ZodType ? z.input<I['body']> : undefined

/** The input of a row in the form of an HTTP request: texts by the names that the schemas of the row know, and bytes or a JSON value as the body. */
export interface RowInput<R extends AnyRow = AnyRow> {
  readonly path?: Readonly<Record<NamesOf<R['input']['path']>, string>>
  readonly query?: Readonly<Partial<Record<NamesOf<R['input']['query']>, string>>>
  readonly headers?: Readonly<Partial<Record<NamesOf<R['input']['headers']>, string>>>
  readonly body?: BodyOf<R['input']>
}

/** Calls rows without HTTP, as MCP does. The checks and their order are the same as over HTTP. */
export class RowInvoker {
  readonly #deps: EdgeDeps
  readonly #bindings: readonly Binding[]
  readonly #names: ReadonlyMap<AnyRow, string>

  constructor(deps: EdgeDeps, bindings: readonly Binding[]) {
    this.#deps = deps
    this.#bindings = bindings
    // A row comes before its twin in `bindings`, and the last entry of a Map wins. In the reversed order, the row's name wins over the twin's name, which
    // is for the console.
    this.#names = new Map(bindings.toReversed().map(({ row, name }) => [row, name]))
  }

  /** Returns an invoker that does not count calls against the caller's rate, for reads that the gateway makes by itself. */
  uncounted(): RowInvoker {
    return new RowInvoker({ ...this.#deps, takeRate: () => undefined }, this.#bindings)
  }

  /** Returns the value of the row. Throws the handler's error. Errors of the database and of calls that were cut become GatewayErrors. */
  async call<R extends AnyRow>(row: R, input: RowInput<R>, invoked: InvokedCall): Promise<unknown> {
    const { principal, paid } = invoked
    const deps = this.#deps
    try {
      return await runRow(
        {
          row,
          access: row.access,
          principal,
          admit: () => (principal.kind === 'session' || paid?.use() === true ? undefined : deps.takeRate(principal)),
          call: () => ({ ...invoked, baseUrl: deps.baseUrl() }),
          read: () => parseInput(row.input, input),
          act: () => ({ ...invoked, name: this.#names.get(row) ?? row.at, params: input.path ?? {} }),
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
