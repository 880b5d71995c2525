import type { Form } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import type { Model } from '../../catalog/model.ts'
import { type FormField, parseFormFields } from '../../wire/form-fields.ts'
import { type ImageWish, parseImages } from '../../wire/images.ts'
import { parseRouterFields, type RouterFields } from '../../wire/router-fields.ts'
import { panelIdOf } from '../panel-id.ts'
import { editOf, nameFor } from './edit-form.ts'
import { MediaRequest } from './media-request.ts'
import { parseObject } from './parse-object.ts'

/** Which model draws when none is named. */
const defaultModel = 'sdxl'
const defaultEditModel = 'gpt-image-1'

/** A request for pictures. */
export class ImagesRequest extends MediaRequest {
  readonly stream = false
  readonly wish: ImageWish
  readonly media: { readonly images: number; readonly audioSeconds: 0; readonly characters: 0 }

  constructor(modelId: string, fields: RouterFields, body: Readonly<Record<string, unknown>>, wish: ImageWish) {
    super(modelId, fields, body)
    this.wish = wish
    this.media = { images: wish.n, audioSeconds: 0, characters: 0 }
  }

  accepts(model: Model): void {
    if (this.wish.edit !== null && !model.edits)
      throw fail('unsupported_operation', { message: `"${model.id}" does not edit images. gpt-image-1 and gpt-image-1-mini do.` })
  }

  /** The same at one provider only. */
  pinnedTo(providerId: string): ImagesRequest {
    return new ImagesRequest(this.modelId, { ...this.fields, provider: providerId }, this.native.body, this.wish)
  }

  /** The same of one member of the panel: one picture. */
  forMember(modelId: string): ImagesRequest {
    return new ImagesRequest(modelId, this.fields, this.native.body, { ...this.wish, n: 1 })
  }
}

/** The body of POST /v1/images/generations. Throws `bad_request` and `bad_steps`. */
export function imagesRequest(bytes: Buffer, serviceId: string): ImagesRequest {
  const { fields, stripped } = parseRouterFields(parseObject(bytes))
  return requestOf(stripped, fields, null, defaultModel, serviceId)
}

/** The form of POST /v1/images/edits. Throws `bad_request` and `bad_steps`. */
export function imageEditRequest(form: Form, serviceId: string): ImagesRequest {
  const { fields, others } = parseFormFields(form.fields)
  return requestOf(bodyOf(others), fields, editOf(form), defaultEditModel, serviceId)
}

function requestOf(body: Readonly<Record<string, unknown>>, fields: RouterFields, edit: ImageWish['edit'], model: string, serviceId: string): ImagesRequest {
  const parsed = parseImages(body, edit)
  const panel = parsed.model === null ? null : panelIdOf(parsed.model, serviceId)
  if (panel === null) return new ImagesRequest(parsed.model ?? model, fields, body, parsed.wish)
  return new ImagesRequest(panel.id, panel.indiaOnly ? { ...fields, indiaOnly: true } : fields, body, parsed.wish)
}

const numbers: readonly string[] = ['n', 'partial_images', 'output_compression', 'seed']

/** The other fields of a form as a body: numbers read as such, an empty field as one that is not there. */
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
