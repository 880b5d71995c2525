/**
 * Reads chunks that differ from an earlier one in their text alone, without parsing them. Most chunks of a stream do: a provider repeats the id, the model
 * and the frame of each piece of text.
 */
import { isObject } from '../../../../platform/values/json.ts'

/** After so many chunks in a row that were not recognised, nothing more is compared: some providers add something random to each. */
const missesMax = 8

const contentKey = '"content"'
const contentStart = '"content":"'
/** What a text may not have in it, so that it means what is written. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON does not allow them in a text
const needsParser = /["\\\u0000-\u001f]/

/** The members of a chunk in the hub format that no text is in, by name. */
type Frame = Readonly<Record<string, unknown>>

/** The last plain chunk that was parsed. */
export class RepeatedDelta {
  /** The text of the chunk that `read` returned last. */
  text = ''
  #frame: Frame | null = null
  #before = ''
  #after = ''
  #misses = 0

  /** The chunk in the hub format that `data` says, if it repeats the learnt one; null: it has to be parsed. */
  read(data: string): Record<string, unknown> | null {
    const frame = this.#frame
    if (frame === null) return null
    const end = data.length - this.#after.length
    if (end <= this.#before.length || !data.startsWith(this.#before) || !data.endsWith(this.#after)) return null
    const text = data.slice(this.#before.length, end)
    if (needsParser.test(text)) return null
    this.#misses = 0
    this.text = text
    return { ...frame, choices: [{ index: 0, delta: { content: text }, finish_reason: null }] }
  }

  /** Learns a chunk that was parsed and is in the hub format: one with a text and nothing else of note. */
  learn(data: string, chunk: Frame): void {
    this.#frame = null
    if (this.#misses >= missesMax) return
    const from = data.indexOf(contentKey)
    // Without a backslash no name of a member is written in another way.
    if (from === -1 || data.includes('\\') || data.indexOf(contentKey, from + 1) !== -1 || !data.startsWith(contentStart, from)) return
    const start = from + contentStart.length
    const end = data.indexOf('"', start)
    if (end <= start || data.slice(start, end) !== plainText(chunk)) return
    this.#misses++
    this.#before = data.slice(0, start)
    this.#after = data.slice(end)
    this.#frame = chunk
  }
}

/** The text of a chunk whose only choice has nothing else in it; null: it has more, or none. */
function plainText({ choices, usage, error }: Frame): string | null {
  const [choice] = Array.isArray(choices) ? choices : []
  if (!isObject(choice) || (usage !== undefined && usage !== null) || (error !== undefined && error !== null)) return null
  const { delta, finish_reason: finish, index, logprobs, ...more } = choice
  if (!isObject(delta) || finish !== null || index !== 0 || (logprobs ?? null) !== null || Object.keys(more).length > 0) return null
  const { content, ...rest } = delta
  return typeof content === 'string' && Object.keys(rest).length === 0 ? content : null
}
