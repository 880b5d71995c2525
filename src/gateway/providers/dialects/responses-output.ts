/** Counts the output of a model in the events of the Responses API. */
import { isObject, type JsonObject } from '../../../platform/values/json.ts'
import { mediaCharsPerChar, outputChars } from '../../wire/output-chars.ts'

/**
 * Returns the number of output characters in an event with a delta. Audio arrives as base64. Ids, numbers and probabilities are outside the delta and
 * do not count.
 */
export function eventChars({ type, delta }: JsonObject): number {
  const chars = outputChars(delta)
  return typeof type === 'string' && /audio\.delta$/.test(type) ? Math.ceil(chars / mediaCharsPerChar) : chars
}

/** Counts the output of items that arrive complete. Output that already arrived in deltas is not counted again. */
export class ItemChars {
  readonly #heard = new Map<number, number>()

  /** Adds characters that arrived in a delta for the item at that index. */
  addChars(place: unknown, chars: number): void {
    if (typeof place === 'number' && (this.#heard.has(place) || this.#heard.size < itemsMax)) this.#heard.set(place, (this.#heard.get(place) ?? 0) + chars)
  }

  /** Returns the number of characters of a complete item that did not arrive in deltas. */
  late(place: unknown, item: unknown): number {
    if (!isObject(item)) return 0
    const heard = typeof place === 'number' ? (this.#heard.get(place) ?? 0) : 0
    return Math.max(0, outputChars(saidIn(item)) - heard)
  }
}

/** Maximum number of items whose characters are counted. */
const itemsMax = 4096

/** Returns the parts of an item that are output. Results of a provider's tool are not output of the model. */
function saidIn({ name, content, summary, arguments: args, input, action, code }: JsonObject): JsonObject {
  return { name, content, summary, arguments: args, input, action, code }
}
