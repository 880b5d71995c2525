import type { Failure } from '../dialect.ts'
import { asObject, bareBase64, failedWith, type ImageStyle, madeOf, objectOf, refused, textOr, texts, unusable } from '../image-style.ts'
import { headersFor, jsonRequest, lostOf, refuseEdits, splitOthers } from './request-parts.ts'
import { nearestShape, steppedSize } from './sizes.ts'

const shapes = ['1:1', '16:9', '4:3', '3:2', '2:3', '3:4', '9:16', '21:9']

/** MiniMax. It has its own path and field names, and reports failures with status 200. */
export const minimaxImages: ImageStyle = {
  imagesPerRequest: () => 9,

  request(params, target) {
    refuseEdits(params, target)
    const { size, isExact } = steppedSize(params.size, { step: 8, min: 512, max: 2048 })
    const { kept, left } = splitOthers(params, ['seed', 'prompt_optimizer', 'aigc_watermark', 'style', 'subject_reference'])
    const body = {
      ...kept,
      model: target.upstreamModel,
      prompt: params.prompt,
      n: params.n,
      response_format: params.format === 'url' ? 'url' : 'base64',
      // When the provider cannot make the size in pixels, the request contains the nearest aspect ratio.
      ...(isExact ? size : { aspect_ratio: nearestShape(params.size, shapes).shape }),
    }
    const dropped = [...lostOf(params, { size: isExact, format: true }), ...left]
    return jsonRequest(`${target.provider.baseUrl}/image_generation`, headersFor(target), body, dropped, target)
  },

  reply(reply) {
    const body = objectOf(reply)
    if (body === null) return unusable('it answered with a body that is no JSON object')
    const { status_code: code, status_msg: message } = asObject(body['base_resp']) ?? {}
    if (typeof code === 'number' && code !== 0) return failureOf(code, textOr(message, 'no reason given'))
    const data = asObject(body['data'])
    const urls = texts(data?.['image_urls']).map(url => ({ url }))
    return madeOf(urls.length > 0 ? urls : texts(data?.['image_base64']).map(text => ({ b64_json: bareBase64(text) })))
  },
}

/** Reads the failure code of a reply with status 200. 1026 and 1027 mean a violation of its content rules, and 2013 an invalid parameter. */
function failureOf(code: number, message: string) {
  const said = `${message} (${code})`
  if (code === 1026 || code === 1027 || code === 2013) return refused(said)
  return failedWith(failureKind(code), said)
}

function failureKind(code: number): Failure {
  switch (code) {
    case 1002:
    case 1039:
      return { kind: 'rate-limited', status: 429, retryAfterSeconds: null }
    case 1004:
    case 2049:
      return { kind: 'credential', status: 401 }
    case 1008:
      return { kind: 'billing', status: 402 }
    default:
      return { kind: 'transient', status: null }
  }
}
