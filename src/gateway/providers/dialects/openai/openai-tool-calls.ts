/** Normalises the tool calls of a chat stream to OpenAI's form. Servers omit, repeat or split parts of a call. */
import { isObject } from '../../../../platform/values/json.ts'
import { JsonProgress } from '../../../wire/json/json-progress.ts'
import { GrowingText } from '../../../wire/sse/growing-text.ts'

type Fields = Readonly<Record<string, unknown>>

/** Maximum length of a name that is joined from pieces. */
const nameMaxChars = 256

/** One call of the stream. */
interface Call {
  /** The index of this call among the calls of the reply, from 0. */
  readonly place: number
  /** The index that the server gave the call. Null when it gave none. */
  readonly index: number | null
  id: string
  name: string
  /** The arguments so far. */
  readonly args: GrowingText
  progress: JsonProgress
  /** True when the first delta of the call was sent. */
  isOut: boolean
}

/**
 * The calls of one stream. The first delta of a call waits until its name is complete. In the result, each call has an index of its own, counted from
 * 0. Its id and name occur once.
 */
export class ToolCalls {
  #count = 0
  /** The last call of each index that the server gave, and of each id. */
  readonly #byIndex = new Map<number, Call>()
  readonly #byId = new Map<string, Call>()
  /** The call to which the last delta belonged. */
  #current: Call | null = null

  /** Returns the corrected deltas. */
  read(deltas: readonly unknown[]): readonly Fields[] {
    const out: Fields[] = []
    for (const delta of deltas) if (isObject(delta)) out.push(...this.#read(delta))
    return out
  }

  /** True when `flush` would return a delta. */
  get isWaiting(): boolean {
    return this.#current !== null && !this.#current.isOut
  }

  /** Returns the waiting first delta of a call. It is called when another part of the stream comes next, or at the end. */
  flush(): readonly Fields[] {
    const held = this.#current
    return held === null || held.isOut ? [] : [this.#start(held)]
  }

  #read(delta: Fields): readonly Fields[] {
    const made = isObject(delta['function']) ? delta['function'] : {}
    const said: Said = {
      index: typeof delta['index'] === 'number' ? delta['index'] : null,
      id: textOf(delta['id']),
      name: textOf(made['name']),
      args: argumentsOf(made['arguments']),
    }
    const call = this.#callOf(said)
    const before = call === this.#current ? [] : this.flush()
    this.#current = call
    if (!call.isOut) {
      if (call.id === '' && said.id !== '') {
        call.id = said.id
        this.#byId.set(said.id, call)
      }
      call.name = joinedName(call.name, said.name)
    }
    return [...before, ...this.#grow(call, said.args)]
  }

  /**
   * Returns the call to which a delta belongs. The index decides if there is one, otherwise the id, and otherwise the current call. A delta that
   * clearly begins another call gets a new one.
   */
  #callOf(said: Said): Call {
    const found = said.index !== null ? this.#byIndex.get(said.index) : said.id !== '' ? this.#byId.get(said.id) : (this.#current ?? undefined)
    if (found !== undefined && !isOther(found, said)) return found
    const made: Call = { place: this.#count++, index: said.index, id: said.id, name: '', args: new GrowingText(), progress: new JsonProgress(), isOut: false }
    if (said.index !== null) this.#byIndex.set(said.index, made)
    if (said.id !== '') this.#byId.set(said.id, made)
    return made
  }

  #grow(call: Call, args: string): readonly Fields[] {
    // Some servers first send an empty object without meaning, and some repeat all arguments at the end.
    if (!call.isOut && isEmptyObject(call) && args.trim() !== '') {
      call.args.take()
      call.progress = new JsonProgress()
    } else if (args !== '' && args.length === call.args.length && call.progress.isWhole && args === call.args.text) return []
    call.args.append(args)
    call.progress.push(args)
    if (call.isOut) return args === '' ? [] : [{ index: call.place, function: { arguments: args } }]
    return call.args.length === 0 || isEmptyObject(call) ? [] : [this.#start(call)]
  }

  #start(call: Call): Fields {
    call.isOut = true
    return { index: call.place, ...(call.id === '' ? {} : { id: call.id }), type: 'function', function: { name: call.name, arguments: call.args.text } }
  }
}

interface Said {
  readonly index: number | null
  readonly id: string
  readonly name: string
  readonly args: string
}

/** Returns whether a delta begins another call. Its index, or a missing index, may still point to the current call. */
function isOther(call: Call, { index, id, name }: Said): boolean {
  if (name === '') return false
  if (id !== '' && call.id !== '' && id !== call.id) return call.args.length === 0 || call.progress.isWhole || name !== call.name
  return index === null && id === '' && call.progress.isWhole
}

const isEmptyObject = ({ args }: Call): boolean => args.length === 2 && args.text === '{}'

/** Returns the joined name. A name may arrive in pieces, or complete in every delta. */
function joinedName(before: string, said: string): string {
  if (said === '' || said === before || before.length >= nameMaxChars) return before
  return said.startsWith(before) ? said : before + said
}

function argumentsOf(args: unknown): string {
  if (typeof args === 'string') return args
  return typeof args === 'object' && args !== null ? JSON.stringify(args) : ''
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
