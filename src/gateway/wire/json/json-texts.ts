/**
 * Parses strings in a body that contain JSON: arguments of tool calls, results of tools, packed thinking. The bounds of the body count such a string as one
 * value, whatever it contains. So these texts have their own bounds here. Decision 0413 gives the reasons.
 */
import { GatewayError } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import { inferenceBounds, JsonScan } from './json-scan.ts'

/** The first texts, up to this number of characters together, are parsed without a scan, because they cannot contain many values. */
const freeCharsMax = 4096
const holder = 'JSON texts in the body, such as the arguments of all tool calls together,'

/** The texts of one body or reply. One bound applies to the values of all of them together, because these values are kept until the body is written. */
export class JsonTexts {
  #freeChars = freeCharsMax
  #values = 0

  /** Parses a text. Throws `bad_request` that names the bound, and SyntaxError. */
  value(text: string): unknown {
    if (text.length <= this.#freeChars) this.#freeChars -= text.length
    else this.#look(text)
    return JSON.parse(text)
  }

  /** Parses a text that is a JSON object. Returns null if the text is not JSON, is something other than an object, or is beyond the bounds. */
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

/** Parses one text from outside that is a JSON object. Returns null if the text is not JSON, is something other than an object, or is beyond the bounds. */
export const boundedObject = (text: string): Record<string, unknown> | null => new JsonTexts().object(text)
