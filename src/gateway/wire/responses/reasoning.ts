import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../json/json-texts.ts'
import { textOf } from './json.ts'

/**
 * The mark of thinking that this gateway packed. A client of the Responses API carries thinking from turn to turn in `encrypted_content` of a reasoning
 * item. The gateway packs the thinking blocks with their provider's signatures into it. For models without signatures it packs the plain text. The packed
 * text is not encrypted, because the client has already read it.
 */
const mark = 'br1.'

/** The name under which the gateway reports dropped thinking that only its own provider can read. */
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
 * Returns the thinking of a reasoning item. If another gateway or provider wrote the item, it returns only the readable part. `texts` bounds the JSON texts
 * of the body together.
 */
export function thinkingOf(item: JsonObject, texts: JsonTexts): Thinking & { readonly isForeign: boolean } {
  const packed = textOf(item['encrypted_content'])
  const kept = packed?.startsWith(mark) === true ? texts.object(Buffer.from(packed.slice(mark.length), 'base64url').toString('utf8')) : null
  const readable = [...objectsOf(item['summary']), ...objectsOf(item['content'])].flatMap(part => textOf(part['text']) ?? []).join('\n\n')
  if (kept === null) return { text: readable, blocks: [], isForeign: packed !== null && packed !== '' }
  const blocks = objectsOf(kept['blocks']).filter(isBlock)
  return { text: textOf(kept['text']) ?? textOfBlocks(blocks), blocks, isForeign: false }
}

/**
 * True for a reasoning item whose thinking this gateway has packed. A provider of the Responses API would refuse it, because it did not encrypt the
 * thinking itself.
 */
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
