/**
 * Reads the facts that metering and routing need from the bytes of an ordinary whole chat reply, without making a value of it. The answer's text stays bytes.
 * Everything that is not ordinary is left to the JSON parser: other members, errors, tool calls, thinking, names that occur twice, or bytes that are no JSON.
 * Decision 0542 says why.
 */
import { isWordAt, skipWhite } from '../../wire/json/json-bytes.ts'
import { type TokenUsage, usageFromOpenAi } from '../../wire/usage.ts'

/** The facts about an ordinary reply. */
export interface PlainReply {
  readonly model: string
  /** The position of the value of `model`, including its quotes. */
  readonly modelFrom: number
  readonly modelTo: number
  readonly usage: TokenUsage
}

const [quote, comma, colon, backslash] = [34, 44, 58, 92]
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125]
/** The byte of the letter `u`, which begins an escape of four hex digits. */
const letterU = 117
const plainEscapes: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'))
const nullWord = Buffer.from('null')
const errorWord = Buffer.from('error')
/** The longest text of a model's name or of a usage block that is read. */
const readMaxBytes = 1024

/** The kind of value that a member may have. */
type Shape = 'text' | 'text or null' | 'number' | 'null' | 'empty list' | 'model' | 'usage' | 'choices' | 'message' | 'finish'

interface Member {
  readonly name: Buffer
  readonly shape: Shape
  /** One bit for each member of an object, so that a second occurrence is seen. */
  readonly bit: number
}

const membersOf = (shapes: Readonly<Record<string, Shape>>): readonly Member[] =>
  Object.entries(shapes).map(([name, shape], index) => ({ name: Buffer.from(name), shape, bit: 1 << index }))

const replyMembers = membersOf({
  id: 'text',
  object: 'text',
  created: 'number',
  model: 'model',
  choices: 'choices',
  usage: 'usage',
  system_fingerprint: 'text or null',
  service_tier: 'text or null',
})
const choiceMembers = membersOf({ index: 'number', message: 'message', finish_reason: 'finish', logprobs: 'null', stop_reason: 'null' })
const messageMembers = membersOf({ role: 'text', content: 'text', refusal: 'null', annotations: 'empty list' })

/** Returns the facts of an ordinary reply, whose usage has a prompt, a completion and a total. Null when the bytes must be parsed. */
export function plainReplyOf(bytes: Buffer): PlainReply | null {
  const scan = new PlainScan(bytes)
  return scan.isPlain() ? scan.facts() : null
}

