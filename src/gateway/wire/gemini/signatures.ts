/**
 * Thinking in `thoughtSignature`. Clients of Google's API send the signature of a part back unchanged. For a model of another provider the gateway packs its
 * thinking into it: the signed blocks, or the text where nothing is signed. The result is base64, because the field contains bytes, and some clients write
 * them in another alphabet of base64. Decision 0873 gives the reasons.
 */
import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../json/json-texts.ts'
import { isBlock, type Thinking, textOfBlocks } from '../responses/reasoning.ts'
import { fieldOf, partsIn, textAt } from './fields.ts'

/** Six bytes become exactly eight characters of base64, in which all alphabets agree. */
const mark = 'br1gem'
const packedStart = Buffer.from(mark).toString('base64')

/** Returns the signature that carries some thinking. */
export function packSignature({ text, blocks }: Thinking): string {
  return Buffer.from(mark + JSON.stringify(blocks.length > 0 ? { blocks } : { text })).toString('base64')
}

/** True for a signature that this gateway has packed. No provider has made it, so none accepts it. */
export const isPackedSignature = (signature: unknown): boolean => typeof signature === 'string' && signature.startsWith(packedStart)

/** Returns the thinking in a packed signature, or null when it cannot be read. `texts` bounds the JSON texts of the body together. */
export function readSignature(signature: string, texts: JsonTexts): Thinking | null {
  const kept = texts.object(Buffer.from(signature, 'base64').toString('utf8').slice(mark.length))
  if (kept === null) return null
  const blocks = objectsOf(kept['blocks']).filter(isBlock)
  return { text: typeof kept['text'] === 'string' ? kept['text'] : textOfBlocks(blocks), blocks }
}

/** True when a content of the conversation has a signature that this gateway has packed. */
export const hasPackedSignature = (content: unknown): boolean => partsIn(content).some(part => isPackedSignature(fieldOf(part, 'thoughtSignature')))

/**
 * Returns a content without packed signatures. With `calls` every first call of the model has a signature: `calls` where it has none of its own. Returns the
 * same object when nothing changes.
 */
export function withOwnSignatures(content: unknown, calls: string | null): unknown {
  if (!isObject(content) || !Array.isArray(content['parts'])) return content
  const parts: readonly unknown[] = content['parts']
  const first = calls === null || content['role'] !== 'model' ? -1 : parts.findIndex(part => isObject(part) && isObject(fieldOf(part, 'functionCall')))
  let isChanged = false
  const kept = parts.map((part, index) => {
    if (!isObject(part)) return part
    const given = fieldOf(part, 'thoughtSignature')
    const isPacked = isPackedSignature(given)
    const isMissing = index === first && textAt(part, 'thoughtSignature') === ''
    if (!isPacked && !isMissing) return part
    isChanged = true
    const { thoughtSignature: _camel, thought_signature: _snake, ...others } = part as JsonObject
    return index === first ? { ...others, thoughtSignature: calls } : others
  })
  return isChanged ? { ...content, parts: kept } : content
}
