import type { Target } from '../dialect.ts'
import { bareBase64, type ImageReply, type ImageStyle, madeOf, objectOf, refused, texts, unusable } from '../image-style.ts'
import { headersFor, jsonRequest, lostOf, refuseEdits, splitOthers } from './request-parts.ts'
import { nearestShape, steppedSize } from './sizes.ts'

const shapes = ['1:1', '21:9', '16:9', '3:2', '5:4', '4:5', '2:3', '9:16', '9:21', '4:3', '3:4']
/** Returns the model id as a path, such as `accounts/fireworks/models/…`. */
const pathOf = ({ upstreamModel }: Target): string => upstreamModel.split('/').map(encodeURIComponent).join('/')

/** The FLUX workflows of Fireworks. They take an aspect ratio instead of a size, and return a list of base64 texts. */
export const fireworksWorkflow: ImageStyle = {
  imagesPerRequest: () => 1,

  request(params, target) {
    refuseEdits(params, target)
    const { shape, isExact } = nearestShape(params.size, shapes)
    const { kept, left } = splitOthers(params, ['guidance_scale', 'num_inference_steps', 'seed'])
    const url = `${target.provider.baseUrl}/workflows/${pathOf(target)}/text_to_image`
    const isThatSize = isExact && params.size?.width === 1024 && params.size.height === 1024
    const dropped = [...lostOf(params, { size: isThatSize, format: params.format === 'b64_json' }), ...left]
    return jsonRequest(url, headersFor(target), { ...kept, prompt: params.prompt, aspect_ratio: shape }, dropped, target)
  },

  reply(reply) {
    const body = objectOf(reply)
    if (body === null) return unusable('it answered with a body that is no JSON object')
    if (body['finishReason'] === 'CONTENT_FILTERED') return refused('it filtered the content')
    const { base64 } = body
    return madeOf(texts(typeof base64 === 'string' ? [base64] : base64).map(text => ({ b64_json: bareBase64(text) })))
  },
}

/** The diffusion models of Fireworks. They take a size in pixels. The body of the reply is the picture itself. */
export const fireworksDiffusion: ImageStyle = {
  imagesPerRequest: () => 1,

  request(params, target) {
    refuseEdits(params, target)
    const { size, isExact } = steppedSize(params.size, { step: 8, min: 256, max: 2048 })
    const { kept, left } = splitOthers(params, ['cfg_scale', 'negative_prompt', 'sampler', 'steps', 'seed', 'safety_check'])
    const dropped = [...lostOf(params, { size: isExact, format: params.format === 'b64_json' }), ...left]
    const url = `${target.provider.baseUrl}/image_generation/${pathOf(target)}`
    return jsonRequest(url, headersFor(target, 'image/png'), { ...kept, prompt: params.prompt, ...size, samples: 1 }, dropped, target)
  },

  reply(reply) {
    if (reply.headers['finish-reason'] === 'CONTENT_FILTERED') return refused('it filtered the content')
    return isPicture(reply) ? madeOf([{ b64_json: reply.bytes.toString('base64') }]) : unusable('it answered with a body that is no image')
  },
}

function isPicture({ headers, bytes }: ImageReply): boolean {
  return bytes.length > 0 && String(headers['content-type'] ?? '').startsWith('image/')
}
