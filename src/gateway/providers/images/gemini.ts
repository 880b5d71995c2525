import { asObject, type ImageStyle, type MadeImage, madeOf, objectOf, refused, textOr, unusable } from '../image-style.ts'
import { headersFor, jsonRequest, lostOf, refuseEdits, splitOthers } from './request-parts.ts'
import { nearestShape } from './sizes.ts'

const shapes = ['1:1', '3:2', '2:3', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9']
const blockedReasons: readonly unknown[] = ['SAFETY', 'IMAGE_SAFETY', 'PROHIBITED_CONTENT', 'IMAGE_PROHIBITED_CONTENT', 'BLOCKLIST', 'RECITATION', 'SPII']

/** Gemini image models. Each generateContent call makes one picture, in base64 only. They take an aspect ratio instead of a size. */
export const geminiImages: ImageStyle = {
  imagesPerRequest: () => 1,

  request(params, target) {
    refuseEdits(params, target)
    const { provider, upstreamModel, credential } = target
    const { shape, isExact } = nearestShape(params.size, shapes)
    const { left } = splitOthers(params, [])
    const base = provider.baseUrl.replace(/\/openai$/, '')
    const headers = headersFor({ provider: { ...provider, auth: 'none' }, credential: null })
    if (credential !== null) headers['x-goog-api-key'] = credential.reveal()
    const body = {
      contents: [{ role: 'user', parts: [{ text: params.prompt }] }],
      generationConfig: { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: shape } },
    }
    const isThatSize = isExact && params.size?.width === 1024 && params.size.height === 1024
    const dropped = [...lostOf(params, { size: isThatSize, format: params.format === 'b64_json' }), ...left]
    return jsonRequest(`${base}/models/${encodeURIComponent(upstreamModel)}:generateContent`, headers, body, dropped, target)
  },

  reply(reply) {
    const body = objectOf(reply)
    if (body === null) return unusable('it answered with a body that is no JSON object')
    const blocked = asObject(body['promptFeedback'])?.['blockReason']
    if (typeof blocked === 'string') return refused(`it blocked the prompt (${blocked})`)
    const candidates = Array.isArray(body['candidates']) ? body['candidates'].map(asObject) : []
    const images = candidates.flatMap(candidate => imagesOf(asObject(candidate?.['content'])?.['parts']))
    const reason = candidates.map(candidate => candidate?.['finishReason']).find(found => blockedReasons.includes(found))
    return images.length === 0 && reason !== undefined ? refused(`it filtered the content (${textOr(reason, 'SAFETY')})`) : madeOf(images)
  },
}

function imagesOf(parts: unknown): MadeImage[] {
  if (!Array.isArray(parts)) return []
  return parts.flatMap(part => {
    // A picture that belongs to the model's thinking is not an answer.
    if (asObject(part)?.['thought'] === true) return []
    const inline = asObject(asObject(part)?.['inlineData'] ?? asObject(part)?.['inline_data'])
    const data = inline?.['data']
    return typeof data === 'string' && data !== '' ? [{ b64_json: data }] : []
  })
}
