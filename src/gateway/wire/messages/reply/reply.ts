import { isObject } from '../../../../platform/values/json.ts'
import type { ReplyContext } from '../../client-format.ts'
import { JsonTexts } from '../../json/json-texts.ts'
import type { TokenUsage } from '../../usage.ts'
import { type ToolNames, toolNamesOf } from '../tool-names.ts'
import { firstChoice, stopOf, stopSequenceOf } from './stop-reason.ts'
import { usageToMessages } from './usage.ts'

type Fields = Readonly<Record<string, unknown>>
type Block = Record<string, unknown>

/** Replaces output for which the messages format has no block. */
export const mediaNote = '[The model answered with an image or sound, which this format cannot carry.]'

/**
 * Converts a whole hub reply to a message. Thinking comes first, because clients of the format expect it there. Of several answers only the first one is used.
 */
export function messageOf(reply: Fields, usage: TokenUsage, context: ReplyContext): Record<string, unknown> {
  const choice = firstChoice(reply['choices']) ?? {}
  const message = isObject(choice['message']) ? choice['message'] : {}
  const text = textBlocks(message['content'])
  const refusal = typeof message['refusal'] === 'string' && message['refusal'] !== '' ? [{ type: 'text', text: message['refusal'] }] : []
  const calls = callBlocks(message, toolNamesOf(context.request), context)
  return {
    id: context.newId('msg_'),
    type: 'message',
    role: 'assistant',
    model: context.model,
    content: [...thinkingBlocks(message), ...text, ...mediaBlocks(message), ...refusal, ...calls],
    ...stopOf({
      finishReason: choice['finish_reason'],
      stopSequence: stopSequenceOf(choice, context.request),
      hasToolUse: calls.length > 0,
      hasRefusal: refusal.length > 0,
    }),
    usage: usageToMessages(usage),
  }
}

/** The most signed blocks of one reply that are looked for in its thinking. */
const soughtMax = 64

/**
 * Returns the thinking blocks of the upstream with their signatures, if there are any. Thinking that is in none of these blocks comes before or after them,
 * without a signature.
 */
function thinkingBlocks({ thinking_blocks: given, reasoning_content: named, reasoning }: Fields): readonly Block[] {
  const signed = Array.isArray(given) ? given.flatMap((block: unknown): readonly Block[] => asList(thinkingBlock(block))) : []
  let rest = [named, reasoning].find(text => typeof text === 'string') ?? ''
  const blocks: Block[] = []
  for (const [index, block] of signed.entries()) {
    const at = index < soughtMax && typeof block['thinking'] === 'string' ? placeOf(block['thinking'], rest) : -1
    if (at !== -1) {
      blocks.push(...unsigned(rest.slice(0, at)))
      rest = rest.slice(at + String(block['thinking']).length)
    }
    blocks.push(block)
  }
  return [...blocks, ...unsigned(rest)]
}

/** The length of the beginning by which a thinking block is looked for, and the number of places that are compared in full. */
const beginningLength = 32
const comparedMax = 8

/**
 * Returns where a text occurs, or -1. It looks for the beginning of the text and compares the rest in a few places only, because the time of
 * `indexOf` with a long text grows with the product of both lengths. Decision 0555 gives the reasons.
 */
function placeOf(wanted: string, text: string): number {
  if (wanted === '') return -1
  const beginning = wanted.slice(0, beginningLength)
  let at = text.indexOf(beginning)
  for (let compared = 0; at !== -1 && compared < comparedMax; compared++) {
    if (text.startsWith(wanted, at)) return at
    at = text.indexOf(beginning, at + 1)
  }
  return -1
}

/** Returns an unsigned block for some thinking. Blank lines between two pieces of thinking do not count as thinking. */
const unsigned = (thinking: string): readonly Block[] => (thinking.trim() === '' ? [] : [{ type: 'thinking', thinking, signature: '' }])

/** Returns one block as the format writes it, or null for an invalid one. */
export function thinkingBlock(block: unknown): Block | null {
  if (!isObject(block)) return null
  const { type, thinking, signature, data } = block
  if (type === 'redacted_thinking') return { type, data: typeof data === 'string' ? data : '' }
  if (type !== 'thinking') return null
  return { type, thinking: typeof thinking === 'string' ? thinking : '', signature: typeof signature === 'string' ? signature : '' }
}

function textBlocks(content: unknown): readonly Block[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return []
  return content.flatMap((part: unknown): readonly Block[] => {
    if (!isObject(part)) return []
    if (typeof part['text'] === 'string') return part['text'] === '' ? [] : [{ type: 'text', text: part['text'] }]
    return [{ type: 'text', text: mediaNote }]
  })
}

/** Returns a note for images and sound, which are members next to the content. */
function mediaBlocks({ images, audio }: Fields): readonly Block[] {
  return (Array.isArray(images) && images.length > 0) || isObject(audio) ? [{ type: 'text', text: mediaNote }] : []
}

function callBlocks(message: Fields, names: ToolNames, context: ReplyContext): readonly Block[] {
  const { tool_calls: calls, function_call: older } = message
  const made: readonly unknown[] = Array.isArray(calls) && calls.length > 0 ? calls : isObject(older) ? [{ function: older }] : []
  const texts = new JsonTexts()
  return made.flatMap(call => {
    const called = isObject(call) ? call['function'] : undefined
    if (!isObject(call) || !isObject(called) || typeof called['name'] !== 'string') return []
    const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : context.newId('toolu_')
    return [{ type: 'tool_use', id, name: names.toClient(called['name']), input: inputOf(called['arguments'], texts) }]
  })
}

/**
 * Returns the arguments as an object. Arguments that were cut off cannot be read and become an empty object. The stop reason then says that the answer was
 * cut off. Throws for arguments beyond the bounds.
 */
function inputOf(args: unknown, texts: JsonTexts): Record<string, unknown> {
  if (isObject(args)) return args
  try {
    const value: unknown = typeof args === 'string' ? texts.value(args) : {}
    return isObject(value) ? value : {}
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return {}
  }
}

const asList = (block: Block | null): readonly Block[] => (block === null ? [] : [block])
