import { isObject } from '../../../../platform/values/json.ts'
import type { ReplyContext } from '../../client-format.ts'
import { JsonProgress } from '../../json/json-progress.ts'
import { GrowingText } from '../../sse/growing-text.ts'
import type { EventFrame } from '../../sse/repeated-events.ts'
import { type ToolNames, toolNamesOf } from '../tool-names.ts'
import { messagesFrame, textDeltaFrame, textFrameAt } from './frames.ts'
import { thinkingBlock } from './reply.ts'

type Fields = Readonly<Record<string, unknown>>

/** A tool call of the stream. */
interface Call {
  readonly id: string
  readonly name: string
  /** Arguments that have arrived but are not written yet. */
  readonly unwritten: GrowingText
  readonly progress: JsonProgress
  state: 'waiting' | 'open' | 'closed'
}

/** Output that waits for its turn: text of one kind, or a complete block. */
type Later = { readonly kind: 'text' | 'thinking'; readonly text: GrowingText } | { readonly kind: 'whole'; readonly say: () => string }

/** Maximum number of outputs that wait. No model sends more between two pieces of a call's arguments. */
const laterMax = 1000

type Open = { readonly kind: 'text' | 'thinking' } | { readonly kind: 'call'; readonly call: Call }

/**
 * Writes content blocks one after the other: each is closed before the next one opens. An upstream may interleave tool calls. The writer then sends the
 * open call as it arrives, the other calls when they are complete, and then the text. Decision 0143 gives the reasons.
 */
export class BlockWriter {
  hasToolUse = false
  readonly #context: ReplyContext
  readonly #calls = new Map<number, Call>()
  /** The number of started calls that are not complete. The next field is the number of calls whose block is not open yet. */
  #incomplete = 0
  #waiting = 0
  /** Output that arrived while the arguments of a call were incomplete. */
  #later: Later[] = []
  #open: Open | null = null
  #index = -1
  /** The thinking since the last signature. */
  readonly #unsigned = new GrowingText()
  #names: ToolNames | null = null
  /** The frame of texts in the current block. Null when it was not asked for. */
  #textFrame: EventFrame | null = null
  #hasNoted = false

  constructor(context: ReplyContext) {
    this.#context = context
  }

  get isInText(): boolean {
    return this.#open?.kind === 'text'
  }

  /** The frame of the next text, while a text is open and nothing waits. Otherwise null. */
  get textFrame(): EventFrame | null {
    if (this.#open?.kind !== 'text' || this.#later.length > 0 || this.#incomplete > 0) return null
    this.#textFrame ??= textFrameAt(this.#index)
    return this.#textFrame
  }

  text(text: string): string {
    return this.#sayInTurn('text', text)
  }

  thinking(text: string): string {
    return this.#sayInTurn('thinking', text)
  }

  /** Writes a whole block with its signature. If its thinking was already sent, only the rest and the signature are written. */
  thinkingBlock(given: unknown): string {
    const block = thinkingBlock(given)
    return block === null ? '' : this.#inTurn(() => this.#sayBlock(block))
  }

  /** Writes a note of the gateway, once for each stream. */
  note(text: string): string {
    if (this.#hasNoted) return ''
    this.#hasNoted = true
    return this.#inTurn(() => this.#flushCalls() + this.#say('text', text) + this.#end())
  }

  toolCall(given: Fields): string {
    const index = typeof given['index'] === 'number' ? given['index'] : 0
    const made = isObject(given['function']) ? given['function'] : {}
    const call = this.#calls.get(index) ?? this.#newCall(index, given['id'], made['name'])
    if (typeof made['arguments'] === 'string' && call.state !== 'closed') this.#argue(call, made['arguments'])
    return this.#advance(call) + this.#sayLater()
  }

  /** Closes the open block, and writes everything that waited for it. */
  close(): string {
    return this.#flushCalls() + this.#sayAllLater() + this.#end()
  }

  /** Writes immediately, or after the call whose arguments are incomplete. */
  #inTurn(say: () => string): string {
    if (this.#later.length === 0 && this.#incomplete === 0) return say()
    if (this.#later.length < laterMax) this.#later.push({ kind: 'whole', say })
    return ''
  }

  /** Writes text in the same way as `#inTurn`. Adjacent waiting texts of one kind are joined. */
  #sayInTurn(kind: 'text' | 'thinking', text: string): string {
    if (this.#later.length === 0 && this.#incomplete === 0) return this.#say(kind, text)
    const last = this.#later.at(-1)
    if (last !== undefined && last.kind === kind) last.text.append(text)
    else if (this.#later.length < laterMax) {
      const waiting = new GrowingText()
      waiting.append(text)
      this.#later.push({ kind, text: waiting })
    }
    return ''
  }

  #sayLater(): string {
    return this.#later.length === 0 || this.#incomplete > 0 ? '' : this.#sayAllLater()
  }

  #sayAllLater(): string {
    let text = ''
    for (const waiting of this.#later.splice(0)) text += waiting.kind === 'whole' ? waiting.say() : this.#say(waiting.kind, waiting.text.text)
    return text
  }

  #argue(call: Call, piece: string): void {
    const wasWhole = call.progress.isWhole
    call.unwritten.append(piece)
    call.progress.push(piece)
    if (call.progress.isWhole !== wasWhole) this.#incomplete += wasWhole ? 1 : -1
  }

  #flushCalls(): string {
    let text = this.#end()
    if (this.#waiting > 0) for (const call of this.#calls.values()) if (call.state === 'waiting') text += this.#openCall(call) + this.#end()
    return text
  }

  #newCall(index: number, id: unknown, name: unknown): Call {
    this.#names ??= toolNamesOf(this.#context.request)
    const call: Call = {
      id: typeof id === 'string' && id !== '' ? id : this.#context.newId('toolu_'),
      name: this.#names.toClient(typeof name === 'string' ? name : ''),
      unwritten: new GrowingText(),
      progress: new JsonProgress(),
      state: 'waiting',
    }
    this.#incomplete++
    this.#waiting++
    this.#calls.set(index, call)
    this.hasToolUse = true
    return call
  }

