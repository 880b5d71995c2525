import { type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { JsonTexts } from '../../../wire/json/json-texts.ts'
import { textOf } from '../json-values.ts'

/**
 * The mark of packed reasoning items. Reasoning items of the Responses API become thinking blocks of the hub format, and are converted back in the
 * next turn. The block's signature contains the provider's item. Clients of every format therefore return the complete item.
 */
const mark = 'brr1.'

/** Returns the block for a reasoning item. Returns null if the item contains nothing to keep. */
export function blockOfItem(item: JsonObject): Record<string, unknown> | null {
  const encrypted = textOf(item['encrypted_content'])
  if (encrypted === '') return null
  const summary = objectsOf(item['summary'])
  const packed = mark + Buffer.from(JSON.stringify({ id: item['id'], summary, encrypted_content: encrypted })).toString('base64url')
  const thinking = readableText(item)
  return thinking === '' ? { type: 'redacted_thinking', data: packed } : { type: 'thinking', thinking, signature: packed }
}

/** Returns the reasoning item in a block. Returns null if another provider signed the block. `texts` counts the JSON texts of the same body. */
export function itemOfBlock(block: JsonObject, texts: JsonTexts): Record<string, unknown> | null {
  const packed = textOf(block['signature']) || textOf(block['data'])
  if (!packed.startsWith(mark)) return null
  const kept = texts.object(Buffer.from(packed.slice(mark.length), 'base64url').toString('utf8'))
  const encrypted = textOf(kept?.['encrypted_content'])
  if (kept === null || encrypted === '') return null
  return { type: 'reasoning', id: kept['id'], summary: objectsOf(kept['summary']), encrypted_content: encrypted }
}

/** Returns the readable text of a reasoning item: its summary, or its text when there is no summary. */
export function readableText(item: JsonObject): string {
  const parts = objectsOf(item['summary']).length > 0 ? objectsOf(item['summary']) : objectsOf(item['content'])
  return parts.map(part => textOf(part['text'])).join('\n\n')
}
