import type { Form } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { type ImageFile, type ImageWish, imageTypeOf } from '../../wire/images.ts'

/** Most pictures of one edit. */
const editImagesMax = 16

/** The pictures of a form in their order, and the mask; their types are read from their bytes. Throws `bad_request`. */
export function editOf({ files }: Form): ImageWish['edit'] {
  const given = files.filter(({ field }) => field === 'image' || field === 'image[]' || /^image\[\d{1,3}\]$/.test(field))
  const masks = files.filter(({ field }) => field === 'mask')
  const other = files.find(file => !given.includes(file) && !masks.includes(file))
  if (other !== undefined)
    throw fail('bad_request', { message: `The form has a file in "${nameFor(other.field)}"; files go into "image" (or "image[]") and "mask".` })
  if (given.length === 0) throw fail('bad_request', { message: '"image" must be a file: the picture to edit, as PNG, JPEG or WebP.' })
  if (given.length > editImagesMax) throw fail('bad_request', { message: `"image" takes at most ${editImagesMax} files.` })
  const [mask, second] = masks
  if (second !== undefined) throw fail('bad_request', { message: '"mask" takes one file.' })
  return { images: given.map(fileOf), mask: mask === undefined ? null : fileOf(mask) }
}

function fileOf({ field, filename, bytes }: Form['files'][number]): ImageFile {
  const contentType = imageTypeOf(bytes)
  if (contentType === null)
    throw fail('bad_request', { message: `The file in "${nameFor(field)}" is ${bytes.length === 0 ? 'empty' : 'no PNG, JPEG or WebP image'}.` })
  return { filename: filename === '' ? `image.${contentType.slice('image/'.length)}` : filename, contentType, bytes }
}

/** A name of the caller's in a message: short and printable. */
export const nameFor = (name: string): string => name.slice(0, 40).replace(/[^\x20-\x7e]/g, '?')
