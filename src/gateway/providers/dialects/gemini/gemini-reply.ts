/** Converts replies of Gemini to the hub format. Whole replies and streams share this code. */
import { createHash } from 'node:crypto'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { GrowingText } from '../../../wire/sse/growing-text.ts'
import { type TokenUsage, tokenCount } from '../../../wire/usage.ts'
import { textOf } from '../json-values.ts'
import { blockSignature, signedCallId } from './gemini-signature.ts'

/**
 * Reads `usageMetadata`. Thoughts count as completion tokens. Text that the provider's own tools read counts as prompt tokens. Returns null if a
 * count is implausible.
 */
export function geminiUsage(metadata: unknown): TokenUsage | null {
  if (!isObject(metadata)) return null
  // Gemini omits a count of zero.
  const count = (name: string): number | null => tokenCount(metadata[name] ?? 0)
  const prompt = tokenCount(metadata['promptTokenCount'])
  const toolPrompt = count('toolUsePromptTokenCount')
  const said = count('candidatesTokenCount')
  const reasoningTokens = count('thoughtsTokenCount')
  if (prompt === null || toolPrompt === null || said === null || reasoningTokens === null) return null
  const promptTokens = prompt + toolPrompt
  const audioTokens = Math.min(promptTokens, audioIn(metadata['promptTokensDetails']))
  return {
    promptTokens,
    ...(audioTokens === 0 ? {} : { audioTokens }),
    completionTokens: said + reasoningTokens,
    cachedTokens: Math.min(promptTokens, count('cachedContentTokenCount') ?? 0),
    cacheWriteTokens: 0,
    reasoningTokens,
  }
}

/** Returns the number of audio tokens, if the provider reports the prompt by modality. */
function audioIn(details: unknown): number {
  return objectsOf(details).reduce((sum, { modality, tokenCount: count }) => sum + (modality === 'AUDIO' ? (tokenCount(count) ?? 0) : 0), 0)
}

const blocked = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
])

/** Returns the `finish_reason` of a candidate. Returns null when it has not finished. */
export function finishReason(reason: unknown, hasCalls: boolean): string | null {
  if (typeof reason !== 'string' || reason === 'FINISH_REASON_UNSPECIFIED') return null
  if (reason === 'MAX_TOKENS') return 'length'
  if (blocked.has(reason)) return 'content_filter'
  return hasCalls ? 'tool_calls' : 'stop'
}

/** Returns a text that says why an answer was blocked. Returns null when it was not blocked. */
export function blockedText(candidate: JsonObject): string | null {
  const reason = textOf(candidate['finishReason'])
  if (!blocked.has(reason)) return null
  return textOf(candidate['finishMessage']) || `The provider blocked the answer (${reason}).`
}

/** Returns a text that says why a prompt was blocked and not answered. Returns null when it was not blocked. */
export function blockedPromptText(reply: JsonObject): string | null {
  const feedback = reply['promptFeedback']
  if (!isObject(feedback) || typeof feedback['blockReason'] !== 'string') return null
  return textOf(feedback['blockReasonMessage']) || `The provider blocked the prompt (${feedback['blockReason']}).`
}

/** The content of one or more parts, as fields of a hub message or delta. */
export interface Said {
  content: string
  reasoning: string
  calls: Record<string, unknown>[]
  /** Complete signed blocks of thinking. */
  blocks: Record<string, unknown>[]
  images: Record<string, unknown>[]
}

/** Reads the parts of one candidate, over all chunks of a stream. */
export class PartReader {
  readonly #index: number
  /** The text of the thinking since the last signed block. */
  readonly #thinking = new GrowingText()
  calls = 0

  constructor(index: number) {
    this.#index = index
  }

  read(content: unknown, responseId: unknown): Said {
    const said: Said = { content: '', reasoning: '', calls: [], blocks: [], images: [] }
    for (const part of isObject(content) ? objectsOf(content['parts']) : []) this.#readPart(part, textOf(responseId), said)
    return said
  }

  #readPart(part: JsonObject, responseId: string, said: Said): void {
    const { functionCall, inlineData, thoughtSignature } = part
    const text = textOf(part['text'])
    if (isObject(functionCall)) {
      said.calls.push(this.#call(functionCall, responseId, textOf(thoughtSignature)))
      return
    }
    if (part['thought'] === true) {
      said.reasoning += text
      this.#thinking.append(text)
    } else said.content += text
    if (isObject(inlineData))
      said.images.push({ type: 'image_url', image_url: { url: `data:${textOf(inlineData['mimeType'])};base64,${textOf(inlineData['data'])}` } })
    if (textOf(thoughtSignature) === '') return
    said.blocks.push({ type: 'thinking', thinking: this.#thinking.take(), signature: blockSignature(textOf(thoughtSignature)) })
  }

  /** Returns a call. Calls often arrive without an id. The generated id is the same each time the same reply is read. */
  #call(call: JsonObject, responseId: string, thoughtSignature: string): Record<string, unknown> {
    const index = this.calls++
    const text = JSON.stringify(isObject(call['args']) ? call['args'] : {})
    const made = createHash('sha256')
      .update(`${responseId}\n${this.#index}\n${index}\n${textOf(call['name'])}\n${text}`)
      .digest('hex')
    const id = textOf(call['id']) || `call_${made.slice(0, 24)}`
    return {
      index,
      id: thoughtSignature === '' ? id : signedCallId(id, thoughtSignature),
      type: 'function',
      function: { name: textOf(call['name']), arguments: text },
    }
  }
}
