/** Finds base64 pictures in a request, in every place where the four client formats allow them. Pictures inside tool results do not count. */
import { isObject } from '../../platform/values/json.ts'
import type { WireFormat } from './client-format.ts'
import { fieldOf, nameIn } from './gemini/fields.ts'

/** A picture in a request. */
export interface InlineImage {
  /** `image/png` */
  readonly mediaType: string
  readonly base64: string
}

/** Returns the replacement of a picture, or the same object to leave the picture unchanged. */
export type ImageChange = (image: InlineImage) => InlineImage

type Json = Readonly<Record<string, unknown>>

/**
 * Returns the body with its pictures changed by `change`, or the same object if no picture has changed. Changed parts are copies; the given body is not
 * modified. Parts that violate their format are skipped, not refused.
 */
export function changeImages(format: WireFormat, body: Json, change: ImageChange): Json {
  switch (format) {
    case 'openai':
      return changeMember(body, 'messages', message => (isToolMessage(message) ? message : changeMember(message, 'content', part => chatPart(part, change))))
    case 'anthropic':
      return changeMember(body, 'messages', message => changeMember(message, 'content', block => messagesBlock(block, change)))
    case 'openai-responses':
      return changeMember(body, 'input', item => (isMessageItem(item) ? changeMember(item, 'content', part => responsesPart(part, change)) : item))
    case 'gemini':
      return changeMember(body, 'contents', content => changeMember(content, 'parts', part => geminiPart(part, change)))
  }
}

/**
 * Returns the base64 texts of the pictures inside tool results. A translation may move these pictures out of the tool results, and they must still not be
 * changed.
 */
export function toolResultImages(format: WireFormat, body: Json): ReadonlySet<string> {
  const found = new Set<string>()
  if (format === 'gemini') return geminiResults(body)
  const items = body[format === 'openai-responses' ? 'input' : 'messages']
  for (const item of listOf(items)) {
    if (!isObject(item)) continue
    if (format === 'openai' && isToolMessage(item)) collect(item['content'], found)
    if (format === 'openai-responses' && !isMessageItem(item)) collect(item['output'], found)
    if (format === 'anthropic')
      for (const block of listOf(item['content'])) if (isObject(block) && block['type'] === 'tool_result') collect(block['content'], found)
  }
  return found
}

function collect(content: unknown, found: Set<string>): void {
  const keep: ImageChange = image => {
    found.add(image.base64)
    return image
  }
  for (const part of isObject(content) ? [content] : listOf(content)) {
    if (!isObject(part)) continue
    chatPart(part, keep)
    messagesBlock(part, keep)
    responsesPart(part, keep)
    if (part['type'] === 'computer_screenshot') dataUrl(part['image_url'], keep)
  }
}

/** Returns the pictures in the parts of function responses. */
function geminiResults(body: Json): ReadonlySet<string> {
  const found = new Set<string>()
  const keep: ImageChange = image => {
    found.add(image.base64)
    return image
  }
  for (const content of listOf(body['contents']))
    for (const part of isObject(content) ? listOf(content['parts']) : []) {
      const response = isObject(part) ? fieldOf(part, 'functionResponse') : undefined
      for (const inner of isObject(response) ? listOf(response['parts']) : []) if (isObject(inner)) geminiPart(inner, keep)
    }
  return found
}

const isToolMessage = ({ role }: Json): boolean => role === 'tool' || role === 'function'
/** True for a message. Tool calls and their outputs always have a type; a message may omit its type. */
const isMessageItem = ({ type, role }: Json): boolean => type === 'message' || (type === undefined && typeof role === 'string')

/** `{type: 'image_url', image_url: {url}}`, or `image_url` as the URL itself. */
function chatPart(part: Json, change: ImageChange): Json {
  if (part['type'] !== 'image_url') return part
  const image = part['image_url']
  const url = isObject(image) ? image['url'] : image
  const changed = dataUrl(url, change)
  if (changed === url) return part
  return { ...part, image_url: isObject(image) ? { ...image, url: changed } : changed }
}

/** `{type: 'image', source: {type: 'base64', media_type, data}}` */
function messagesBlock(block: Json, change: ImageChange): Json {
  const source = block['source']
  if (block['type'] !== 'image' || !isObject(source) || source['type'] !== 'base64') return block
  const { media_type: mediaType, data: base64 } = source
  if (typeof mediaType !== 'string' || typeof base64 !== 'string') return block
  const given = { mediaType, base64 }
  const changed = change(given)
  return changed === given ? block : { ...block, source: { ...source, media_type: changed.mediaType, data: changed.base64 } }
}

/** `{type: 'input_image', image_url}` */
function responsesPart(part: Json, change: ImageChange): Json {
  if (part['type'] !== 'input_image') return part
  const changed = dataUrl(part['image_url'], change)
  return changed === part['image_url'] ? part : { ...part, image_url: changed }
}

/** `{inlineData: {mimeType, data}}` */
function geminiPart(part: Json, change: ImageChange): Json {
  const blob = fieldOf(part, 'inlineData')
  if (!isObject(blob)) return part
  const mediaType = fieldOf(blob, 'mimeType')
  const { data: base64 } = blob
  if (typeof mediaType !== 'string' || !mediaType.startsWith('image/') || typeof base64 !== 'string') return part
  const given = { mediaType, base64 }
  const changed = change(given)
  if (changed === given) return part
  return { ...part, [nameIn(part, 'inlineData')]: { ...blob, [nameIn(blob, 'mimeType')]: changed.mediaType, data: changed.base64 } }
}

const dataUrlHead = /^data:(image\/[a-z0-9.+-]+)(?:;[a-z0-9=._-]+)*;base64,/i

/** Returns the URL with its picture changed. Anything but an inline picture is returned unchanged. */
function dataUrl(url: unknown, change: ImageChange): unknown {
  if (typeof url !== 'string' || !url.startsWith('data:')) return url
  const head = dataUrlHead.exec(url.slice(0, 200))
  if (head?.[1] === undefined) return url
  const given = { mediaType: head[1], base64: url.slice(head[0].length) }
  const changed = change(given)
  return changed === given ? url : `data:${changed.mediaType};base64,${changed.base64}`
}

/** Returns the object with `change` applied to every object of one of its lists, or the same object if nothing changes. */
function changeMember(object: Json, name: string, change: (item: Json) => Json): Json {
  const list = object[name]
  if (!Array.isArray(list)) return object
  let isChanged = false
  const items = list.map((item: unknown) => {
    if (!isObject(item)) return item
    const changed = change(item)
    if (changed !== item) isChanged = true
    return changed
  })
  return isChanged ? { ...object, [name]: items } : object
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
