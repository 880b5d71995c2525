/** `image_optimize`: shrinks inline pictures that are larger than the model can use before they are sent. */
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { ImageScaler } from '../../../platform/media/image-scaler.ts'
import type { Model } from '../../catalog/model.ts'
import type { WireFormat } from '../../wire/client-format.ts'
import { changeImages, type InlineImage, toolResultImages } from '../../wire/inline-images.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** The most pictures of one request that are examined. Further pictures are sent unchanged. */
const imagesMax = 100

export interface ShrunkBody {
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
}

/** The tools for shrinking pictures. */
export interface ShrinkTools {
  readonly deps: { readonly imageScaler: Pick<ImageScaler, 'shrink'> }
  readonly signal: CancelSignal
  /** The organisation that makes the call. */
  readonly orgId: number
}

/**
 * Returns the longest allowed edge in pixels for pictures of the request at this model. Null when the pictures are not examined. With
 * `onlyWhenAsked` pictures are examined only when the request has an image option, so that a request in the messages format is otherwise relayed
 * byte for byte.
 */
export function imageEdgeOf({ fields, needs }: ParsedRequest, { imageMaxEdge: ceiling }: Model, onlyWhenAsked = false): number | null {
  if (!needs.vision || fields.imageOptimize === 'off') return null
  if (onlyWhenAsked && fields.imageOptimize === null && fields.imageMaxEdge === null) return null
  if (ceiling === null || fields.imageMaxEdge === null) return ceiling ?? fields.imageMaxEdge
  return Math.min(ceiling, fields.imageMaxEdge)
}

/**
 * Returns the body with its large pictures shrunk, and the header with their number. Null when nothing changes. Pictures inside tool results
 * stay unchanged, also when `body` is a translation of the client's format.
 */
export async function shrinkImages(
  format: WireFormat,
  body: Readonly<Record<string, unknown>>,
  maxEdge: number,
  { native }: Pick<ParsedRequest, 'native'>,
  { deps, signal, orgId }: ShrinkTools,
): Promise<ShrunkBody | null> {
  const found = new Set<string>()
  changeImages(format, body, image => {
    if (found.size < imagesMax) found.add(image.base64)
    return image
  })
  if (found.size === 0) return null
  for (const untouched of toolResultImages(native.format, native.body)) found.delete(untouched)
  const smaller = new Map<string, InlineImage>()
  for (const base64 of found) {
    signal.throwIfAborted()
    const made = await deps.imageScaler.shrink(Buffer.from(base64, 'base64'), maxEdge, { orgId, signal })
    if (made !== null) smaller.set(base64, { mediaType: `image/${made.format}`, base64: made.bytes.toString('base64') })
  }
  if (smaller.size === 0) return null
  let count = 0
  const changed = changeImages(format, body, image => {
    const made = smaller.get(image.base64)
    if (made === undefined) return image
    count++
    return made
  })
  return { body: changed, headers: { [brHeader.imageOptimized]: String(count) } }
}
