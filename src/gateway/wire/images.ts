import { fail } from '../../platform/errors.ts'

export type ImageFormat = 'url' | 'b64_json'

export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** A picture that came with the request. Its type is read from its bytes. */
export interface ImageFile {
  readonly filename: string
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp'
  readonly bytes: Buffer
}

/** The parameters of an image call, named as in the OpenAI images API. */
export interface ImageParams {
  readonly prompt: string
  /** 1 to 4. */
  readonly n: number
  /** null: the provider decides. */
  readonly size: ImageSize | null
  readonly format: ImageFormat
  readonly quality: string | null
  readonly user: string | null
  /** Fields that only some providers know, unchanged. */
  readonly others: Readonly<Record<string, unknown>>
  /**
   * Says which of these fields the caller gave, because the reply names the given fields that the provider cannot honour. Partial images are never
   * honoured, because they exist only in streams.
   */
  readonly asked: { readonly size: boolean; readonly format: boolean; readonly partialImages: boolean }
  /** null: the picture is made from the prompt alone. */
  readonly edit: { readonly images: readonly ImageFile[]; readonly mask: ImageFile | null } | null
}

/** Maximum number of images of one call. A larger `n` is reduced to this number. */
export const imagesMax = 4
const defaultSize: ImageSize = { width: 1024, height: 1024 }
const idMaxChars = 256
const quotedMaxChars = 512
/** Maximum number of characters of a prompt. It is the highest bound of this API, which the GPT image models have. */
const promptMaxChars = 32_000
const known: readonly string[] = ['model', 'prompt', 'n', 'size', 'response_format', 'quality', 'user', 'stream', 'partial_images']

export interface ParsedImages {
  /** null: the request names no model. */
  readonly model: string | null
  readonly params: ImageParams
}

/**
 * Checks an images request without router fields. null counts as absent; an `n` above 4 becomes 4. Throws `bad_request` that names the field and never repeats
 * a given value.
 */
export function parseImages(body: Readonly<Record<string, unknown>>, edit: ImageParams['edit'] = null): ParsedImages {
  const { prompt } = body
  if (typeof prompt !== 'string' || prompt.trim() === '') throw bad('"prompt" must be a non-empty string.')
  for (const name of ['prompt', 'negative_prompt']) checkLength(name, body[name])
  if (body['stream'] !== undefined && body['stream'] !== null && body['stream'] !== false)
    throw bad('Images are not streamed here: leave "stream" out and wait for the whole reply.')
  const size = sizeOf(body['size'])
  const format = formatOf(body['response_format'])
  return {
    model: textOf(body, 'model', idMaxChars),
    params: {
      prompt,
      n: countOf(body['n']),
      // An edit keeps the size of the given picture, unless the request names a size.
      size: size ?? (edit === null ? defaultSize : null),
      format: format ?? 'url',
      quality: textOf(body, 'quality', quotedMaxChars),
      user: textOf(body, 'user', quotedMaxChars),
      others: Object.fromEntries(Object.entries(body).filter(([name, value]) => !known.includes(name) && value !== null)),
      asked: { size: size !== null, format: format !== null, partialImages: (body['partial_images'] ?? 0) !== 0 },
      edit,
    },
  }
}

/** Maximum number of pixels of a plain picture. A picture that is not plain can cost more. */
const plainPixelsMax = 1024 * 1024
const plainQualities: readonly string[] = ['standard', 'low']
/** This quality leaves the choice to the provider. */
const openQuality = 'auto'
/** Provider fields that make a picture more expensive. */
const dearNames: readonly string[] = ['steps', 'num_steps', 'num_inference_steps', 'inference_steps', 'image_size', 'resolution', 'megapixels', 'upscale']
/** This field says how closely an edit follows the given pictures. Any value other than `low` can cost many times as much. */
const fidelity = 'input_fidelity'

/** Returns the name of the first field that asks for more than a plain picture, which costs more at many providers. null: no field does. */
export function dearField({ size, quality, others }: Pick<ImageParams, 'size' | 'quality' | 'others'>): string | null {
  if (size !== null && size.width * size.height > plainPixelsMax) return 'size'
  if (quality !== null && quality !== openQuality && !plainQualities.includes(quality)) return 'quality'
  if (fidelity in others && others[fidelity] !== 'low') return fidelity
  return dearNames.find(name => name in others) ?? null
}

/** Returns the field that leaves the quality or the size of a picture to the provider; null: no field does. */
export function openField({ size, quality, edit }: Pick<ImageParams, 'size' | 'quality' | 'edit'>): 'quality' | 'size' | null {
  if (quality === null || quality === openQuality) return 'quality'
  return size === null && edit !== null ? 'size' : null
}

/** Whether a reply says that its pictures are plain; null: the reply does not say. */
export function isToldPlain({ quality, size }: Readonly<Record<string, unknown>>): boolean | null {
  const told = typeof size === 'string' ? /^(\d{1,5})x(\d{1,5})$/.exec(size) : null
  if (typeof quality !== 'string' || quality === openQuality || told === null) return null
  return plainQualities.includes(quality) && Number(told[1]) * Number(told[2]) <= plainPixelsMax
}

function countOf(n: unknown): number {
  if (n === undefined || n === null) return 1
  if (typeof n !== 'number' || !Number.isInteger(n) || n < 1) throw bad('"n" must be a whole number of at least 1.')
  return Math.min(n, imagesMax)
}

function sizeOf(size: unknown): ImageSize | null {
  if (size === undefined || size === null) return null
  const found = typeof size === 'string' ? /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(size) : null
  if (found === null) throw bad('"size" must be WIDTHxHEIGHT in pixels, such as "1024x1024"; leave it out for the default.')
  return { width: Number(found[1]), height: Number(found[2]) }
}

function formatOf(format: unknown): ImageFormat | null {
  if (format === undefined || format === null) return null
  if (format !== 'url' && format !== 'b64_json') throw bad('"response_format" must be "url" or "b64_json".')
  return format
}

/** Throws `bad_request` for a prompt that is too long. The bound is needed because the price of a picture does not depend on its prompt. */
function checkLength(name: string, value: unknown): void {
  if (typeof value === 'string' && value.length > promptMaxChars)
    throw bad(`"${name}" has ${value.length} characters; one call may have ${promptMaxChars} at most. Send a shorter one.`)
}

function textOf(body: Readonly<Record<string, unknown>>, name: string, maxChars: number): string | null {
  const value = body[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'string' || value === '' || value.length > maxChars) throw bad(`"${name}" must be a non-empty string of at most ${maxChars} characters.`)
  return value
}

/** Returns the type of a picture, read from its first bytes. null: it is not one of the three accepted types. */
export function imageTypeOf(bytes: Uint8Array): ImageFile['contentType'] | null {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  return head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' ? 'image/webp' : null
}

const bad = (message: string) => fail('bad_request', { message })