class PlainScan {
  readonly #bytes: Buffer
  readonly #end: number
  #modelFrom = -1
  #modelTo = -1
  #usageFrom = -1
  #usageTo = -1
  #answers = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#end = bytes.length
  }

  isPlain(): boolean {
    const start = skipWhite(this.#bytes, 0, this.#end)
    const end = this.#object(start, replyMembers)
    return end !== -1 && skipWhite(this.#bytes, end, this.#end) === this.#end && this.#answers > 0
  }

  facts(): PlainReply | null {
    if (this.#modelFrom === -1 || this.#usageFrom === -1) return null
    const model = this.#parsed(this.#modelFrom, this.#modelTo)
    const usage = completeUsage(this.#parsed(this.#usageFrom, this.#usageTo))
    if (typeof model !== 'string' || usage === null) return null
    return { model, modelFrom: this.#modelFrom, modelTo: this.#modelTo, usage }
  }

  #parsed(from: number, to: number): unknown {
    try {
      return JSON.parse(this.#bytes.toString('utf8', from, to))
    } catch {
      return null
    }
  }

  /** Returns the offset after the object that begins at `from`. -1 when it is not an object of these members. */
  #object(from: number, members: readonly Member[]): number {
    const bytes = this.#bytes
    const end = this.#end
    if (bytes[from] !== openBrace) return -1
    let seen = 0
    let at = from
    do {
      const open = skipWhite(bytes, at + 1, end)
      if (bytes[open] !== quote) return -1
      const close = bytes.indexOf(quote, open + 1)
      if (close === -1) return -1
      const member = memberAt(bytes, open + 1, close, members)
      if (member === null || (seen & member.bit) !== 0) return -1
      seen |= member.bit
      at = skipWhite(bytes, close + 1, end)
      if (bytes[at] !== colon) return -1
      at = this.#value(skipWhite(bytes, at + 1, end), member.shape)
      if (at === -1) return -1
      at = skipWhite(bytes, at, end)
    } while (bytes[at] === comma)
    return bytes[at] === closeBrace ? at + 1 : -1
  }

  /** Returns the offset after the value that begins at `from`. -1 when it does not have that shape. */
  #value(from: number, shape: Shape): number {
    switch (shape) {
      case 'text':
        return this.#text(from)
      case 'text or null':
        return this.#bytes[from] === quote ? this.#text(from) : this.#null(from)
      case 'null':
        return this.#null(from)
      case 'number':
        return this.#digits(from)
      case 'empty list': {
        const close = skipWhite(this.#bytes, from + 1, this.#end)
        return this.#bytes[from] === openBracket && this.#bytes[close] === closeBracket ? close + 1 : -1
      }
      case 'model':
        this.#modelFrom = from
        this.#modelTo = this.#text(from)
        return this.#modelTo - from > readMaxBytes ? -1 : this.#modelTo
      case 'usage':
        this.#usageFrom = from
        this.#usageTo = this.#usage(from)
        return this.#usageTo
      case 'choices':
        return this.#choices(from)
      case 'message':
        this.#answers++
        return this.#object(from, messageMembers)
      case 'finish': {
        const to = this.#text(from)
        // Some gateways say in the finish reason that the model failed.
        return to === -1 || isWordAt(this.#bytes, from + 1, to - 1, errorWord) ? -1 : to
      }
    }
  }

  #choices(from: number): number {
    if (this.#bytes[from] !== openBracket) return -1
    let at = from
    do {
      at = this.#object(skipWhite(this.#bytes, at + 1, this.#end), choiceMembers)
      if (at === -1) return -1
      at = skipWhite(this.#bytes, at, this.#end)
    } while (this.#bytes[at] === comma)
    return this.#bytes[at] === closeBracket ? at + 1 : -1
  }

  /** Returns the offset after the usage block. Its text is parsed later, so only its end is searched here. -1 for a block with texts or of unusual length. */
  #usage(from: number): number {
    const bytes = this.#bytes
    if (bytes[from] !== openBrace) return -1
    let depth = 0
    for (let at = from; at < this.#end && at - from < readMaxBytes; at++) {
      const byte = bytes[at]
      if (byte === openBrace) depth++
      else if (byte === closeBrace && --depth === 0) return at + 1
      else if (byte === quote) {
        const to = this.#text(at)
        if (to === -1) return -1
        at = to - 1
      }
    }
    return -1
  }

  /** Returns the offset after the string that begins at `from`. -1 when it is not a string of JSON. */
  #text(from: number): number {
    const bytes = this.#bytes
    const end = this.#end
    if (bytes[from] !== quote) return -1
    let at = from + 1
    while (at < end) {
      const byte = bytes[at] as number
      if (byte === quote) return at + 1
      if (byte < 32) return -1
      at++
      if (byte !== backslash) continue
      const escaped = bytes[at] as number
      if (escaped === letterU) {
        for (let digit = at + 1; digit <= at + 4; digit++) if (!isHexDigit(bytes[digit])) return -1
        at += 5
      } else if (plainEscapes.has(escaped)) at++
      else return -1
    }
    return -1
  }

  #null(from: number): number {
    return isWordAt(this.#bytes, from, from + nullWord.length, nullWord) ? from + nullWord.length : -1
  }

  /** Returns the offset after a whole number without sign or leading zeros. */
  #digits(from: number): number {
    let at = from
    while (isDigit(this.#bytes[at])) at++
    return at === from || (this.#bytes[from] === 48 && at > from + 1) ? -1 : at
  }
}

function memberAt(bytes: Buffer, from: number, to: number, members: readonly Member[]): Member | null {
  for (let index = 0; index < members.length; index++) {
    const member = members[index] as Member
    if (isWordAt(bytes, from, to, member.name)) return member
  }
  return null
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 48 && byte <= 57

/** Adding 32 makes a capital letter a small one. */
const isHexDigit = (byte: number | undefined): boolean => isDigit(byte) || (byte !== undefined && (byte | 32) >= 97 && (byte | 32) <= 102)

/** Returns the usage of a block that has all its totals, so that nothing has to be added to the reply. */
function completeUsage(block: unknown): TokenUsage | null {
  if (typeof block !== 'object' || block === null) return null
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = block as Readonly<Record<string, unknown>>
  return Number.isInteger(prompt) && Number.isInteger(completion) && Number.isInteger(total) ? usageFromOpenAi(block) : null
}
