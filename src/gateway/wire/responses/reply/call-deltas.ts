import { isObject } from '../../../../platform/values/json.ts'
import { textOf } from '../json.ts'

/** The part of a call that one delta adds. */
export interface CallPiece {
  /** The number of the call, from 0, in the order in which the calls have begun. */
  readonly call: number
  /** null: not given. */
  readonly id: string | null
  readonly name: string
  readonly argumentsText: string
}

/**
 * Tells the tool calls of one stream apart. Providers number them in different ways. Most count with `index`. Some omit `index` or always write 0, and give a new
 * id instead. Some repeat the id in every delta. Some give the arguments as an object.
 */
export class CallSorter {
  readonly #byIndex = new Map<number, number>()
  readonly #ids: (string | null)[] = []

  /** Reads one entry of `delta.tool_calls`. Returns null for an entry that is not a call. */
  sort(delta: unknown): CallPiece | null {
    if (!isObject(delta)) return null
    const made = isObject(delta['function']) ? delta['function'] : {}
    const id = textOf(delta['id']) || null
    const name = textOf(made['name']) ?? ''
    const given = made['arguments']
    return { call: this.#callOf(delta['index'], id, name), id, name, argumentsText: isObject(given) ? JSON.stringify(given) : (textOf(given) ?? '') }
  }

  #callOf(index: unknown, id: string | null, name: string): number {
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#ids.length === 0 || name !== '' ? undefined : this.#ids.length - 1
    if (known !== undefined && (id === null || this.#ids[known] === null || this.#ids[known] === id)) {
      if (id !== null) this.#ids[known] = id
      return known
    }
    // The same index with another id is another call. An id that was seen before is the same call, at any index.
    const same = id === null ? -1 : this.#ids.indexOf(id)
    const call = same === -1 ? this.#ids.push(id) - 1 : same
    if (typeof index === 'number') this.#byIndex.set(index, call)
    return call
  }
}
