import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import { shownType, textOf } from '../json.ts'

/**
 * Translates the content of messages and tool outputs of the Responses API to content of hub messages. Throws `bad_request` that names the place, and
 * `unsupported_operation` for unknown parts.
 */
export function hubContent(content: unknown, at: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw fail('bad_request', { message: `"${at}" must be a string or an array of parts.` })
  const parts = content.map((part: unknown, index) => hubPart(part, `${at}[${index}]`))
  const only = parts[0]
  // A single text becomes a string, which every server accepts.
  return parts.length === 1 && only !== undefined && only['type'] === 'text' && typeof only['text'] === 'string' && Object.keys(only).length === 2
    ? only['text']
    : parts
}

function hubPart(part: unknown, at: string): JsonObject {
  if (!isObject(part) || typeof part['type'] !== 'string') throw fail('bad_request', { message: `"${at}" must be an object with a "type".` })
  const cached = isObject(part['cache_control']) ? { cache_control: part['cache_control'] } : {}
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      if (typeof part['text'] !== 'string') throw fail('bad_request', { message: `"${at}.text" must be a string.` })
      return { type: 'text', text: part['text'], ...cached }
    case 'refusal':
      return { type: 'refusal', refusal: textOf(part['refusal']) ?? '' }
    case 'input_image':
      return { ...imagePart(part, at), ...cached }
    case 'input_file':
      return { ...filePart(part, at), ...cached }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part['input_audio'] }
    default:
      throw fail('unsupported_operation', {
        message: `"${at}" is of type ${shownType(part['type'])}, which is not offered here. Send input_text, input_image, input_file or input_audio.`,
      })
  }
}

function imagePart(part: JsonObject, at: string): JsonObject {
  const { image_url: url, detail } = part
  if (typeof url !== 'string' || url === '') throw missing(at, 'image_url')
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' && detail !== 'auto' ? { detail } : {}) } }
}

function filePart(part: JsonObject, at: string): JsonObject {
  const { file_data: data, file_url: url, filename } = part
  const named = typeof filename === 'string' ? { filename } : {}
  if (typeof data === 'string' && data !== '') return { type: 'file', file: { ...named, file_data: data } }
  if (typeof url === 'string' && url !== '') return { type: 'file', file: { ...named, file_url: url } }
  throw missing(at, 'file_data')
}

function missing(at: string, wanted: string): Error {
  return fail('bad_request', { message: `"${at}.${wanted}" must be a non-empty string.` })
}

/** The output of a tool: its text, and its other parts, which are sent to the model in the next user turn. */
export interface ToolOutput {
  readonly text: string
  readonly shown: readonly JsonObject[]
}

/** Reads a tool output, given as text or as parts. Throws the errors of `hubContent`. */
export function toolOutput(output: unknown, at: string): ToolOutput {
  const content = hubContent(output, at)
  if (typeof content === 'string') return { text: content, shown: [] }
  const texts = content.flatMap(part => textOf(part['text']) ?? [])
  const shown = content.filter(part => part['type'] !== 'text')
  const note = shown.length === 0 ? [] : ['(What the tool has shown follows in the next message.)']
  return { text: [...texts, ...note].join('\n'), shown }
}