  /** Writes the output that can be sent now that `call` has new arguments. */
  #advance(call: Call): string {
    const open = this.#open
    if (open?.kind === 'call') {
      let text = open.call === call ? this.#argsOf(call) : ''
      if (this.#waiting === 0 || !open.call.progress.isWhole) return text
      text += this.#end()
      return text + this.#openNext()
    }
    return call.state === 'waiting' ? this.#openCall(call) : ''
  }

  /** Opens the waiting calls in their order. Complete ones are written immediately; the first incomplete one stays open. */
  #openNext(): string {
    let text = ''
    for (const call of this.#calls.values()) {
      if (call.state !== 'waiting') continue
      text += this.#openCall(call)
      if (!call.progress.isWhole || this.#waiting === 0) break
    }
    return text
  }

  #openCall(call: Call): string {
    call.state = 'open'
    this.#waiting--
    return this.#begin({ type: 'tool_use', id: call.id, name: call.name, input: {} }, { kind: 'call', call }) + this.#argsOf(call)
  }

  #argsOf(call: Call): string {
    const text = call.unwritten.take()
    return text === '' ? '' : textDeltaFrame(this.#index, 'input_json_delta', 'partial_json', text)
  }

  #say(kind: 'text' | 'thinking', said: string): string {
    if (kind === 'thinking') this.#unsigned.append(said)
    if (this.#open?.kind === kind) return this.#textDelta(kind, said)
    const block = kind === 'text' ? { type: 'text', text: '' } : unsigned
    return this.#flushCalls() + this.#begin(block, { kind }) + this.#textDelta(kind, said)
  }

  #textDelta(kind: 'text' | 'thinking', said: string): string {
    return textDeltaFrame(this.#index, `${kind}_delta`, kind, said)
  }

  /**
   * Writes a whole block. Thinking that was already sent is not repeated. If its signature arrives only after text, the signature gets a block of its own
   * with empty thinking.
   */
  #sayBlock(block: Fields): string {
    if (block['type'] === 'redacted_thinking') return this.#flushCalls() + this.#begin(block, { kind: 'thinking' }) + this.#end()
    const whole = String(block['thinking'])
    const said = this.#unsigned.take()
    // The thinking that was sent may be longer than this block, because unsigned thinking may come before it.
    const isSaid = said.endsWith(whole) || (said !== '' && whole.startsWith(said))
    const before = isSaid && this.#open?.kind === 'thinking' ? '' : this.#flushCalls() + this.#begin(unsigned, { kind: 'thinking' })
    const rest = isSaid ? whole.slice(said.length) : whole
    const thinking = rest === '' ? '' : this.#textDelta('thinking', rest)
    return before + thinking + this.#delta({ type: 'signature_delta', signature: block['signature'] }) + this.#end()
  }

  #begin(block: Fields, open: Open): string {
    const ended = this.#end()
    this.#index++
    this.#open = open
    this.#textFrame = null
    return ended + messagesFrame({ type: 'content_block_start', index: this.#index, content_block: block })
  }

  #delta(delta: Fields): string {
    return messagesFrame({ type: 'content_block_delta', index: this.#index, delta })
  }

  #end(): string {
    const open = this.#open
    if (open === null) return ''
    if (open.kind === 'call') {
      open.call.state = 'closed'
      if (!open.call.progress.isWhole) this.#incomplete--
    }
    this.#open = null
    return messagesFrame({ type: 'content_block_stop', index: this.#index })
  }
}

const unsigned: Fields = Object.freeze({ type: 'thinking', thinking: '', signature: '' })
