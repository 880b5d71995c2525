/** image_optimize: inline pictures that are larger than the model makes use of are made smaller before they are sent. */
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { ImageScaler } from '../../../platform/media/image-scaler.ts'
import type { Model } from '../../catalog/model.ts'
import type { WireFormat } from '../../wire/client-format.ts'
import { changeImages, type InlineImage, toolResultImages } from '../../wire/inline-images.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** Most pictures of one request that are looked at; the others go on as they are. */
const imagesMax = 100

export interface ShrunkBody {
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
}

/** What shrinking works with. */
export interface ShrinkTools {
  readonly deps: { readonly imageScaler: Pick<ImageScaler, 'shrink'> }
  readonly signal: CancelSignal
}

/**
 * The longest edge in pixels that pictures of the request may have for this model; null: they are not looked at. A caller that does not ask
 * leaves bytes of the messages format, which is relayed as it is, alone: `onlyWhenAsked`.
 */
export function imageEdgeOf({ fields, needs }: ParsedRequest, { imageMaxEdge: ceiling }: Model, onlyWhenAsked = false): number | null {
  if (!needs.vision || fields.imageOptimize === 'off') return null
  if (onlyWhenAsked && fields.imageOptimize === null && fields.imageMaxEdge === null) return null
  if (ceiling === null || fields.imageMaxEdge === null) return ceiling ?? fields.imageMaxEdge
  return Math.min(ceiling, fields.imageMaxEdge)
}

/**
 * The body with its large pictures made smaller, and the header that counts them; null when nothing had to change. Pictures inside tool results
 * stay as they are, also where the client's own format had them and the body in hand is a translation of it.
 */
export async function shrinkImages(
  format: WireFormat,
  body: Readonly<Record<string, unknown>>,
  maxEdge: number,
  { native }: Pick<ParsedRequest, 'native'>,
  { deps, signal }: ShrinkTools,
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
    const made = await deps.imageScaler.shrink(Buffer.from(base64, 'base64'), maxEdge, signal)
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
