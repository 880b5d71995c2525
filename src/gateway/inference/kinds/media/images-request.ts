import type { Form } from '../../../../platform/endpoint.ts'
import { fail } from '../../../../platform/errors.ts'
import { isSandbox } from '../../../catalog/loading/sandbox.ts'
import type { Model } from '../../../catalog/model.ts'
import type { Attempt } from '../../../routing/plan.ts'
import { parseRouterFields, type RouterFields } from '../../../wire/chat/router-fields.ts'
import { type FormField, parseFormFields } from '../../../wire/form-fields.ts'
import { dearField, type ImageFile, type ImageParams, imageTypeOf, openField, parseImages } from '../../../wire/images.ts'
import type { MediaUsage } from '../../../wire/usage.ts'
import { panelIdOf } from '../../panel/panel-id.ts'
import { parseObject } from '../parse-object.ts'
import { MediaRequest } from './media-request.ts'

/** The model that serves a request which names none. */
const defaultModel = 'sdxl'
const defaultEditModel = 'gpt-image-1'

/** A request for pictures. */
export class ImagesRequest extends MediaRequest {
  readonly stream = false
  readonly params: ImageParams
  readonly media: Omit<MediaUsage, 'audioSeconds' | 'characters'> & { readonly audioSeconds: 0; readonly characters: 0 }

  constructor(modelId: string, fields: RouterFields, body: Readonly<Record<string, unknown>>, params: ImageParams) {
    super(modelId, fields, body)
    this.params = params
    const inputs = params.edit === null ? 0 : params.edit.images.length + (params.edit.mask === null ? 0 : 1)
    this.media = {
      images: params.n,
      audioSeconds: 0,
      characters: 0,
      ...(dearField(params) === null ? {} : { dear: true }),
      ...(openField(params) === null ? {} : { open: true }),
      ...(inputs === 0 ? {} : { inputs }),
    }
  }

  accepts(model: Model): void {
    if (this.params.edit !== null && !model.edits)
      throw fail('unsupported_operation', { message: `"${model.id}" does not edit images. gpt-image-1 and gpt-image-1-mini do.` })
  }

  /**
   * Refuses a dear picture on a platform key when the route has no price for it. A dear picture is one for which the provider charges more.
   * Throws `bad_request`.
   */
  checkFor({ route, byok }: Attempt): void {
    const field = dearField(this.params) ?? (route.price.picksQuality === true ? this.#openFieldAt(route) : null)
    if (field === null || byok || isSandbox(route.provider) || route.price.uinrPerImageMost !== undefined) return
    throw fail('bad_request', {
      message: `"${field}" asks for a picture that is, or may be, dearer than the one that "${route.modelId}" is priced for here. Ask for a plain one (up to 1024x1024, quality low or standard), or use your own provider key.`,
    })
  }

  /** Returns the first field that may make a picture dear because the provider chooses its value. Null when there is none. */
  #openFieldAt({ price }: Attempt['route']): string | null {
    return openField(this.params) ?? (this.params.edit !== null && price.uinrPerInputImage === undefined ? 'image' : null)
  }

  /** Returns the same request at one provider only. */
  pinnedTo(providerId: string): ImagesRequest {
    return new ImagesRequest(this.modelId, { ...this.fields, provider: providerId }, this.native.body, this.params)
  }

  withImages(images: number): ImagesRequest {
    return new ImagesRequest(this.modelId, this.fields, this.native.body, { ...this.params, n: Math.min(this.params.n, images) })
  }

  /** Returns the same request for one member of the panel, with one picture. */
  forMember(modelId: string): ImagesRequest {
    return new ImagesRequest(modelId, this.fields, this.native.body, { ...this.params, n: 1 })
  }
}

/** Parses the body of POST /v1/images/generations. Throws `bad_request` and `bad_steps`. */
export function imagesRequest(bytes: Buffer, serviceId: string): ImagesRequest {
  const { fields, stripped } = parseRouterFields(parseObject(bytes))
  return requestOf(stripped, fields, null, defaultModel, serviceId)
}

/** Parses the form of POST /v1/images/edits. Throws `bad_request` and `bad_steps`. */
export function imageEditRequest(form: Form, serviceId: string): ImagesRequest {
  const { fields, others } = parseFormFields(form.fields)
  return requestOf(bodyOf(others), fields, editOf(form), defaultEditModel, serviceId)
}

function requestOf(body: Readonly<Record<string, unknown>>, fields: RouterFields, edit: ImageParams['edit'], model: string, serviceId: string): ImagesRequest {
  const parsed = parseImages(body, edit)
  const panel = parsed.model === null ? null : panelIdOf(parsed.model, serviceId)
  if (panel === null) return new ImagesRequest(parsed.model ?? model, fields, body, parsed.params)
  return new ImagesRequest(panel.id, panel.indiaOnly ? { ...fields, indiaOnly: true } : fields, body, parsed.params)
}

const numbers: readonly string[] = ['n', 'partial_images', 'output_compression', 'seed']

/** Returns the other fields of a form as a body. Numbers are read as numbers, and an empty field counts as absent. */
function bodyOf(fields: readonly FormField[]): Record<string, unknown> {
  const body = new Map<string, unknown>()
  for (const { name, value } of fields) {
    if (value === '') continue
    if (/^(image(\[\d*\])?|mask)$/.test(name)) throw fail('bad_request', { message: `"${name}" must be a file of the form, not a text field.` })
    if (body.has(name)) throw fail('bad_request', { message: `"${nameFor(name)}" is given twice.` })
    body.set(name, formValue(name, value))
  }
  return Object.fromEntries(body)
}

function formValue(name: string, value: string): unknown {
  if (name === 'stream') return value !== 'false' && value !== '0'
  return numbers.includes(name) && /^-?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value
}

/** The most pictures of one edit. */
const editImagesMax = 16

/** Returns the pictures of a form in their order, and the mask. The types are read from the bytes. Throws `bad_request`. */
export function editOf({ files }: Form): ImageParams['edit'] {
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

/** Returns a name from the caller in a form for messages: short and printable. */
export const nameFor = (name: string): string => name.slice(0, 40).replace(/[^\x20-\x7e]/g, '?')
