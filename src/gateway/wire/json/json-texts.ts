/**
 * JSON as text inside a body: arguments of tool calls, results of tools, packed thinking. The bounds of the body count such a text as one value,
 * whatever it holds, so it has its own bounds here. Decision 0413 says why.
 */
import { GatewayError } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import { inferenceBounds, JsonScan } from './json-scan.ts'

/** All texts together up to this many characters are parsed without a scan: they cannot hold much. */
const freeCharsMax = 4096
const holder = 'JSON texts in the body, such as the arguments of all tool calls together,'

/** The texts of one body or reply. They share one bound of values, because what they hold is kept until the body is written. */
export class JsonTexts {
  #freeChars = freeCharsMax
  #values = 0

  /** The value of a text. Throws `bad_request` that names the bound, and SyntaxError. */
  value(text: string): unknown {
    if (text.length <= this.#freeChars) this.#freeChars -= text.length
    else this.#look(text)
    return JSON.parse(text)
  }

  /** The object that a text holds. Null for a text that is no JSON, holds something else, or is beyond the bounds. */
  object(text: string): Record<string, unknown> | null {
    try {
      const value = this.value(text)
      return isObject(value) ? value : null
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof GatewayError) return null
      throw error
    }
  }

  #look(text: string): void {
    const bytes = Buffer.from(text)
    const scan = new JsonScan(bytes, inferenceBounds, { holder, valuesBefore: this.#values })
    scan.to(bytes.length)
    this.#values = scan.values
  }
}

/** The object that one text holds, which came from outside. Null for a text that is no JSON, holds something else, or is beyond the bounds. */
export const boundedObject = (text: string): Record<string, unknown> | null => new JsonTexts().object(text)
