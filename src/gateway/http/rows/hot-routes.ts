import type { Binding } from '../edge.ts'

/**
 * Finds inference rows by one look-up on method and path, before express. The router of express costs half the throughput of a relay. A row that is found
 * here is served by the same `serveRow` as a row that express finds. Decision 0080 says why.
 */
export class HotRoutes {
  readonly #byMethod = new Map<string, Map<string, Binding>>()
  /** Rows whose path ends with one parameter and an action (`{model+}:generateContent`), by method, the text before the parameter, and the action. */
  readonly #actions = new Map<string, Binding>()
  readonly #prefixes = new Set<string>()

  constructor(bindings: readonly Binding[]) {
    for (const binding of bindings) {
      const [method = '', path = ''] = binding.at.split(' ')
      if (!binding.row.inference) continue
      const action = actionPath.exec(path)
      if (action !== null) {
        const [, prefix = '', , name = ''] = action
        this.#prefixes.add(prefix)
        this.#actions.set(`${method} ${prefix} ${name}`, binding)
      }
      if (path.includes('{')) continue
      const byPath = this.#byMethod.get(method) ?? new Map<string, Binding>()
      this.#byMethod.set(method, byPath.set(path, binding))
    }
  }

  /** Returns the row for a method and URL with the query text, or null when express has to search. */
  match(method: string, url: string): Match | null {
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    const query = mark < 0 ? '' : url.slice(mark + 1)
    const binding = this.#byMethod.get(method)?.get(path)
    return binding === undefined ? this.#action(method, path, query) : { binding, params: noParams, query }
  }

  #action(method: string, path: string, query: string): Match | null {
    for (const prefix of this.#prefixes) {
      if (!path.startsWith(prefix)) continue
      const colon = path.lastIndexOf(':')
      const binding = colon <= prefix.length ? undefined : this.#actions.get(`${method} ${prefix} ${path.slice(colon + 1)}`)
      const name = /\{(\w+)\+\}/.exec(binding?.at ?? '')?.[1]
      if (binding !== undefined && name !== undefined) return { binding, params: { [name]: decodeURIComponent(path.slice(prefix.length, colon)) }, query }
    }
    return null
  }
}

/** A row that was found, with the parameters of its path. */
interface Match {
  readonly binding: Binding
  readonly params: Readonly<Record<string, string>>
  readonly query: string
}

const noParams: Readonly<Record<string, string>> = Object.freeze({})
const actionPath = /^([^{]*)\{(\w+)\+\}:(\w+)$/
