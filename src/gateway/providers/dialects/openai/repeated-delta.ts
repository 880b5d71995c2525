/**
 * Reads chunks that differ from an earlier one only in their text, without parsing them. Most chunks of a stream do, because a provider repeats the id, the
 * model and the frame for each piece of text.
 */
import { isObject } from '../../../../platform/values/json.ts'
import { RepeatedEvents } from '../../../wire/sse/repeated-events.ts'

/** The comparisons stop after this number of learnt chunks in a row that no later chunk repeated. Some providers add something random to each chunk. */
const missesMax = 8

const contentKey = '"content"'
const contentStart = '"content":"'
/** Characters that a text must not contain, so that it needs no decoding. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON does not allow them in a text
const needsParser = /["\\\u0000-\u001f]/

/** The members of a hub chunk by name, apart from the text. */
type Frame = Readonly<Record<string, unknown>>

/** The last plain chunk that was parsed. */
export class RepeatedDelta {
  /** The text of the last chunk that `read` returned. */
  text = ''
  /** The same chunk as a whole event. */
  readonly events = new RepeatedEvents()
  #frame: Frame | null = null
  /** Members of its delta other than the text. */
  #rest: Frame = noMembers
  #before = ''
  #after = ''
  #misses = 0

  /** Returns the hub chunk for `data` if it repeats the learnt one; null: it must be parsed. */
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

  /** Learns a parsed hub chunk if it has a text and nothing else that matters. */
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

/** A longer chunk is not learnt, because its value is kept as long as the stream lasts. */
const learntMaxChars = 4096

const noMembers: Frame = Object.freeze({})

/** Returns the delta of a chunk whose only choice has a text, perhaps a role, and nothing else; null: it has more, or no text. */
function plainDelta({ choices, usage, error }: Frame): { content: string; rest: Frame } | null {
  const [choice] = Array.isArray(choices) ? choices : []
  if (!isObject(choice) || (usage !== undefined && usage !== null) || (error !== undefined && error !== null)) return null
  const { delta, finish_reason: finish, index, logprobs, ...others } = choice
  if (!isObject(delta) || finish !== null || index !== 0 || (logprobs ?? null) !== null || Object.keys(others).length > 0) return null
  const { content, role, ...more } = delta
  if (typeof content !== 'string' || Object.keys(more).length > 0 || (role !== undefined && typeof role !== 'string')) return null
  return { content, rest: role === undefined ? noMembers : { role } }
}
