/** Translates parts of hub messages to content blocks of the messages format. */
import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { dataUrlOf } from '../data-url.ts'
import { noteDetail } from '../hub-messages.ts'
import { textOf } from '../json-values.ts'

export type Block = Record<string, unknown>

/**
 * Returns the content of a user, assistant or tool message as blocks. Text without a visible character is left out, because the format refuses it.
 * Parts that the format cannot express are added to `dropped`. `at` names the message in errors. Throws `bad_request` for an invalid image or file.
 */
export function blocksOf(content: unknown, at: string, dropped: Set<string>): Block[] {
  if (typeof content === 'string') return content.trim() === '' ? [] : [{ type: 'text', text: content }]
  return objectsOf(content).flatMap((part, index) => blockOf(part, `${at}.content[${index}]`, dropped))
}

function blockOf(part: JsonObject, at: string, dropped: Set<string>): Block[] {
  switch (part['type']) {
    case 'image_url':
      noteDetail(part['image_url'], dropped)
      return [withCacheControl(imageBlock(part, at), part)]
    case 'file':
      return [withCacheControl(fileBlock(part, at), part)]
    case 'refusal':
      return textBlock(part['refusal'], part)
    case 'input_audio':
      dropped.add('input_audio')
      return []
    default:
      if (typeof part['text'] === 'string') return textBlock(part['text'], part)
      dropped.add(`messages.content.${textOf(part['type'])}`)
      return []
  }
}

function textBlock(text: unknown, part: JsonObject): Block[] {
  return typeof text !== 'string' || text.trim() === '' ? [] : [withCacheControl({ type: 'text', text }, part)]
}

/** Keeps a cache mark on the block that it was set on. */
export function withCacheControl(block: Block, part: JsonObject): Block {
  return isObject(part['cache_control']) ? { ...block, cache_control: part['cache_control'] } : block
}

function imageBlock(part: JsonObject, at: string): Block {
  const given = part['image_url']
  const url = isObject(given) ? given['url'] : given
  if (typeof url !== 'string') throw fail('bad_request', { message: `"${at}.image_url.url" must be a string.` })
  const data = dataUrlOf(url)
  if (data !== null) return { type: 'image', source: { type: 'base64', media_type: data.mediaType, data: data.base64 } }
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } }
  throw fail('bad_request', { message: `"${at}.image_url.url" must be an http or https URL, or a data URL in base64.` })
}

function fileBlock(part: JsonObject, at: string): Block {
  const file = isObject(part['file']) ? part['file'] : part
  const title = typeof file['filename'] === 'string' ? { title: file['filename'] } : {}
  const url = fileUrlOf(file['file_url'] ?? part['file_url'])
  if (url !== null) return { type: 'document', source: { type: 'url', url }, ...title }
  if (typeof file['file_data'] === 'string') return { type: 'document', source: documentSource(file['file_data'], at), ...title }
  throw noFile(file, at)
}

/** Returns the error for an invalid file. A file that exists only at the provider where it was stored is invalid too. */
export function noFile(file: JsonObject, at: string): Error {
  const why = typeof file['file_id'] === 'string' ? `"${at}.file.file_id" names a stored file, which this provider does not have.` : `"${at}.file" has no file.`
  return fail('bad_request', { message: `${why} Send "file_data" with a data URL, or "file_url".` })
}

function fileUrlOf(value: unknown): string | null {
  const url = isObject(value) ? value['url'] : value
  return typeof url === 'string' && /^https?:\/\//i.test(url) ? url : null
}

function documentSource(fileData: string, at: string): Block {
  const data = dataUrlOf(fileData)
  if (data === null) throw fail('bad_request', { message: `"${at}.file.file_data" must be a data URL in base64.` })
  if (data.mediaType.startsWith('text/')) return { type: 'text', media_type: 'text/plain', data: Buffer.from(data.base64, 'base64').toString('utf8') }
  return { type: 'base64', media_type: data.mediaType, data: data.base64 }
}
