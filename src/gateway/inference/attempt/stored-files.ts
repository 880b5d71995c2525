/**
 * Refuses references to content that is stored at a provider: an id, an address of its file store, or an address that only the provider's own
 * account can open (`gs://`, `oss://`). All callers share the account of the platform's key, so the content may belong to another caller. On a
 * key or server of the caller every reference is sent. Decision 0385 gives the reasons.
 */
import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import { sandboxId } from '../../catalog/loading/sandbox.ts'
import { fileStoreHosts } from '../../providers/format-fields.ts'
import type { Provider } from '../../providers/provider.ts'

type Fields = Readonly<Record<string, unknown>>

/** The most http addresses of a request that are compared with those of the provider, and of addresses with white space. */
const addressesMax = 2000

/** The provider whose stored content is refused, and the number of addresses that were compared so far. */
class Store {
  readonly #provider: Pick<Provider, 'id' | 'baseUrl'>
  /** The host of the provider. It is read at the first address: most requests have none, and reading it takes microseconds. */
  #host: string | null | undefined
  #compared = 0

  constructor(provider: Pick<Provider, 'id' | 'baseUrl'>) {
    this.#provider = provider
  }

  /** Counts an address. Throws `bad_request` when there are too many. */
  count(): void {
    if (++this.#compared > addressesMax)
      throw fail('bad_request', { message: `The messages contain more than ${addressesMax} addresses. Send fewer in one request.` })
  }

  /** True when the provider's account can open the address. The sandbox has no accounts. */
  has({ host, hostname }: URL): boolean {
    if (this.#host === undefined) this.#host = urlOf(this.#provider.baseUrl)?.host ?? null
    if (host === this.#host) return this.#provider.id !== sandboxId
    const name = hostname.replace(/\.+$/, '')
    return fileStoreHosts.some(known => name === known || name.endsWith(`.${known}`) || name.endsWith(`-${known}`))
  }
}

/**
 * Refuses parts of messages (chat or messages format) that name a stored file or recording. Only the chat format has recordings of earlier
 * turns; a translation to another format drops them. Throws `bad_request`.
 */
export function refuseStoredFiles({ messages }: Fields, provider: Pick<Provider, 'id' | 'baseUrl'>, knowsAudio: boolean): void {
  if (!Array.isArray(messages)) return
  const store = new Store(provider)
  for (let index = 0; index < messages.length; index++) {
    const message: unknown = messages[index]
    if (!isObject(message)) continue
    const { audio, content } = message
    if (knowsAudio && isObject(audio) && isGiven(audio['id'])) throw stored(`messages[${index}].audio.id`)
    if (Array.isArray(content)) refuseStoredParts(content, store, `messages[${index}].content`)
  }
}

/**
 * Refuses stored content in the items of the responses format: in parts of messages, in outputs of calls, and as pictures of earlier turns.
 * Throws `bad_request`.
 */
export function refuseStoredItems({ input }: Fields, provider: Pick<Provider, 'id' | 'baseUrl'>): void {
  if (!Array.isArray(input)) return
  const store = new Store(provider)
  for (let index = 0; index < input.length; index++) {
    const item: unknown = input[index]
    if (!isObject(item)) continue
    const { type, result, content, output } = item
    // A picture of an earlier turn is stored at the provider when the request does not contain it.
    if (type === 'image_generation_call' && isGiven(item['id']) && !isGiven(result)) throw stored(`input[${index}].id`)
    if (Array.isArray(content)) refuseStoredParts(content, store, `input[${index}].content`)
    if (Array.isArray(output)) refuseStoredParts(output, store, `input[${index}].output`)
    else if (isObject(output)) refuseStoredParts([output], store, `input[${index}].output`)
  }
}

/** Refuses stored content in the contents of Google's format: a cached content, and parts with an address. Throws `bad_request`. */
export function refuseStoredContents(body: Fields, provider: Pick<Provider, 'id' | 'baseUrl'>): void {
  const cached = ['cachedContent', 'cached_content'].find(name => isGiven(body[name]))
  if (cached !== undefined) throw stored(cached)
  const { contents } = body
  const store = new Store(provider)
  const system = body['systemInstruction'] ?? body['system_instruction']
  if (isObject(system)) refuseStoredGemini(system['parts'], store, 'systemInstruction.parts')
  if (!Array.isArray(contents)) return
  for (let index = 0; index < contents.length; index++) {
    const content: unknown = contents[index]
    if (isObject(content)) refuseStoredGemini(content['parts'], store, `contents[${index}].parts`)
  }
}

function refuseStoredGemini(parts: unknown, store: Store, at: string): void {
  if (!Array.isArray(parts)) return
  for (let index = 0; index < parts.length; index++) {
    const part: unknown = parts[index]
    if (!isObject(part)) continue
    const file = part['fileData'] ?? part['file_data']
    if (isObject(file)) {
      const address = file['fileUri'] ?? file['file_uri']
      // A text that is no address may be the name of a stored file.
      if (typeof address !== 'string' || !/^https?:/i.test(address.trim()) || isStoredAddress(address, store)) throw stored(`${at}[${index}].fileData.fileUri`)
    }
    const response = part['functionResponse'] ?? part['function_response']
    if (isObject(response)) refuseStoredGemini(response['parts'], store, `${at}[${index}].functionResponse.parts`)
  }
}

/** The members of a part that may contain the reference: a file, picture, film, recording or source. The part itself may contain it too. */
const holders = ['file', 'image_url', 'input_audio', 'audio_url', 'video_url', 'file_url', 'document_url', 'source'] as const
/** The members with addresses, in a part or in one of its members. A film may be a list of pictures. */
const addresses = ['url', 'file_url', 'document_url', 'image_url', 'audio_url', 'video_url', 'file_data', 'image', 'audio', 'video'] as const

function refuseStoredParts(parts: readonly unknown[], store: Store, at: string): void {
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]
    if (!isObject(part)) continue
    refuseStored(part, store, at, index, '')
    for (const name of holders) {
      const held = part[name]
      if (typeof held !== 'object' || held === null || !isObject(held)) continue
      refuseStored(held, store, at, index, `.${name}`)
      if (name === 'input_audio') {
        if (isGiven(held['id'])) throw stored(`${at}[${index}].${name}.id`)
        if (isStoredAddress(held['data'], store)) throw stored(`${at}[${index}].${name}.data`)
      }
      if (name === 'source' && held['type'] === 'file') throw stored(`${at}[${index}].${name}.type`)
      const { file_url: deeper, content } = held
      if (isObject(deeper)) refuseStored(deeper, store, at, index, `.${name}.file_url`)
      // A document may consist of blocks.
      if (Array.isArray(content)) refuseStoredParts(content, store, `${at}[${index}].${name}.content`)
    }
    // The result of a tool has parts of its own.
    if (Array.isArray(part['content'])) refuseStoredParts(part['content'], store, `${at}[${index}].content`)
  }
}

function refuseStored(holder: Fields, store: Store, at: string, index: number, within: string): void {
  if (isGiven(holder['file_id'])) throw stored(`${at}[${index}]${within}.file_id`)
  for (const name of addresses) {
    const given = holder[name]
    const isOfStore = Array.isArray(given) ? given.some(each => isStoredAddress(each, store)) : isStoredAddress(given, store)
    if (isOfStore) throw stored(`${at}[${index}]${within}.${name}`)
  }
}

/** The scheme and the host of an address are within this number of characters. */
const headMaxChars = 1024

/**
 * Returns true when only the provider's account can open the address: when its scheme is not http, or when its host is the provider's or a file
 * store's. Data URLs and texts that are not addresses are sent. The sandbox has no accounts, so the pictures that it drew may be sent back to
 * it.
 */
function isStoredAddress(address: unknown, store: Store): boolean {
  if (typeof address !== 'string') return false
  // Readers of addresses ignore white space, so white space must not hide a scheme. For data, which may be long, the beginning is enough.
  const head = withoutSpace(address.slice(0, headMaxChars), store)
  if (!/^https?:/i.test(head)) return /^[a-z][a-z0-9+.-]*:\/\//i.test(head)
  store.count()
  const start = /^https?:[\\/]*[^\\/?#]+(?=[\\/?#])/i.exec(head)?.[0]
  if (start === undefined && address.length > headMaxChars) return true
  const read = urlOf(start ?? head)
  // The provider may be able to read an address that cannot be read here.
  return read === null || store.has(read)
}

/** Removes white space. An address with white space counts, because removing it takes as long as comparing a host. */
function withoutSpace(head: string, store: Store): string {
  if (!/\s/.test(head)) return head
  store.count()
  return head.replace(/\s+/g, '')
}

function urlOf(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const stored = (at: string): Error =>
  fail('bad_request', {
    message: `"${at}" names something that is stored at the provider, in the account of whoever owns the key, so it is for your own provider key only. Send the content itself.`,
  })
