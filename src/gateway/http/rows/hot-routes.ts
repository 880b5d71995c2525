import type { Binding } from '../edge.ts'

/**
 * The inference rows, matched by one look-up on method and path in front of express: express's router costs half the throughput of
 * a relay. Same rows, same `serveRow`. Decision 0080 says why.
 */
export class HotRoutes {
  readonly #byPath = new Map<string, Binding>()

  constructor(bindings: readonly Binding[]) {
    for (const binding of bindings) {
      const [method = '', path = ''] = binding.at.split(' ')
      if (binding.row.inference && !path.includes('{')) this.#byPath.set(`${method} ${path}`, binding)
    }
  }

  /** The row for this method and URL, with the query text; null when express has to look. */
  match(method: string, url: string): { binding: Binding; query: string } | null {
    const mark = url.indexOf('?')
    const binding = this.#byPath.get(`${method} ${mark < 0 ? url : url.slice(0, mark)}`)
    return binding === undefined ? null : { binding, query: mark < 0 ? '' : url.slice(mark + 1) }
  }
}
