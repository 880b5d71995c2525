/** The unfinished items of a streamed response. Each item writes its own events and is closed once. */

import type { JsonObject } from '../../../../platform/values/json.ts'
import { GrowingText } from '../../sse/growing-text.ts'
import { textOfBlocks } from '../reasoning.ts'
import { freeformInput } from '../request/tools.ts'
import type { EventFrames } from './event-frames.ts'
import { argumentsText, callItem, callPrefix, type ItemMaker, type ItemStatus, messageItem, reasoningItem, refusalPart, textPart } from './output.ts'

/** Unfinished thinking. */
export class OpenReasoning {
  readonly kind = 'reasoning'
  readonly index: number
  readonly #frames: EventFrames
  readonly #id: string
  readonly #asSummary: boolean
  readonly #blocks: JsonObject[] = []
  readonly #text = new GrowingText()
  #hasPart = false

  constructor(index: number, frames: EventFrames, { newId, asSummary }: ItemMaker) {
    this.index = index
    this.#frames = frames
    this.#id = newId('rs_')
    this.#asSummary = asSummary
  }

  start(): string {
    return this.#frames.frame('response.output_item.added', { output_index: this.index, item: { id: this.#id, type: 'reasoning', summary: [] } })
  }

  say(text: string): string {
    this.#text.append(text)
    const opening = this.#hasPart ? '' : this.#part('added', '')
    this.#hasPart = true
    return opening + this.#frames.frame(`${this.#name}.delta`, { ...this.#at, delta: text })
  }

  /** Keeps whole blocks with their signatures. Normally their text was already sent as deltas. If it was not, it is sent now. */
  keep(blocks: readonly JsonObject[]): string {
    for (const block of blocks) this.#blocks.push(block)
    const text = textOfBlocks(blocks)
    return this.#text.length === 0 && text !== '' ? this.say(text) : ''
  }

  close(): { readonly frames: string; readonly item: JsonObject } {
    const { text } = this.#text
    const item = reasoningItem(this.#id, { text, blocks: this.#blocks }, this.#asSummary)
    const ending = this.#hasPart ? this.#frames.frame(`${this.#name}.done`, { ...this.#at, text }) + this.#part('done', text) : ''
    return { frames: ending + this.#frames.frame('response.output_item.done', { output_index: this.index, item }), item }
  }

  get #name(): string {
    return this.#asSummary ? 'response.reasoning_summary_text' : 'response.reasoning_text'
  }

  get #at(): JsonObject {
    return { item_id: this.#id, output_index: this.index, ...(this.#asSummary ? { summary_index: 0 } : { content_index: 0 }) }
  }

  #part(what: 'added' | 'done', text: string): string {
    const name = this.#asSummary ? 'response.reasoning_summary_part' : 'response.content_part'
    return this.#frames.frame(`${name}.${what}`, { ...this.#at, part: { type: this.#asSummary ? 'summary_text' : 'reasoning_text', text } })
  }
}

/** An unfinished message: text, a refusal, or one after the other. */
export class OpenMessage {
  readonly kind = 'message'
  readonly index: number
  readonly #frames: EventFrames
  readonly #id: string
  readonly #content: JsonObject[] = []
  #part: 'text' | 'refusal' | null = null
  readonly #text = new GrowingText()

  constructor(index: number, frames: EventFrames, { newId }: ItemMaker) {
    this.index = index
    this.#frames = frames
    this.#id = newId('msg_')
  }

  start(): string {
    return this.#frames.frame('response.output_item.added', { output_index: this.index, item: messageItem(this.#id, 'in_progress', []) })
  }

  say(part: 'text' | 'refusal', text: string): string {
    let opening = ''
    if (this.#part !== part) {
      opening = this.#closePart()
      this.#part = part
      opening += this.#frames.frame('response.content_part.added', { ...this.#at, part: part === 'text' ? textPart('') : refusalPart('') })
    }
    this.#text.append(text)
    const more = part === 'text' ? { logprobs: [] } : {}
    return opening + this.#frames.frame(`response.${part === 'text' ? 'output_text' : 'refusal'}.delta`, { ...this.#at, delta: text, ...more })
  }

  close(status: ItemStatus): { readonly frames: string; readonly item: JsonObject } {
    const ending = this.#closePart()
    const item = messageItem(this.#id, status, this.#content)
    return { frames: ending + this.#frames.frame('response.output_item.done', { output_index: this.index, item }), item }
  }

  get #at(): JsonObject {
    return { item_id: this.#id, output_index: this.index, content_index: this.#content.length }
  }

  #closePart(): string {
    if (this.#part === null) return ''
    const at = this.#at
    const text = this.#text.take()
    const part = this.#part === 'text' ? textPart(text) : refusalPart(text)
    const done =
      this.#part === 'text'
        ? this.#frames.frame('response.output_text.done', { ...at, text, logprobs: [] })
        : this.#frames.frame('response.refusal.done', { ...at, refusal: text })
    this.#content.push(part)
    this.#part = null
    return done + this.#frames.frame('response.content_part.done', { ...at, part })
  }
}

/** An unfinished call. It is announced when its arguments begin, because its name is complete then. */
export class OpenCall {
  readonly kind = 'call'
  index = -1
  name = ''
  callId: string | null = null
  readonly #frames: EventFrames
  readonly #maker: ItemMaker
  #id = ''
  readonly #arguments = new GrowingText()
  /** A `{}` at the beginning is held back, because some providers write it before the real arguments. */
  #held = ''

  constructor(frames: EventFrames, maker: ItemMaker) {
    this.#frames = frames
    this.#maker = maker
  }

  get isStarted(): boolean {
    return this.index !== -1
  }

  start(index: number): string {
    this.index = index
    this.#id = this.#maker.newId(callPrefix(this.#identity))
    this.callId ??= this.#maker.newId('call_')
    return this.#frames.frame('response.output_item.added', { output_index: index, item: this.#item('', 'in_progress') })
  }

  say(text: string): string {
    if (this.#arguments.length === 0 && this.#held === '' && text.trim() === '{}') {
      this.#held = text
      return ''
    }
    this.#held = ''
    this.#arguments.append(text)
    return this.#identity.kind === 'function' ? this.#delta(text) : ''
  }

  close(status: ItemStatus): { readonly frames: string; readonly item: JsonObject } {
    const whole = argumentsText(this.#arguments.text)
    const item = this.#item(whole, status)
    return { frames: this.#ending(whole) + this.#frames.frame('response.output_item.done', { output_index: this.index, item }), item }
  }

  #ending(whole: string): string {
    const { kind, name } = this.#identity
    const at = { item_id: this.#id, output_index: this.index }
    if (kind === 'tool_search') return ''
    if (kind === 'custom') {
      const input = freeformInput(whole)
      return (
        this.#frames.frame('response.custom_tool_call_input.delta', { ...at, delta: input }) +
        this.#frames.frame('response.custom_tool_call_input.done', { ...at, input })
      )
    }
    const late = this.#arguments.length === 0 ? this.#delta(whole) : ''
    return late + this.#frames.frame('response.function_call_arguments.done', { ...at, name, arguments: whole })
  }

  #delta(text: string): string {
    return this.#frames.frame('response.function_call_arguments.delta', { item_id: this.#id, output_index: this.index, delta: text })
  }

  #item(whole: string, status: ItemStatus): JsonObject {
    return callItem({ id: this.#id, callId: this.callId ?? '', identity: this.#identity, texts: this.#maker.texts }, whole, status)
  }

  get #identity(): ReturnType<ItemMaker['names']['identity']> {
    return this.#maker.names.identity(this.name)
  }
}
