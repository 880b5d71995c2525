/**
 * Reads chunks without parsing them, when they differ from an earlier chunk only in their text. Most chunks do, because a provider repeats the id,
 * the model and the frame for each piece of text.
 */
import { isObject } from '../../../../platform/values/json.ts'
import { RepeatedEvents } from '../../../wire/sse/repeated-events.ts'

/**
 * Maximum number of consecutive learnt chunks that no later chunk repeats. After that, no chunk is compared any more. Some providers add a random
 * value to each chunk.
 */
const missesMax = 8

const contentKey = '"content"'
const contentStart = '"content":"'
/** Characters that make decoding necessary. A text with such a character is parsed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON does not allow them in a text
const needsParser = /["\\\u0000-\u001f]/

/** The members of a hub chunk by name, apart from the text. */
type Frame = Readonly<Record<string, unknown>>

/** The last plain chunk that was parsed, as a pattern for later chunks. */
export class RepeatedDelta {
  /** The text of the last chunk that `read` returned. */
  text = ''
  /** The same chunk as a whole event. */
  readonly events = new RepeatedEvents()
  #frame: Frame | null = null
  /** The members of the delta other than the text. */
  #rest: Frame = noMembers
  #before = ''
  #after = ''
  #misses = 0

  /** Returns the hub chunk for `data` if it repeats the learnt chunk. Returns null when `data` must be parsed. */
  read(data: string): Record<string, unknown> | null {
    const frame = this.#frame
    if (frame === null) return null
    const end = data.length - this.#after.length
    if (end <= this.#before.length || !data.startsWith(this.#before) || !data.endsWith(this.#after)) return null
    const text = data.slice(this.#before.length, end)
    if (needsParser.test(text)) return null
    this.#misses = 0
    this.text = text
    return { ...frame, choices: [{ index: 0, delta: { ...this.#rest, content: text }, finish_reason: null }] }
  }

  /** The model of the learnt chunk. */
  get model(): unknown {
    return this.#frame?.['model']
  }

  /** Reads the whole events at `at` that repeat the learnt chunk. Returns the offset after them; `events` then has their texts. */
  readEvents(bytes: Uint8Array, at: number): number {
    const end = this.events.read(bytes, at, true)
    if (end > at) this.#misses = 0
    return end
  }

  /** Learns a parsed hub chunk if it contains a text and nothing else that matters. */
  learn(data: string, chunk: Frame): void {
    this.#frame = null
    this.events.frame = null
    if (this.#misses >= missesMax || data.length > learntMaxChars) return
    const from = data.indexOf(contentKey)
    // Without a backslash, every member name is written in its plain form.
    if (from === -1 || data.includes('\\') || data.indexOf(contentKey, from + 1) !== -1 || !data.startsWith(contentStart, from)) return
    const start = from + contentStart.length
    const end = data.indexOf('"', start)
    const delta = plainDelta(chunk)
    if (end <= start || delta === null || data.slice(start, end) !== delta.content) return
    this.#misses++
    this.#before = data.slice(0, start)
    this.#after = data.slice(end)
    this.#frame = chunk
    this.#rest = delta.rest
    this.events.frame = { before: Buffer.from(`data: ${this.#before}`), after: Buffer.from(`${this.#after}\n\n`) }
  }
}

/** Maximum length of a learnt chunk, because its value is kept for the whole stream. */
const learntMaxChars = 4096

const noMembers: Frame = Object.freeze({})

/** Returns the delta of a chunk whose only choice has a text and at most a role in addition. Returns null when the chunk has more, or has no text. */
function plainDelta({ choices, usage, error }: Frame): { content: string; rest: Frame } | null {
  const [choice] = Array.isArray(choices) ? choices : []
  if (!isObject(choice) || (usage !== undefined && usage !== null) || (error !== undefined && error !== null)) return null
  const { delta, finish_reason: finish, index, logprobs, ...others } = choice
  if (!isObject(delta) || finish !== null || index !== 0 || (logprobs ?? null) !== null || Object.keys(others).length > 0) return null
  const { content, role, ...more } = delta
  if (typeof content !== 'string' || Object.keys(more).length > 0 || (role !== undefined && typeof role !== 'string')) return null
  return { content, rest: role === undefined ? noMembers : { role } }
}
