/** What one answer consists of in Google's API: its parts and its end. */
import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import type { JsonTexts } from '../../json/json-texts.ts'
import type { ToolNames } from '../../messages/tool-names.ts'
import { packSignature } from '../signatures.ts'

/** A complete call of the hub format. */
export interface MadeCall {
  readonly id: string
  readonly name: string
  readonly argumentsText: string
}

/** The last parts and the end of an answer. */
export interface CandidateEnd {
  readonly parts: readonly JsonObject[]
  readonly end: JsonObject
}

/** Why an answer ended, and whether it was refused. */
export interface Finish {
  readonly reason: unknown
  readonly hasRefusal: boolean
}

/**
 * Returns the calls as parts, and the end of the answer. A call whose arguments cannot be read was cut off: the client must not run it, so it is left out, and
 * the end says so.
 */
export function endOf(calls: readonly MadeCall[], { reason, hasRefusal }: Finish, names: ToolNames, texts: JsonTexts): CandidateEnd {
  const parts: JsonObject[] = []
  let broken: string | null = null
  for (const { id, name, argumentsText } of calls) {
    const args = argumentsOf(argumentsText, texts)
    if (args === null) broken ??= names.toClient(name)
    else parts.push({ functionCall: { id, name: names.toClient(name), args } })
  }
  if (reason === 'length') return { parts, end: { finishReason: 'MAX_TOKENS' } }
  if (reason === 'content_filter' || (hasRefusal && calls.length === 0)) return { parts, end: { finishReason: 'SAFETY' } }
  if (broken === null) return { parts, end: { finishReason: 'STOP' } }
  return { parts, end: { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: `The arguments of "${broken.slice(0, 100)}" are no JSON object.` } }
}

function argumentsOf(text: string, texts: JsonTexts): JsonObject | null {
  if (text.trim() === '') return {}
  try {
    const value = texts.value(text)
    return isObject(value) ? value : null
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return null
  }
}

/**
 * Puts the thinking of an answer into the signature of its first call, or of its last part where it has no call. Without a part it becomes an empty text.
 * Unsigned thinking is needed only between a call and its result.
 */
export function withSignature(
  parts: readonly JsonObject[],
  thinking: { readonly text: string; readonly blocks: readonly JsonObject[] },
): readonly JsonObject[] {
  const first = parts.findIndex(part => part['functionCall'] !== undefined)
  if (thinking.blocks.length === 0 && (first === -1 || thinking.text === '')) return parts
  const thoughtSignature = packSignature(thinking)
  if (parts.length === 0) return [{ text: '', thoughtSignature }]
  const at = first === -1 ? parts.length - 1 : first
  return parts.map((part, index) => (index === at ? { ...part, thoughtSignature } : part))
}
