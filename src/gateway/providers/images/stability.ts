import { bareBase64, type ImageStyle, madeOf, objectOf, refused, unusable } from '../image-style.ts'
import { fieldText, formRequest, headersFor, lostOf, refuseEdits, splitOthers } from './request-parts.ts'
import { nearestShape } from './sizes.ts'

const shapes = ['1:1', '16:9', '21:9', '2:3', '3:2', '4:5', '5:4', '9:16', '9:21']

/** Stability's v2beta. A request is a form with an aspect ratio instead of a size. A reply contains one picture in base64. */
export const stabilityImages: ImageStyle = {
  imagesPerRequest: () => 1,

  request(params, target, boundary) {
    refuseEdits(params, target)
    const { provider, upstreamModel } = target
    const { shape, isExact } = nearestShape(params.size, shapes)
    const { kept, left } = splitOthers(params, ['negative_prompt', 'seed', 'style_preset', 'output_format', 'cfg_scale'])
    const service = upstreamModel.startsWith('sd3') ? 'sd3' : upstreamModel.replace(/^stable-image-/, '')
    const { output_format = 'png', ...others } = kept
    const fields: Record<string, unknown> = { prompt: params.prompt, aspect_ratio: shape, output_format, ...others }
    if (service === 'sd3') Object.assign(fields, { model: upstreamModel, mode: 'text-to-image' })
    const parts = Object.entries(fields).map(([name, value]) => ({ name, value: fieldText(value) }))
    const isThatSize = isExact && params.size?.width === 1024 && params.size.height === 1024
    const dropped = [...lostOf(params, { size: isThatSize, format: params.format === 'b64_json' }), ...left]
    return formRequest(`${provider.baseUrl}/stable-image/generate/${encodeURIComponent(service)}`, headersFor(target), parts, boundary, dropped)
  },

  reply(reply) {
    const body = objectOf(reply)
    if (body === null) return unusable('it answered with a body that is no JSON object')
    if (body['finish_reason'] === 'CONTENT_FILTERED') return refused('it filtered the content')
    const { image } = body
    return madeOf(typeof image === 'string' && image !== '' ? [{ b64_json: bareBase64(image) }] : [])
  },
}
