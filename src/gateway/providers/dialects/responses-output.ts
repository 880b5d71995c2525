/** Counts the output of a model in the events of the Responses API. */
import { isObject, type JsonObject } from '../../../platform/values/json.ts'
import { mediaCharsPerChar, outputChars } from '../../wire/output-chars.ts'

/**
 * Returns the characters of output in an event with a delta. Sound arrives as base64. Ids, numbers and probabilities are outside of the delta and do not count.
 */
export function eventChars({ type, delta }: JsonObject): number {
  const chars = outputChars(delta)
  return typeof type === 'string' && /audio\.delta$/.test(type) ? Math.ceil(chars / mediaCharsPerChar) : chars
}

/** Counts the output of items that come complete. Output that already passed as deltas is not counted again. */
export class ItemChars {
  readonly #heard = new Map<number, number>()

  /** Adds characters that passed for the item at that index. */
  addChars(place: unknown, chars: number): void {
    if (typeof place === 'number' && (this.#heard.has(place) || this.#heard.size < itemsMax)) this.#heard.set(place, (this.#heard.get(place) ?? 0) + chars)
  }

  /** Returns the characters of a complete item that have not passed yet. */
  late(place: unknown, item: unknown): number {
    if (!isObject(item)) return 0
    const heard = typeof place === 'number' ? (this.#heard.get(place) ?? 0) : 0
    return Math.max(0, outputChars(saidIn(item)) - heard)
  }
}

/** Most open items whose passed characters are counted. */
const itemsMax = 4096

/** Returns the output of an item. Results of a provider's tool are not output of the model. */
function saidIn({ name, content, summary, arguments: args, input, action, code }: JsonObject): JsonObject {
  return { name, content, summary, arguments: args, input, action, code }
}
