import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ChatChunk, StreamFault } from '../../chat/chat-stream.ts'
import type { ReplyContext, StreamWriter } from '../../client-format.ts'
import { JsonTexts } from '../../json/json-texts.ts'
import { textOf } from '../../responses/json.ts'
import { isBlock, textOfBlocks } from '../../responses/reasoning.ts'
import { CallSorter } from '../../responses/reply/call-deltas.ts'
import { saidBy } from '../../responses/reply/output.ts'
import { GrowingText } from '../../sse/growing-text.ts'
import type { EventFrame } from '../../sse/repeated-events.ts'
import { dataFrame } from '../../sse/sse.ts'
import type { TokenUsage } from '../../usage.ts'
import { configOf, fieldOf } from '../fields.ts'
import { showsThoughts } from '../request/to-hub.ts'
import { geminiToolNames } from '../tool-names.ts'
import { endOf, type MadeCall, withSignature } from './candidate.ts'
import { faultBody } from './error-body.ts'
import { imageParts } from './reply.ts'
import { usageMetadata } from './usage.ts'

/**
 * The event that keeps a silent stream open: a chunk without content. A comment would be wrong, because some clients of this API read every line as JSON.
 */
export const keepAlive = dataFrame({})

/** The most answers of one stream. Others are left out. */
const answersMax = 8

/** One answer of a stream. Its calls wait for the end, because this API has whole calls only. */
class Answer {
  readonly #sorter = new CallSorter()
  readonly calls: { id: string | null; name: string; readonly args: GrowingText }[] = []
  readonly thinking = new GrowingText()
  readonly blocks: JsonObject[] = []
  finishReason: unknown = null
  hasRefusal = false

  addCall(delta: unknown): void {
    const piece = this.#sorter.sort(delta)
    if (piece === null) return
    const call = this.calls[piece.call] ?? { id: null, name: '', args: new GrowingText() }
    this.calls[piece.call] = call
    call.id ??= piece.id
    // A name may come in two pieces. Some providers repeat the whole name, and that repetition is not appended.
    if (call.args.length === 0 && call.name !== piece.name) call.name += piece.name
    // Some providers write an empty object before the real arguments.
    if (call.args.text.trim() === '{}' && piece.argumentsText !== '') call.args.take()
    call.args.append(piece.argumentsText)
  }
}

/** Writes a hub stream as chunks of Google's API. The last chunk has the calls, the reason of the end, and the usage with the bill. */
export class GeminiWriter implements StreamWriter {
  readonly keepAlive = keepAlive
  readonly keepsOutput = true
  readonly #context: ReplyContext
  readonly #answers = new Map<number, Answer>()
  readonly #shows: boolean
  readonly #isSingle: boolean
  readonly #head: JsonObject
  #frame: EventFrame | null = null
  #isStarted = false
  #isOver = false
  /** True when the last chunk had only a text. */
  #isInText = false

  constructor(context: ReplyContext) {
    this.#context = context
    this.#shows = showsThoughts(context.request)
    this.#isSingle = (fieldOf(configOf(context.request), 'candidateCount') ?? 1) === 1
    this.#head = { modelVersion: context.model, responseId: context.newId('resp_') }
  }

