import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../json/json-texts.ts'
import { textOf } from './json.ts'

/**
 * The mark of thinking that this gateway packed. A client of the Responses API carries thinking from turn to turn in `encrypted_content` of a reasoning item.
 * The gateway packs into it the blocks with the signatures of their provider, or the plain text of models that sign nothing. It is packed, not secret: the
 * client has already read the text.
 */
const mark = 'br1.'

/** The name under which thinking is reported that only its own provider can read. */
export const foreignThinkingName = 'input.reasoning.encrypted_content'

/** The thinking of a turn that is sent back to the model. */
export interface Thinking {
  readonly text: string
  /** Blocks of the hub format. The list is empty for models that sign nothing. */
  readonly blocks: readonly JsonObject[]
}

/** Returns the `encrypted_content` for some thinking. */
export function packThinking({ text, blocks }: Thinking): string {
  return mark + Buffer.from(JSON.stringify(blocks.length > 0 ? { blocks } : { text })).toString('base64url')
}

/**
 * Returns the thinking of a reasoning item that this gateway wrote. Of an item from another gateway or provider it returns the readable part. `texts` are the
 * JSON texts of the same body.
 */
export function thinkingOf(item: JsonObject, texts: JsonTexts): Thinking & { readonly isForeign: boolean } {
  const packed = textOf(item['encrypted_content'])
  const kept = packed?.startsWith(mark) === true ? texts.object(Buffer.from(packed.slice(mark.length), 'base64url').toString('utf8')) : null
  const readable = [...objectsOf(item['summary']), ...objectsOf(item['content'])].flatMap(part => textOf(part['text']) ?? []).join('\n\n')
  if (kept === null) return { text: readable, blocks: [], isForeign: packed !== null && packed !== '' }
  const blocks = objectsOf(kept['blocks']).filter(isBlock)
  return { text: textOf(kept['text']) ?? textOfBlocks(blocks), blocks, isForeign: false }
}

/** True for a reasoning item whose thinking this gateway has packed. A provider of the API has not sealed it and would refuse it. */
export function isPackedHere(item: unknown): boolean {
  return isObject(item) && item['type'] === 'reasoning' && textOf(item['encrypted_content'])?.startsWith(mark) === true
}

/** Returns the readable text of thinking blocks. */
export function textOfBlocks(blocks: readonly JsonObject[]): string {
  return blocks.flatMap(block => textOf(block['thinking']) ?? []).join('')
}

/** True for a valid thinking block of the hub format. */
export function isBlock(value: unknown): value is JsonObject {
  if (!isObject(value)) return false
  return value['type'] === 'redacted_thinking' ? typeof value['data'] === 'string' : value['type'] === 'thinking' && typeof value['thinking'] === 'string'
}
