import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ChatChunk, StreamFault } from '../../chat/chat-stream.ts'
import type { ReplyContext, StreamWriter } from '../../client-format.ts'
import { GrowingText } from '../../sse/growing-text.ts'
import type { TokenUsage } from '../../usage.ts'
import { textOf } from '../json.ts'
import { isBlock, textOfBlocks } from '../reasoning.ts'
import { CallSorter } from './call-deltas.ts'
import { EventFrames } from './event-frames.ts'
import { OpenCall, OpenMessage, OpenReasoning } from './open-items.ts'
import { type ItemMaker, type ItemStatus, makerOf, saidBy } from './output.ts'
import { endOf, type ResponseEnd, responseError, responseObject } from './response-object.ts'

/** A comment, which clients ignore. */
export const keepAlive = ': keep-alive\n\n'

/**
 * Writes a hub stream as events of the Responses API. Items are opened in the order in which the model begins them, and each is closed once. Thinking and text
 * are closed when something else begins. Calls are closed at the end, because their deltas may be interleaved.
 */
export class ResponsesWriter implements StreamWriter {
  readonly keepAlive = keepAlive
  readonly keepsOutput = true
  readonly #context: ReplyContext
  readonly #frames = new EventFrames()
  readonly #maker: ItemMaker
  readonly #id: string
  readonly #output: JsonObject[] = []
  readonly #sorter = new CallSorter()
  readonly #calls: OpenCall[] = []
  #open: OpenReasoning | OpenMessage | null = null
  #items = 0
  #isStarted = false
  #finishReason: unknown = null
  /** The number of announced calls. */
  #started = 0
  /** The thinking since the last signature. */
  readonly #unsigned = new GrowingText()

  constructor(context: ReplyContext) {
    this.#context = context
    this.#id = context.newId('resp_')
    this.#maker = makerOf(context)
  }

  chunk(chunk: ChatChunk): string {
    const start = this.#start()
    const choice = objectsOf(chunk.choices).find(({ index }) => index === undefined || index === 0)
    if (choice === undefined) return start
    const { delta, finish_reason: finishReason } = choice
    const said = isObject(delta) ? this.#delta(delta) : ''
    if (typeof finishReason === 'string') this.#finishReason = finishReason
    return start + said
  }

  finish(usage: TokenUsage): string {
    const end = endOf(this.#finishReason)
    const closing = this.#start() + this.#closeAll(end.status === 'completed' ? 'completed' : 'incomplete')
    return closing + this.#last(end, usage)
  }

  /** Ends a failed stream. Open items stay open, because a client would execute a closed call with incomplete arguments. */
  fail(fault: StreamFault, usage: TokenUsage): string {
    return this.#start() + this.#last({ status: 'failed', error: responseError(fault) }, usage)
  }

  #start(): string {
    if (this.#isStarted) return ''
    this.#isStarted = true
    const response = responseObject(this.#id, this.#context, { status: 'in_progress' }, [], null)
    return this.#frames.frame('response.created', { response }) + this.#frames.frame('response.in_progress', { response })
  }

  #last(end: ResponseEnd, usage: TokenUsage): string {
    const output = this.#output.filter(item => item !== undefined)
    return this.#frames.frame(`response.${end.status}`, { response: responseObject(this.#id, this.#context, end, output, usage) })
  }

  #delta(delta: JsonObject): string {
    let text = ''
    const thought = textOf(delta['reasoning_content']) ?? textOf(delta['reasoning']) ?? ''
    if (thought !== '') text += this.#think(thought)
    const blocks = objectsOf(delta['thinking_blocks']).filter(isBlock)
    const said = saidBy(delta['content'])
    // A signature may arrive together with a later part of a text. It then comes after the text and does not split it.
    const isLate = said !== '' && this.#open?.kind === 'message'
    if (isLate) text += this.#inMessage(open => open.say('text', said))
    if (blocks.length > 0) text += this.#keep(blocks)
    if (said !== '' && !isLate) text += this.#inMessage(open => open.say('text', said))
    const refusal = textOf(delta['refusal']) ?? ''
    if (refusal !== '') text += this.#inMessage(open => open.say('refusal', refusal))
    if (Array.isArray(delta['tool_calls'])) for (const call of delta['tool_calls']) text += this.#call(call)
    return text
  }

  #think(thought: string): string {
    this.#unsigned.append(thought)
    return this.#inReasoning(open => open.say(thought))
  }

  /** Keeps whole blocks. If their text was already sent as deltas, perhaps in an item that is closed, it is not sent again. */
  #keep(blocks: readonly JsonObject[]): string {
    const unsigned = this.#unsigned.take()
    const isSaid = this.#open?.kind !== 'reasoning' && unsigned !== '' && unsigned.endsWith(textOfBlocks(blocks))
    const kept = isSaid ? blocks.map(block => (block['type'] === 'thinking' ? { ...block, thinking: '' } : block)) : blocks
    return this.#inReasoning(open => open.keep(kept))
  }

  #inReasoning(write: (open: OpenReasoning) => string): string {
    if (this.#open?.kind === 'reasoning') return write(this.#open)
    const closing = this.#startCalls(this.#calls.length) + this.#closeOpen('completed')
    const open = new OpenReasoning(this.#items++, this.#frames, this.#maker)
    this.#open = open
    return closing + open.start() + write(open)
  }

  #inMessage(write: (open: OpenMessage) => string): string {
    if (this.#open?.kind === 'message') return write(this.#open)
    const closing = this.#startCalls(this.#calls.length) + this.#closeOpen('completed')
    const open = new OpenMessage(this.#items++, this.#frames, this.#maker)
    this.#open = open
    return closing + open.start() + write(open)
  }

  #call(delta: unknown): string {
    const piece = this.#sorter.sort(delta)
    if (piece === null) return ''
    const call = this.#calls[piece.call] ?? new OpenCall(this.#frames, this.#maker)
    this.#calls[piece.call] = call
    call.callId ??= piece.id
    // A name may arrive in two pieces and is complete when the arguments begin. Some providers repeat the whole name, and that repetition is not appended.
    if (!call.isStarted) call.name += call.name === piece.name ? '' : piece.name
    if (piece.argumentsText === '') return ''
    return this.#startCalls(piece.call) + call.say(piece.argumentsText)
  }

  /** Announces the calls up to that one, in the order in which the model began them. */
  #startCalls(last: number): string {
    let text = ''
    for (; this.#started <= last; this.#started++) {
      const call = this.#calls[this.#started]
      if (call === undefined) break
      text += this.#closeOpen('completed') + call.start(this.#items++)
    }
    return text
  }

  #closeOpen(status: ItemStatus): string {
    const open = this.#open
    this.#open = null
    return open === null ? '' : this.#closed(open.index, open.close(status))
  }

  #closeAll(status: ItemStatus): string {
    let text = this.#closeOpen(status) + this.#startCalls(this.#calls.length)
    for (const call of this.#calls) text += this.#closed(call.index, call.close(status))
    return text
  }

  #closed(index: number, { frames, item }: { readonly frames: string; readonly item: JsonObject }): string {
    this.#output[index] = item
    return frames
  }
}
