/** Translates parts of a user, and of results, to parts of the hub format. */
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import { camelOf, fieldOf, textAt } from '../fields.ts'

export type HubPart = Record<string, unknown>

/** Members of a part that only say something about its content. */
const besides: ReadonlySet<string> = new Set(['thought', 'thoughtSignature', 'partMetadata'])
/** Members of a part that are lost, because the hub format has no place for them. */
const lost: ReadonlySet<string> = new Set(['videoMetadata', 'mediaResolution'])

/** Returns the name, in camelCase, of the member that has the content of a part. Throws `bad_request` for a part without one. */
export function kindOf(part: JsonObject, at: string, drop: (name: string) => void): string {
  let kind: string | null = null
  for (const given of Object.keys(part)) {
    const name = camelOf(given)
    if (besides.has(name) || part[given] === undefined || part[given] === null) continue
    if (lost.has(name)) drop(`contents.parts.${name}`)
    else kind ??= name
  }
  // A signature may come on a part without any text.
  if (kind !== null || Object.keys(part).length > 0) return kind ?? 'text'
  throw bad(`"${at}" has no content.`)
}

/** Returns a part of a user: text, inline data or a file by its address. Throws `bad_request` that names the place. */
export function hubPartsOf(part: JsonObject, at: string, drop: (name: string) => void): readonly HubPart[] {
  const kind = kindOf(part, at, drop)
  switch (kind) {
    case 'text': {
      const { text = '' } = part
      if (typeof text !== 'string') throw bad(`"${at}.text" must be a string.`)
      return text === '' ? [] : [{ type: 'text', text }]
    }
    case 'inlineData':
      return [inlinePart(fieldOf(part, 'inlineData'), `${at}.inlineData`)]
    case 'fileData':
      return [filePart(fieldOf(part, 'fileData'), `${at}.fileData`)]
    default:
      throw bad(`"${at}" has the content "${kind.slice(0, 64)}", which is not known here, or belongs to another role.`)
  }
}

function inlinePart(blob: unknown, at: string): HubPart {
  const type = isObject(blob) ? textAt(blob, 'mimeType').toLowerCase() : ''
  const data = isObject(blob) ? blob['data'] : undefined
  if (!isObject(blob) || typeof data !== 'string' || data === '' || !type.includes('/')) throw bad(`"${at}" must be {mimeType, data}, with the data in base64.`)
  // Some clients write the other alphabet of base64, which data URLs do not have.
  const base64 = /[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url: `data:${type};base64,${base64}` } }
  if (type.startsWith('audio/')) return { type: 'input_audio', input_audio: { data: base64, format: audioFormat(type) } }
  if (type.startsWith('text/')) return { type: 'text', text: Buffer.from(base64, 'base64').toString('utf8') }
  return { type: 'file', file: { filename: textAt(blob, 'displayName') || `document.${endingOf(type)}`, file_data: `data:${type};base64,${base64}` } }
}

const audioFormats: Readonly<Record<string, string>> = { mpeg: 'mp3', mp3: 'mp3', wav: 'wav', 'x-wav': 'wav', wave: 'wav', mp4: 'm4a', 'x-m4a': 'm4a' }

function audioFormat(type: string): string {
  const named = (type.slice('audio/'.length).split(';')[0] ?? '').trim()
  return audioFormats[named] ?? named
}

const endingOf = (type: string): string => /^[a-z]+\/([a-z0-9]{2,5})$/.exec(type)?.[1] ?? 'bin'

function filePart(file: unknown, at: string): HubPart {
  const url = isObject(file) ? textAt(file, 'fileUri') : ''
  if (!isObject(file) || !/^https?:\/\//i.test(url))
    throw bad(`"${at}.fileUri" must be an http or https URL: other providers cannot open what is stored at Google. Send the bytes as inlineData.`)
  const type = textAt(file, 'mimeType').toLowerCase()
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url } }
  return { type: 'file', file: { filename: textAt(file, 'displayName') || 'document', file_url: url } }
}

export function bad(message: string): GatewayError {
  return fail('bad_request', { message })
}
