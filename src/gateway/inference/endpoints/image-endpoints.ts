import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import type { ErrorName } from '../../../platform/errors.ts'
import type { Inference } from '../inference.ts'
import { charging } from './charging-errors.ts'
import { imageEditSchema, imagesRequestSchema, imagesResponseSchema } from './image-schemas.ts'

const row = endpointOf<{ inference: Inference }>()

const errors: readonly ErrorName[] = [...charging, 'model_not_found_media', 'unsupported_operation']

export const imageEndpoints = {
  generateImages: row({
    at: 'POST /v1/images/generations',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'Images from a prompt, as addresses or base64; with the panel the best of three models.',
    input: { body: imagesRequestSchema, bodyKind: 'inference' },
    output: imagesResponseSchema,
    errors,
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.images(body, call),
  }),
  editImages: row({
    at: 'POST /v1/images/edits',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'Edits given images by a prompt; a multipart form.',
    input: { body: imageEditSchema, bodyKind: 'multipart' },
    output: imagesResponseSchema,
    errors: [...errors, 'payload_too_large', 'unsupported_media_type'],
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.editImages(body, call),
  }),
}