  chunk(chunk: ChatChunk): string {
    if (this.#isOver) return ''
    const candidates = objectsOf(chunk.choices).flatMap(choice => this.#candidate(choice))
    this.#isInText = candidates.length === 1 && isTextAlone(candidates[0])
    if (candidates.length === 0 && this.#isStarted) return ''
    this.#isStarted = true
    return dataFrame(candidates.length === 0 ? this.#head : { candidates, ...this.#head })
  }

  textFrame(): EventFrame | null {
    if (!this.#isInText || this.#isOver || !this.#isSingle) return null
    this.#frame ??= frameOf(this.#head)
    return this.#frame
  }

  finish(usage: TokenUsage): string {
    if (this.#isOver) return ''
    this.#isOver = true
    if (this.#answers.size === 0) this.#answers.set(0, new Answer())
    const shared = { names: geminiToolNames(this.#context.request), texts: new JsonTexts() }
    const candidates = [...this.#answers].map(([index, answer]) => {
      const finish = { reason: answer.finishReason, hasRefusal: answer.hasRefusal }
      const { parts, end } = endOf(this.#callsOf(answer), finish, shared.names, shared.texts)
      const signed = withSignature(parts, { text: answer.thinking.text, blocks: answer.blocks })
      return { content: { parts: signed.length === 0 ? [{ text: '' }] : signed, role: 'model' }, ...end, index }
    })
    return dataFrame({ candidates, usageMetadata: usageMetadata(usage), ...this.#head, x_br: this.#context.bill(usage) })
  }

  fail(fault: StreamFault, usage: TokenUsage): string {
    if (this.#isOver) return ''
    this.#isOver = true
    return failFrame(fault, usage, this.#context)
  }

  #candidate(choice: JsonObject): readonly JsonObject[] {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0
    const answer = this.#answerOf(index)
    if (answer === null) return []
    if (typeof choice['finish_reason'] === 'string') answer.finishReason = choice['finish_reason']
    const parts = isObject(choice['delta']) ? this.#partsOf(choice['delta'], answer) : []
    return parts.length === 0 ? [] : [{ content: { parts, role: 'model' }, index }]
  }

  #answerOf(index: number): Answer | null {
    const known = this.#answers.get(index)
    if (known !== undefined || this.#answers.size >= answersMax) return known ?? null
    const made = new Answer()
    this.#answers.set(index, made)
    return made
  }

  #partsOf(delta: JsonObject, answer: Answer): readonly JsonObject[] {
    const parts: JsonObject[] = []
    const blocks = objectsOf(delta['thinking_blocks']).filter(isBlock)
    const thought = textOf(delta['reasoning_content']) ?? textOf(delta['reasoning']) ?? ''
    if (thought !== '') {
      answer.thinking.append(thought)
      if (this.#shows) parts.push({ text: thought, thought: true })
    }
    for (const block of blocks) answer.blocks.push(block)
    const late = this.#shows && answer.thinking.length === 0 ? textOfBlocks(blocks) : ''
    if (late !== '') parts.push({ text: late, thought: true })
    const refusal = textOf(delta['refusal']) ?? ''
    if (refusal !== '') answer.hasRefusal = true
    for (const text of [saidBy(delta['content']), refusal]) if (text !== '') parts.push({ text })
    parts.push(...imageParts(delta['images']))
    if (Array.isArray(delta['tool_calls'])) for (const call of delta['tool_calls']) answer.addCall(call)
    return parts
  }

  #callsOf({ calls }: Answer): readonly MadeCall[] {
    return calls.flatMap(call =>
      call === undefined || call.name === '' ? [] : { id: call.id ?? this.#context.newId('call_'), name: call.name, argumentsText: call.args.text },
    )
  }
}

/** Returns the end of a stream that failed: the error with the usage so far and its price. It has no reason of an end, because clients would read success. */
export function failFrame(fault: StreamFault, usage: TokenUsage, { bill }: ReplyContext): string {
  return dataFrame({ ...faultBody(fault), usageMetadata: usageMetadata(usage), x_br: bill(usage) })
}

function isTextAlone(candidate: JsonObject | undefined): boolean {
  const content = candidate?.['content']
  const parts = isObject(content) ? objectsOf(content['parts']) : []
  return parts.length === 1 && parts[0]?.['thought'] === undefined && typeof parts[0]?.['text'] === 'string'
}

/** Returns the bytes before and after the text of a chunk that has only a text. */
function frameOf(head: JsonObject): EventFrame {
  const event = dataFrame({ candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, index: 0 }], ...head })
  const at = event.indexOf('"text":""') + '"text":"'.length
  return { before: Buffer.from(event.slice(0, at)), after: Buffer.from(event.slice(at)) }
}
