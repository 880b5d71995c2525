import { isObject, isWholeJson } from '../../../platform/json.ts'
import type { ReplyContext } from '../client-format.ts'
import { messagesFrame } from './frames.ts'
import { thinkingBlock } from './reply.ts'
import { type ToolNames, toolNamesOf } from './tool-names.ts'

type Fields = Readonly<Record<string, unknown>>

/** A tool call of the stream, by its index there. */
interface Call {
  readonly id: string
  readonly name: string
  /** Arguments so far. */
  args: string
  /** What of them has been written. */
  writtenChars: number
  state: 'waiting' | 'open' | 'closed'
}

type Open = { readonly kind: 'text' | 'thinking' } | { readonly kind: 'call'; readonly call: Call }

/**
 * Writes content blocks one after the other: each is closed before the next one opens. Tool calls that an upstream sends interleaved wait
 * for each other: the open one goes out as it comes, the others when it is complete, and text behind them.
 */
export class BlockWriter {
  hasToolUse = false
  readonly #context: ReplyContext
  readonly #calls = new Map<number, Call>()
  /** What came while a call was in the middle of its arguments. */
  #later: (() => string)[] = []
  #open: Open | null = null
  #index = -1
  /** What has been thought since the last signature. */
  #unsigned = ''
  #names: ToolNames | null = null
  #hasNoted = false

  constructor(context: ReplyContext) {
    this.#context = context
  }

  get isInText(): boolean {
    return this.#open?.kind === 'text'
  }

  text(text: string): string {
    return this.#inTurn(() => this.#say('text', text))
  }

  thinking(text: string): string {
    return this.#inTurn(() => this.#say('thinking', text))
  }

  /** A whole block with its signature: of thinking that has gone out already only the rest and the signature. */
  thinkingBlock(given: unknown): string {
    const block = thinkingBlock(given)
    return block === null ? '' : this.#inTurn(() => this.#sayBlock(block))
  }

  /** A remark of ours, once a stream. */
  note(text: string): string {
    if (this.#hasNoted) return ''
    this.#hasNoted = true
    return this.#inTurn(() => this.#flushCalls() + this.#say('text', text) + this.#end())
  }

  toolCall(given: Fields): string {
    const index = typeof given['index'] === 'number' ? given['index'] : 0
    const made = isObject(given['function']) ? given['function'] : {}
    const call = this.#calls.get(index) ?? this.#newCall(index, given['id'], made['name'])
    if (typeof made['arguments'] === 'string' && call.state !== 'closed') call.args += made['arguments']
    return this.#advance(call) + this.#sayLater()
  }

  /** Closes what is open, and gives out everything that waited for it. */
  close(): string {
    let text = this.#flushCalls()
    for (const say of this.#later.splice(0)) text += say()
    return text + this.#end()
  }

  /** At once, or behind the call that is in the middle of its arguments. */
  #inTurn(say: () => string): string {
    if (this.#later.length === 0 && !this.#isAnyIncomplete()) return say()
    this.#later.push(say)
    return ''
  }

  #sayLater(): string {
    if (this.#later.length === 0 || this.#isAnyIncomplete()) return ''
    let text = ''
    for (const say of this.#later.splice(0)) text += say()
    return text
  }

  #isAnyIncomplete(): boolean {
    for (const { state, args } of this.#calls.values()) if (state !== 'closed' && !isWholeJson(args)) return true
    return false
  }

  #flushCalls(): string {
    let text = this.#end()
    for (const call of this.#calls.values()) if (call.state === 'waiting') text += this.#openCall(call) + this.#end()
    return text
  }

  #newCall(index: number, id: unknown, name: unknown): Call {
    this.#names ??= toolNamesOf(this.#context.request)
    const call: Call = {
      id: typeof id === 'string' && id !== '' ? id : this.#context.newId('toolu_'),
      name: this.#names.toClient(typeof name === 'string' ? name : ''),
      args: '',
      writtenChars: 0,
      state: 'waiting',
    }
    this.#calls.set(index, call)
    this.hasToolUse = true
    return call
  }

  /** Writes what may go out now that a call has grown. */
  #advance(call: Call): string {
    const open = this.#open
    if (open?.kind === 'call') {
      let text = open.call === call ? this.#argsOf(call) : ''
      if (!this.#isAnyWaiting() || !isWholeJson(open.call.args)) return text
      text += this.#end()
      return text + this.#openNext()
    }
    return call.state === 'waiting' ? this.#openCall(call) : ''
  }

  /** The calls that waited, in order: those that are complete at once, and the first that is not stays open. */
  #openNext(): string {
    let text = ''
    for (const call of this.#calls.values()) {
      if (call.state !== 'waiting') continue
      text += this.#openCall(call)
      if (!isWholeJson(call.args) || !this.#isAnyWaiting()) break
    }
    return text
  }

  #isAnyWaiting(): boolean {
    for (const { state } of this.#calls.values()) if (state === 'waiting') return true
    return false
  }

  #openCall(call: Call): string {
    call.state = 'open'
    return this.#begin({ type: 'tool_use', id: call.id, name: call.name, input: {} }, { kind: 'call', call }) + this.#argsOf(call)
  }

  #argsOf(call: Call): string {
    const text = call.args.slice(call.writtenChars)
    call.writtenChars = call.args.length
    return text === '' ? '' : this.#delta({ type: 'input_json_delta', partial_json: text })
  }

  #say(kind: 'text' | 'thinking', said: string): string {
    const delta = { type: `${kind}_delta`, [kind]: said }
    if (kind === 'thinking') this.#unsigned += said
    if (this.#open?.kind === kind) return this.#delta(delta)
    const block = kind === 'text' ? { type: 'text', text: '' } : unsigned
    return this.#flushCalls() + this.#begin(block, { kind }) + this.#delta(delta)
  }

  /** Text that has gone out is not said again: a signature that comes late, behind text, stands in a block of its own without words. */
  #sayBlock(block: Fields): string {
    if (block['type'] === 'redacted_thinking') return this.#flushCalls() + this.#begin(block, { kind: 'thinking' }) + this.#end()
    const whole = String(block['thinking'])
    const said = this.#unsigned
    // What was thought without a signature may stand before it.
    const isSaid = said.endsWith(whole) || (said !== '' && whole.startsWith(said))
    const before = isSaid && this.#open?.kind === 'thinking' ? '' : this.#flushCalls() + this.#begin(unsigned, { kind: 'thinking' })
    const rest = isSaid ? whole.slice(said.length) : whole
    const thinking = rest === '' ? '' : this.#delta({ type: 'thinking_delta', thinking: rest })
    this.#unsigned = ''
    return before + thinking + this.#delta({ type: 'signature_delta', signature: block['signature'] }) + this.#end()
  }

  #begin(block: Fields, open: Open): string {
    const ended = this.#end()
    this.#index++
    this.#open = open
    return ended + messagesFrame({ type: 'content_block_start', index: this.#index, content_block: block })
  }

  #delta(delta: Fields): string {
    return messagesFrame({ type: 'content_block_delta', index: this.#index, delta })
  }

  #end(): string {
    const open = this.#open
    if (open === null) return ''
    if (open.kind === 'call') open.call.state = 'closed'
    this.#open = null
    return messagesFrame({ type: 'content_block_stop', index: this.#index })
  }
}

const unsigned: Fields = Object.freeze({ type: 'thinking', thinking: '', signature: '' })
