import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../json/json-texts.ts'
import { textOf } from './json.ts'

/**
 * Thinking as a client of the Responses API carries it from turn to turn: `encrypted_content` of a reasoning item. Ours holds the
 * blocks with the signatures of their provider, or the bare text of models that sign nothing. It is packed, not secret: the client
 * has read the text already.
 */
const mark = 'br1.'

/** The name for thinking that only its provider can read. */
export const foreignThinkingName = 'input.reasoning.encrypted_content'

/** What of a turn's thinking goes back to the model. */
export interface Thinking {
  readonly text: string
  /** Blocks of the hub format; empty for models that sign nothing. */
  readonly blocks: readonly JsonObject[]
}

/** The `encrypted_content` for some thinking. */
export function packThinking({ text, blocks }: Thinking): string {
  return mark + Buffer.from(JSON.stringify(blocks.length > 0 ? { blocks } : { text })).toString('base64url')
}

/** The thinking in a reasoning item that we wrote; of an item by another gateway or provider its readable part. `texts` are those of the same body. */
export function thinkingOf(item: JsonObject, texts: JsonTexts): Thinking & { readonly isForeign: boolean } {
  const packed = textOf(item['encrypted_content'])
  const kept = packed?.startsWith(mark) === true ? texts.object(Buffer.from(packed.slice(mark.length), 'base64url').toString('utf8')) : null
  const readable = [...objectsOf(item['summary']), ...objectsOf(item['content'])].flatMap(part => textOf(part['text']) ?? []).join('\n\n')
  if (kept === null) return { text: readable, blocks: [], isForeign: packed !== null && packed !== '' }
  const blocks = objectsOf(kept['blocks']).filter(isBlock)
  return { text: textOf(kept['text']) ?? textOfBlocks(blocks), blocks, isForeign: false }
}

/** True for a reasoning item whose thinking is packed by this gateway: a provider of the API has not sealed it and would refuse it. */
export function isPackedHere(item: unknown): boolean {
  return isObject(item) && item['type'] === 'reasoning' && textOf(item['encrypted_content'])?.startsWith(mark) === true
}

/** The readable text of thinking blocks. */
export function textOfBlocks(blocks: readonly JsonObject[]): string {
  return blocks.flatMap(block => textOf(block['thinking']) ?? []).join('')
}

/** A whole thinking block of the hub format. */
export function isBlock(value: unknown): value is JsonObject {
  if (!isObject(value)) return false
  return value['type'] === 'redacted_thinking' ? typeof value['data'] === 'string' : value['type'] === 'thinking' && typeof value['thinking'] === 'string'
}
