import type { Binding } from '../edge.ts'

/**
 * Finds inference rows by one look-up on method and path, before express. The router of express costs half the throughput of a relay. A row that is found
 * here is served by the same `serveRow` as a row that express finds. Decision 0080 says why.
 */
export class HotRoutes {
  readonly #byMethod = new Map<string, Map<string, Binding>>()

  constructor(bindings: readonly Binding[]) {
    for (const binding of bindings) {
      const [method = '', path = ''] = binding.at.split(' ')
      if (!binding.row.inference || path.includes('{')) continue
      const byPath = this.#byMethod.get(method) ?? new Map<string, Binding>()
      this.#byMethod.set(method, byPath.set(path, binding))
    }
  }

  /** Returns the row for a method and URL with the query text, or null when express has to search. */
  match(method: string, url: string): { binding: Binding; query: string } | null {
    const mark = url.indexOf('?')
    const binding = this.#byMethod.get(method)?.get(mark < 0 ? url : url.slice(0, mark))
    return binding === undefined ? null : { binding, query: mark < 0 ? '' : url.slice(mark + 1) }
  }
}
