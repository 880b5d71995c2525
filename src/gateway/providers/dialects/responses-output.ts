/** How much a model has said in the events of the Responses API. */
import { isObject, type JsonObject } from '../../../platform/values/json.ts'
import { mediaCharsPerChar, outputChars } from '../../wire/output-chars.ts'

/** Characters of output in an event with a delta. Sound arrives as base64; ids, numbers and probabilities are next to the delta. */
export function eventChars({ type, delta }: JsonObject): number {
  const chars = outputChars(delta)
  return typeof type === 'string' && /audio\.delta$/.test(type) ? Math.ceil(chars / mediaCharsPerChar) : chars
}

/** Counts what items say that come whole, once: what went by of them as deltas is not counted again. */
export class ItemChars {
  readonly #heard = new Map<number, number>()

  /** The amount of the item at that place that has passed. */
  addChars(place: unknown, chars: number): void {
    if (typeof place === 'number' && (this.#heard.has(place) || this.#heard.size < itemsMax)) this.#heard.set(place, (this.#heard.get(place) ?? 0) + chars)
  }

  /** The item is whole: what of it has not gone by. */
  late(place: unknown, item: unknown): number {
    if (!isObject(item)) return 0
    const heard = typeof place === 'number' ? (this.#heard.get(place) ?? 0) : 0
    return Math.max(0, outputChars(saidIn(item)) - heard)
  }
}

/** The most open items whose passed amount is known. */
const itemsMax = 4096

/** What a tool of the provider has found is no output of the model. */
function saidIn({ content, summary, arguments: args, input, action, code }: JsonObject): JsonObject {
  return { content, summary, arguments: args, input, action, code }
}
