/**
 * Parses a long JSON text in slices, so that the event loop can serve other requests between them. A slice ends after a comma or before a long string. The
 * objects and lists that are open there are closed for JSON.parse, and the next slice opens them again. Its values are then added to the objects and lists of
 * the earlier slices. A long string is parsed in pieces. The result is the value of one JSON.parse over all of the text, and a text that is not JSON is
 * refused in the same cases. Decision 0510 gives the reasons.
 */
import { hashSeed } from '../../../platform/values/hash-seed.ts'
import { setOwn } from '../../../platform/values/json.ts'
import { StringWalk, textCut } from './json-bytes.ts'

const quote = 34
const comma = 44
const colon = 58
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125
/** The code of a closing bracket or brace is higher by this number than the code of its opening one. */
const closeAfterOpen = 2

/** The size of a slice. It ends at the first comma after one of these numbers. */
export interface SliceSize {
  readonly bytes: number
  /** Small values take most of the time, so commas count, too. */
  readonly commas: number
}

/** One slice of plain text takes about two milliseconds. */
const sliceSize: SliceSize = { bytes: 1024 * 1024, commas: 8000 }
/** The names of the members that a slice has in addition: the first one continues an object, and the last one follows the comma at the end. No caller knows the seed. */
const openName = `brigade-open-${hashSeed}`
const endName = `brigade-end-${hashSeed}`

type Container = unknown[] | Record<string, unknown>

/** A parser of one text. Each call of `next` is the work of one turn of the event loop. */
export class JsonSlices {
  /** The parsed value after `next` has returned true. */
  value: unknown
  readonly #bytes: Buffer
  readonly #strings: StringWalk
  readonly #size: SliceSize
  /** The offset up to which the bytes are scanned, and the offset at which the slice begins. */
  #at = 0
  #from = 0
  #commas = 0
  #depth = 0
  /** The smallest depth since the slice began. Containers below it are still those of the earlier slices. */
  #lowest = 0
  #textFrom = 0
  /** For each depth: the opening byte, and the place of the name of the last member with its quotes. */
  readonly #openers: number[] = [0]
  readonly #nameFrom: number[] = [0]
  readonly #nameTo: number[] = [0]
  #textTo = 0
  /** The last byte of structure before the string in hand: a bracket, comma or colon. It tells a value from the name of a member. */
  #before = comma
  /** A long string of which the beginning is parsed. `from` is the offset of what is left of it. */
  #long: { text: string; from: number } | null = null
  /** True: the slice begins after a long string, not after a comma. */
  #isAfterString = false
  /** The containers that are open at the beginning of the slice. The outermost one is first. */
  #open: Container[] = []

  /** The bytes are within the bounds of a scan, so that they are not nested deeply. */
  constructor(bytes: Buffer, size = sliceSize) {
    this.#size = size
    this.#bytes = bytes
    this.#strings = new StringWalk(bytes, bytes.length)
  }

