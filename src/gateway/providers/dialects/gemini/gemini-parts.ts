/** Translates parts of hub messages to parts of Gemini contents. */
import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { noFile } from '../anthropic/anthropic-blocks.ts'
import { dataUrlOf } from '../data-url.ts'
import { noteDetail } from '../hub-messages.ts'
import { textOf } from '../json-values.ts'

export type Part = Record<string, unknown>

/** Returns the content of a message as parts. Empty texts are left out. `at` names the message in errors. Throws `bad_request` for invalid media. */
export function partsOf(content: unknown, at: string, dropped: Set<string>): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }]
  return objectsOf(content).flatMap((part, index) => partOf(part, `${at}.content[${index}]`, dropped))
}

function partOf(part: JsonObject, at: string, dropped: Set<string>): Part[] {
  switch (part['type']) {
    case 'image_url': {
      const given = part['image_url']
      noteDetail(given, dropped)
      return [mediaPart(isObject(given) ? given['url'] : given, `${at}.image_url.url`)]
    }
    case 'input_audio':
      return [audioPart(part['input_audio'], at)]
    case 'file':
      return [filePart(part, at)]
    case 'refusal':
      return textOf(part['refusal']) === '' ? [] : [{ text: part['refusal'] }]
    default:
      if (typeof part['text'] === 'string') return part['text'] === '' ? [] : [{ text: part['text'] }]
      dropped.add(`messages.content.${textOf(part['type'])}`)
      return []
  }
}

/** Returns the media as inline data, or as a URL that the provider fetches. */
function mediaPart(url: unknown, at: string): Part {
  if (typeof url !== 'string') throw fail('bad_request', { message: `"${at}" must be a string.` })
  const data = dataUrlOf(url)
  if (data !== null) return { inlineData: { mimeType: data.mediaType, data: data.base64 } }
  if (!/^(https?|gs):\/\//i.test(url)) throw fail('bad_request', { message: `"${at}" must be an http or https URL, or a data URL in base64.` })
  const mimeType = typeOfPath(url)
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: url } }
}

const types: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
}

function typeOfPath(url: string): string | undefined {
  return types[/\.([a-z0-9]{2,4})(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? '']
}

function audioPart(given: unknown, at: string): Part {
  const audio = isObject(given) ? given : {}
  if (typeof audio['data'] !== 'string' || audio['data'] === '') throw fail('bad_request', { message: `"${at}.input_audio.data" must be audio in base64.` })
  return { inlineData: { mimeType: `audio/${textOf(audio['format']) || 'wav'}`, data: audio['data'] } }
}

function filePart(part: JsonObject, at: string): Part {
  const file = isObject(part['file']) ? part['file'] : part
  const given = file['file_url'] ?? part['file_url']
  const url = isObject(given) ? given['url'] : given
  if (typeof url === 'string') return mediaPart(url, `${at}.file.file_url`)
  if (typeof file['file_data'] === 'string') {
    if (dataUrlOf(file['file_data']) === null) throw fail('bad_request', { message: `"${at}.file.file_data" must be a data URL in base64.` })
    return mediaPart(file['file_data'], `${at}.file.file_data`)
  }
  throw noFile(file, at)
}
