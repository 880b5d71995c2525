import { chatFormat } from '../../../wire/chat/chat-format.ts'
import { performImages } from '../../media/perform-images.ts'
import type { Kind } from '../kind.ts'
import type { ImagesRequest } from './images-request.ts'

/** Returns the kind that serves a request that was already parsed. */
export const imagesKind = (request: ImagesRequest): Kind => ({
  usageKind: 'image',
  modelKind: 'image',
  hasOutput: false,
  format: chatFormat,
  perform: performImages,
  parse: () => request,
  complete: () => null,
})
