import { fail } from '../../../platform/errors.ts'
import type { ImageFormat, ImageParams } from '../../wire/images.ts'
import type { FormPart } from '../../wire/multipart-body.ts'
import type { Target, UpstreamRequest } from '../dialect.ts'
import { asObject, type ImageReply, type ImageStyle, type MadeImage, noImage, objectOf, refused, unusable } from '../image-style.ts'
import { fieldText, formRequest, headersFor, jsonRequest, lostOf } from './request-parts.ts'

/** The differences between a provider's images API and OpenAI's. */
interface Deviation {
  /** Maximum number of pictures of one request. The default is no limit. */
  readonly imagesPerRequest?: number
  /** How the size is sent. By default, `size` is sent unchanged. */
  readonly size?: 'width-height' | 'none'
  /** The provider's names for the two formats. Null when the provider has no such field and always returns the format `only`. */
  readonly formats?: Readonly<Record<ImageFormat, string>> | null
  readonly only?: ImageFormat
  readonly quality?: false
  /** The provider's name for `user`. Null when it has no such field. */
  readonly user?: string | null
  /** Fields of the provider that are not sent, because they would make more pictures than were requested and paid for. */
  readonly withheld?: readonly string[]
  /** True when the provider accepts pictures to edit, as multipart. */
  readonly edits?: true
}

/** Returns the style of OpenAI's images API and similar ones. Unknown fields are sent unchanged. */
export function passthrough(deviation: Deviation = {}): ImageStyle {
  const { imagesPerRequest = Number.MAX_SAFE_INTEGER, formats = { url: 'url', b64_json: 'b64_json' } } = deviation
  return {
    imagesPerRequest: () => imagesPerRequest,
    request: (params, target, boundary) => (params.edit === null ? generation(params, target, deviation, formats) : edit(params, target, deviation, boundary)),
    reply: replyOf,
  }
}

function generation(params: ImageParams, target: Target, deviation: Deviation, formats: Deviation['formats']): UpstreamRequest {
  const { size, user = 'user', withheld = [] } = deviation
  const body: Record<string, unknown> = { ...params.others, model: target.upstreamModel, prompt: params.prompt }
  for (const name of withheld) delete body[name]
  if (deviation.imagesPerRequest !== 1) body['n'] = params.n
  if (params.size !== null && size === undefined) body['size'] = `${params.size.width}x${params.size.height}`
  if (params.size !== null && size === 'width-height') Object.assign(body, params.size)
  if (formats) body['response_format'] = formats[params.format]
  if (params.quality !== null && deviation.quality !== false) body['quality'] = params.quality
  if (params.user !== null && user !== null) body[user] = params.user
  return jsonRequest(`${target.provider.baseUrl}/images/generations`, headersFor(target), body, lost(params, deviation, formats), target)
}

function lost(params: ImageParams, { quality, user, size, only, withheld = [] }: Deviation, formats: Deviation['formats']): string[] {
  const kept = { quality: quality !== false, user: user !== null, size: size !== 'none', format: formats !== null || params.format === only }
  return [...lostOf(params, kept), ...withheld.filter(name => Object.hasOwn(params.others, name))]
}

/** Returns an edit request that contains the pictures as bytes: one picture as `image`, several as `image[]` in their order. */
function edit(params: ImageParams, target: Target, deviation: Deviation, boundary: string): UpstreamRequest {
  if (deviation.edits !== true || params.edit === null)
    throw fail('unsupported_operation', { message: `Images are not edited at ${target.provider.id} from here.` })
  const { images, mask } = params.edit
  const fields: Record<string, unknown> = { ...params.others, model: target.upstreamModel, prompt: params.prompt, n: params.n }
  if (params.size !== null) fields['size'] = `${params.size.width}x${params.size.height}`
  if (deviation.formats !== null) fields['response_format'] = params.format
  if (params.quality !== null) fields['quality'] = params.quality
  if (params.user !== null) fields['user'] = params.user
  const name = images.length === 1 ? 'image' : 'image[]'
  const parts: FormPart[] = [
    ...Object.entries(fields).map(([name, value]) => ({ name, value: fieldText(value) })),
    ...images.map(image => ({ ...image, name })),
    ...(mask === null ? [] : [{ ...mask, name: 'mask' }]),
  ]
  return formRequest(`${target.provider.baseUrl}/images/edits`, headersFor(target), parts, boundary, lost(params, deviation, deviation.formats))
}

function replyOf(reply: ImageReply) {
  const whole = objectOf(reply)
  if (whole === null) return unusable('it answered with a body that is no JSON object')
  const { data } = whole
  if (!Array.isArray(data)) return unusable(noImage)
  const items = data.map(asObject)
  const images = items.flatMap(item => (item === null ? [] : (imageOf(item) ?? [])))
  if (images.length > 0) {
    const isSame = images.length === data.length && images.every((image, index) => image === data[index])
    return { kind: 'images', images, whole: isSame ? whole : { ...whole, data: images } } as const
  }
  if (items.some(item => item?.['finish_reason'] === 'content_filtered')) return refused('it filtered the content')
  return unusable(noImage)
}

/** Some providers put the base64 text into `image`. */
function imageOf(item: Readonly<Record<string, unknown>>): MadeImage | null {
  if (filled(item['url']) || filled(item['b64_json'])) return item as MadeImage
  const { image, ...others } = item
  return filled(image) ? { ...others, b64_json: image } : null
}

const filled = (value: unknown): value is string => typeof value === 'string' && value !== ''