  /** Parses about one slice. Returns true when the whole text is parsed. Throws SyntaxError. */
  next(): boolean {
    if (this.#long !== null) return this.#continueString(this.#long)
    const bytes = this.#bytes
    const stop = Math.min(this.#at + 2 * this.#size.bytes, bytes.length)
    const cut = this.#scan(stop)
    if (cut !== -1) this.#cutAt(cut, this.#suffix(), false)
    else if (this.#isAtLongValue(this.#at)) this.#beginString()
    else if (this.#at >= bytes.length) {
      this.#parse(bytes.length, '')
      return true
    }
    return false
  }

  /** Parses the slice up to `cut`. The next one begins there. */
  #cutAt(cut: number, suffix: string, isAfterString: boolean): void {
    this.#parse(cut, suffix)
    this.#reopen(isAfterString)
    this.#from = cut
    this.#commas = 0
    this.#isAfterString = isAfterString
  }

  /** Continues to about `stop`, or to a long string. Returns the offset after the comma that ends the slice, or -1. */
  #scan(stop: number): number {
    const bytes = this.#bytes
    const strings = this.#strings
    const due = this.#from + this.#size.bytes
    let at = this.#at
    let cut = -1
    if (strings.isInString) at = this.#textTo = strings.to(at, stop)
    while (at < stop && !this.#isAtLongValue(at)) {
      const byte = bytes[at++] as number
      if (byte === quote) {
        this.#textFrom = at - 1
        at = this.#textTo = strings.to(at, stop)
      } else if (byte === comma) {
        this.#before = byte
        if (++this.#commas < this.#size.commas && at < due) continue
        if (this.#depth === 0) continue
        cut = at
        break
      } else if (byte === colon) {
        this.#before = byte
        this.#nameFrom[this.#depth] = this.#textFrom
        this.#nameTo[this.#depth] = this.#textTo
      } else if (byte === openBrace || byte === openBracket) this.#openers[++this.#depth] = this.#before = byte
      else if (byte === closeBrace || byte === closeBracket) {
        if (this.#openers[this.#depth] !== byte - closeAfterOpen) throw new SyntaxError('a bracket closes nothing')
        if (--this.#depth < this.#lowest) this.#lowest = this.#depth
        this.#before = byte
      }
    }
    this.#at = at
    return cut
  }

  /** Returns whether a long string that is a value ends or is cut at the offset. A long name of a member is parsed with its slice, and so is a text at the top. */
  #isAtLongValue(at: number): boolean {
    if (at !== this.#textTo || at - this.#textFrom < this.#size.bytes || this.#textFrom < this.#from || this.#depth === 0) return false
    return this.#openers[this.#depth] === openBracket || this.#before === colon
  }

  /** Parses what the slice has before the long string, with an empty string in the place of it. */
  #beginString(): void {
    const from = this.#textFrom
    this.#cutAt(from, `""${this.#closers()}`, true)
    this.#long = { text: '', from: from + 1 }
  }

  /** Parses about one piece of the long string. Its last piece puts the string into its place. Returns false, because something follows each string. */
  #continueString(long: { text: string; from: number }): boolean {
    const bytes = this.#bytes
    const stop = Math.min(long.from + this.#size.bytes, bytes.length)
    if (this.#strings.isInString && this.#at < stop) this.#at = this.#textTo = this.#strings.to(this.#at, stop)
    const isEnd = !this.#strings.isInString && this.#at - 1 <= stop
    if (!isEnd && stop === bytes.length) throw new SyntaxError('a string does not end')
    const end = isEnd ? this.#at - 1 : textCut(bytes, long.from, stop)
    long.text += JSON.parse(`"${bytes.toString('utf8', long.from, end)}"`) as string
    long.from = end
    if (!isEnd) return false
    this.#putString(long.text)
    this.#long = null
    this.#from = this.#at
    return false
  }

  /** Puts the long string in the place of the empty one. */
  #putString(text: string): void {
    const inner = this.#open.at(-1) as Container
    if (Array.isArray(inner)) inner[inner.length - 1] = text
    else setOwn(inner, this.#nameAt(this.#depth), text)
  }

  /** Parses the bytes of the slice up to `end` and adds their values to the open containers. */
  #parse(end: number, suffix: string): void {
    const made: unknown = JSON.parse(this.#prefix() + this.#bytes.toString('utf8', this.#from, end) + suffix)
    if (this.#open.length === 0) this.value = made
    else merge(made as Container, this.#open)
  }

  /** Opens the containers of the earlier slices again. The first item stands for what is parsed already, so a bracket right after a comma stays an error. */
  #prefix(): string {
    return this.#open
      .map((each, index) => {
        const isInnermost = index === this.#open.length - 1
        // A word, because a number could continue in the text behind the string, such as the `.5` of `["…".5]`.
        const first = this.#isAfterString ? 'null' : 'null,'
        if (Array.isArray(each)) return isInnermost ? `[${first}` : '['
        return isInnermost ? `{"${openName}":${first}` : `{"${openName}":`
      })
      .join('')
  }

  /** Closes what is open. An item follows the last comma, so a comma right after a bracket stays an error. */
  #suffix(): string {
    return (this.#openers[this.#depth] === openBrace ? `"${endName}":0` : '0') + this.#closers()
  }

  /** Closes the containers that are open. */
  #closers(): string {
    let text = ''
    for (let depth = this.#depth; depth > 0; depth--) text += this.#openers[depth] === openBrace ? '}' : ']'
    return text
  }

  /** Notes which containers are open where the slice ends. A slice that ends after a comma has one item too many. */
  #reopen(isAfterString: boolean): void {
    const open = this.#open.slice(0, this.#lowest)
    for (let depth = open.length + 1; depth <= this.#depth; depth++) {
      const outer = open.at(-1)
      open.push((outer === undefined ? this.value : this.#lastOf(outer, depth - 1)) as Container)
    }
    const inner = isAfterString ? undefined : open.at(-1)
    if (Array.isArray(inner)) inner.pop()
    else if (inner !== undefined) delete inner[endName]
    this.#open = open
    this.#lowest = this.#depth
  }

  /** Returns the value of a container that was opened last. */
  #lastOf(outer: Container, depth: number): unknown {
    if (Array.isArray(outer)) return outer.at(-1)
    return outer[this.#nameAt(depth)]
  }

  /** Returns the name of the last member at a depth. */
  #nameAt(depth: number): string {
    return JSON.parse(this.#bytes.toString('utf8', this.#nameFrom[depth], this.#nameTo[depth])) as string
  }
}

/** Adds the values of a slice to the containers that it continues. The first item of each is the continuation of the next inner container, or nothing. */
function merge(made: Container, open: readonly Container[]): void {
  let part: unknown = made
  for (const outer of open) {
    if (Array.isArray(outer)) {
      const items = part as unknown[]
      for (let index = 1; index < items.length; index++) outer.push(items[index])
      part = items[0]
    } else {
      const members = part as Record<string, unknown>
      for (const name of Object.keys(members)) if (name !== openName && name !== endName) setOwn(outer, name, members[name])
      part = members[openName]
    }
  }
}
