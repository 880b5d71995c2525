/**
 * What of a request names something that is stored at a provider: by an id, by an address of its file store, or by an address that only the
 * provider's own account can open (`gs://`, `oss://`). On the platform's key that account is everybody's, so the content may be somebody
 * else's. On a key or server of the caller all of it goes on. Decision 0385 says why.
 */
import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import { sandboxId } from '../../catalog/loading/sandbox.ts'
import { fileStoreHosts } from '../../providers/format-fields.ts'
import type { Provider } from '../../providers/provider.ts'

type Fields = Readonly<Record<string, unknown>>
type Store = Pick<Provider, 'id' | 'baseUrl'>

/**
 * Refuses parts of messages (chat or messages format) that name a stored file or recording. Recordings of earlier turns are known in the chat
 * format only; on the way to another they are dropped. Throws `bad_request`.
 */
export function refuseStoredFiles({ messages }: Fields, store: Store, knowsAudio: boolean): void {
  if (!Array.isArray(messages)) return
  for (let index = 0; index < messages.length; index++) {
    const message: unknown = messages[index]
    if (!isObject(message)) continue
    const { audio, content } = message
    if (knowsAudio && isObject(audio) && isGiven(audio['id'])) throw stored(`messages[${index}].audio.id`)
    if (Array.isArray(content)) refuseStoredParts(content, store, `messages[${index}].content`)
  }
}

/** Refuses the same in the items of the responses format: messages with their parts, outputs of calls, and pictures of earlier turns. Throws `bad_request`. */
export function refuseStoredItems({ input }: Fields, store: Store): void {
  if (!Array.isArray(input)) return
  for (let index = 0; index < input.length; index++) {
    const item: unknown = input[index]
    if (!isObject(item)) continue
    const { type, result, content, output } = item
    // A picture of an earlier turn is stored there when it is not in the request.
    if (type === 'image_generation_call' && isGiven(item['id']) && !isGiven(result)) throw stored(`input[${index}].id`)
    if (Array.isArray(content)) refuseStoredParts(content, store, `input[${index}].content`)
    if (Array.isArray(output)) refuseStoredParts(output, store, `input[${index}].output`)
    else if (isObject(output)) refuseStoredParts([output], store, `input[${index}].output`)
  }
}

/** Members of a part that may hold the reference: the part itself, or the file, picture, film, recording or source in it. */
const holders = ['file', 'image_url', 'input_audio', 'audio_url', 'video_url', 'file_url', 'source'] as const
/** Members that are addresses, of a part or of what it holds. A film may be a list of pictures. */
const addresses = ['url', 'file_url', 'image_url', 'audio_url', 'video_url', 'file_data', 'image', 'audio', 'video'] as const

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
      // A document may be made of blocks.
      if (Array.isArray(content)) refuseStoredParts(content, store, `${at}[${index}].${name}.content`)
    }
    // What a tool gave back has parts of its own.
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

/** An address has its scheme and its host within so many characters. */
const headMaxChars = 1024

/**
 * Whether only the account of the provider can open the address: it has a scheme of its own, or the host of the provider or of a file store.
 * Data goes on, and so does what is no address. The sandbox has no accounts: the pictures that it drew may go back to it.
 */
function isStoredAddress(address: unknown, { id, baseUrl }: Store): boolean {
  if (typeof address !== 'string') return false
  // Readers of addresses pass over white space, so it must not hide a scheme. Of data, which may be long, the head is enough.
  const head = address.slice(0, headMaxChars).replace(/\s+/g, '')
  if (!/^https?:/i.test(head)) return /^[a-z][a-z0-9+.-]*:\/\//i.test(head)
  const start = /^https?:[\\/]*[^\\/?#]+(?=[\\/?#])/i.exec(head)?.[0]
  if (start === undefined && address.length > headMaxChars) return true
  const read = urlOf(start ?? head)
  // What cannot be read here may be read there.
  if (read === null) return true
  if (read.host === urlOf(baseUrl)?.host) return id !== sandboxId
  const host = read.hostname.replace(/\.+$/, '')
  return fileStoreHosts.some(known => host === known || host.endsWith(`.${known}`) || host.endsWith(`-${known}`))
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
