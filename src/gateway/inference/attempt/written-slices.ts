/** Writes the JSON of a heavy body in slices, so that the event loop can serve other requests between them. */
import type { UnwrittenJson, UpstreamRequest } from '../../providers/dialect.ts'
import { written } from './written.ts'

/** Does work in a turn of the event loop that other heavy bodies do not share. */
export type InTurn = <T>(work: () => T) => Promise<T>

/** A slice ends after this number of characters. */
const sliceChars = 1024 * 1024
/** A slice ends after this number of values, because small values take most of the time. */
const sliceValues = 10_000

/**
 * Makes a heavy request in one turn, and writes its JSON in others. A request with numbers to restore is encoded where it is sent. Throws as `written` does.
 */
export async function writtenInTurns(write: () => UpstreamRequest, isRestored: boolean, inTurn: InTurn): Promise<UpstreamRequest> {
  const { unwritten, ...outgoing } = await inTurn(() => written(write))
  if (unwritten !== undefined) return { ...outgoing, body: await writtenInSlices(unwritten, inTurn) }
  return isRestored || typeof outgoing.body !== 'string' ? outgoing : inTurn(() => ({ ...outgoing, body: Buffer.from(outgoing.body) }))
}

/** Returns the bytes that `JSON.stringify` would write, changed by `mend`. */
export async function writtenInSlices({ value, mend }: UnwrittenJson, inTurn: InTurn): Promise<Buffer> {
  const writer = new SliceWriter(value, mend)
  while (!(await inTurn(() => writer.next())));
  return inTurn(() => Buffer.concat(writer.slices))
}

/** An open list, object or long string. */
type Open =
  | { readonly kind: 'list'; readonly items: readonly unknown[]; next: number }
  | { readonly kind: 'object'; readonly object: Readonly<Record<string, unknown>>; readonly names: readonly string[]; next: number; isFirst: boolean }
  | { readonly kind: 'string'; readonly text: string; next: number }

/** Writes one value. Each call of `next` is the work of one turn. */
class SliceWriter {
  readonly slices: Buffer[] = []
  readonly #mend: UnwrittenJson['mend']
  readonly #open: Open[] = []
  #text = ''

  constructor(value: unknown, mend: UnwrittenJson['mend']) {
    this.#mend = mend
    this.#begin(value)
  }

  /** Writes one slice. Returns true when the whole value is written. */
  next(): boolean {
    let open = this.#open.at(-1)
    for (let values = 0; open !== undefined && values < sliceValues && this.#text.length < sliceChars; values++) {
      this.#step(open)
      open = this.#open.at(-1)
    }
    this.slices.push(Buffer.from(this.#mend(this.#text)))
    this.#text = ''
    return open === undefined
  }

  #step(open: Open): void {
    if (open.kind === 'list') this.#item(open)
    else if (open.kind === 'object') this.#member(open)
    else this.#piece(open)
  }

  #item(open: Extract<Open, { kind: 'list' }>): void {
    if (open.next === open.items.length) this.#close(']')
    else {
      if (open.next > 0) this.#text += ','
      this.#begin(open.items[open.next++] ?? null)
    }
  }

  #member(open: Extract<Open, { kind: 'object' }>): void {
    const name = open.names[open.next++]
    if (name === undefined) {
      this.#close('}')
      return
    }
    const value = open.object[name]
    if (value === undefined) return
    this.#text += `${open.isFirst ? '' : ','}${JSON.stringify(name)}:`
    open.isFirst = false
    this.#begin(value)
  }

  /** Writes a part of a long string. The two halves of a surrogate pair stay together. */
  #piece(open: Extract<Open, { kind: 'string' }>): void {
    const { text, next } = open
    let end = next + sliceChars
    if (isLowHalf(text.charCodeAt(end))) end++
    this.#text += JSON.stringify(text.slice(next, end)).slice(1, -1)
    open.next = end
    if (end >= text.length) this.#close('"')
  }

  #begin(value: unknown): void {
    if (Array.isArray(value)) {
      this.#text += '['
      this.#open.push({ kind: 'list', items: value, next: 0 })
    } else if (typeof value === 'object' && value !== null) {
      this.#text += '{'
      this.#open.push({ kind: 'object', object: value as Readonly<Record<string, unknown>>, names: Object.keys(value), next: 0, isFirst: true })
    } else if (typeof value === 'string' && value.length > sliceChars) {
      this.#text += '"'
      this.#open.push({ kind: 'string', text: value, next: 0 })
    } else this.#text += JSON.stringify(value)
  }

  #close(end: string): void {
    this.#text += end
    this.#open.pop()
  }
}

const isLowHalf = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff
