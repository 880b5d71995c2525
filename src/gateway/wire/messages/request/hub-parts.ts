/** Translates content blocks of a user to parts of the hub format. */
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import { noteBlockFields } from './block-fields.ts'

type Fields = Readonly<Record<string, unknown>>
export type Part = Record<string, unknown>

/**
 * Returns the parts of a block: text, image and document blocks, and search results as text. `drop` receives the names of fields that cannot be carried. Throws
 * `bad_request` that names the place, for an invalid source and for an unknown type.
 */
export function partsOf(block: unknown, at: string, drop: (name: string) => void): readonly Part[] {
  if (!isObject(block)) throw bad(`"${at}" must be an object with a "type".`)
  const parts = uncached(block, at, drop)
  noteBlockFields(block, drop)
  const cache = block['cache_control']
  const last = parts.at(-1)
  return isObject(cache) && last !== undefined ? [...parts.slice(0, -1), { ...last, cache_control: cache }] : parts
}

function uncached(block: Fields, at: string, drop: (name: string) => void): readonly Part[] {
  switch (block['type']) {
    case 'text':
      if (typeof block['text'] !== 'string') throw bad(`"${at}.text" must be a string.`)
      if (block['citations'] !== undefined && block['citations'] !== null) drop('citations')
      return block['text'] === '' ? [] : [{ type: 'text', text: block['text'] }]
    case 'image':
      return [{ type: 'image_url', image_url: { url: urlOf(block['source'], `${at}.source`) } }]
    case 'document':
      return documentParts(block, at, drop)
    case 'search_result':
      noteCitations(block['citations'], drop)
      return [{ type: 'text', text: searchText(block) }]
    default:
      throw bad(`"${at}.type" ${quoted(block['type'])} is not known here, or belongs to another role.`)
  }
}

/** Returns the URL of an image or file source. Bytes become a data URL. Throws `bad_request`. */
function urlOf(source: unknown, at: string): string {
  if (isObject(source)) {
    const { type, data, media_type: mediaType, url } = source
    if (type === 'base64' && typeof data === 'string' && data !== '' && typeof mediaType === 'string' && mediaType !== '')
      return `data:${mediaType};base64,${data}`
    if (type === 'url' && typeof url === 'string' && /^https?:\/\//.test(url)) return url
    if (type === 'file') throw bad(`"${at}" names a stored file, which only its own provider has. Send the bytes as base64, or a URL.`)
  }
  throw bad(`"${at}" must be {type:"base64", media_type, data} or {type:"url", url}.`)
}

function documentParts(block: Fields, at: string, drop: (name: string) => void): readonly Part[] {
  const { source, title, context, citations } = block
  noteCitations(citations, drop)
  const head = [title, context].filter(text => typeof text === 'string' && text !== '').join('\n')
  const lead: readonly Part[] = head === '' ? [] : [{ type: 'text', text: head }]
  if (isObject(source) && source['type'] === 'text' && typeof source['data'] === 'string')
    return [{ type: 'text', text: head === '' ? source['data'] : `${head}\n${source['data']}` }]
  if (isObject(source) && source['type'] === 'content') return [...lead, ...contentParts(source['content'], `${at}.source.content`, drop)]
  const url = urlOf(source, `${at}.source`)
  const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
  const about: readonly Part[] = typeof context === 'string' && context !== '' ? [{ type: 'text', text: context }] : []
  return [...about, { type: 'file', file: url.startsWith('data:') ? { filename, file_data: url } : { filename, file_url: url } }]
}

/** Returns the parts of a content that is a string or a list of blocks. Throws `bad_request`. */
export function contentParts(content: unknown, at: string, drop: (name: string) => void): readonly Part[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw bad(`"${at}" must be a string or an array of blocks.`)
  return content.flatMap((block: unknown, index) => partsOf(block, `${at}[${index}]`, drop))
}

function noteCitations(citations: unknown, drop: (name: string) => void): void {
  if (isObject(citations) && citations['enabled'] === true) drop('citations')
}

function searchText({ title, source, content }: Fields): string {
  const texts = (Array.isArray(content) ? content : []).flatMap((block: unknown) =>
    isObject(block) && typeof block['text'] === 'string' ? [block['text']] : [],
  )
  return [title, source, ...texts].filter(text => typeof text === 'string' && text !== '').join('\n')
}

const quoted = (value: unknown): string => (typeof value === 'string' ? `"${value.slice(0, 64)}"` : '(none)')

function bad(message: string): GatewayError {
  return fail('bad_request', { message })
}
