/** What of a request does not go on to a provider on the platform's key. On a key or server of the caller everything goes on. */
import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { HubRequest, NativeRequest } from '../../providers/dialect.ts'
import { chatFields, embeddingFields, type FieldRules, heldBack, messagesFields, plainBetas, responsesFields } from '../../providers/format-fields.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Attempt } from '../../routing/plan.ts'
import { editMembers } from '../../wire/json/json-members.ts'
import { refuseProviderTools } from '../media/surcharges.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * A chat or embeddings request for a route on the platform's key: without the fields that do not go on, which are named as dropped. The very
 * same object when there are none. Throws `bad_request` for what would be another request without it: tools that the provider would run, and
 * references to what is stored in its account.
 */
export function withoutWithheld(hub: HubRequest, { byok, route: { provider, dialect } }: Attempt): HubRequest {
  if (byok) return hub
  const isChat = hub.operation === 'chat'
  if (isChat) {
    refuseProviderTools(hub.body)
    refuseStoredFiles(hub.body, dialect === 'openai')
  }
  const names = heldBack(hub.body, isChat ? chatFields : embeddingFields, provider)
  if (names.length === 0) return hub
  return { ...hub, body: without(hub.body, names), bytes: bytesWithout(hub.bytes, names), dropped: [...hub.dropped, ...names] }
}

/** The same of a request in the client's own format, with the names that were taken out. */
export function withoutNativeWithheld(
  native: NativeRequest,
  { byok, route: { provider } }: Attempt,
): { readonly native: NativeRequest; readonly dropped: readonly string[] } {
  if (byok) return { native, dropped: none }
  if (native.format !== 'openai-responses') refuseStoredFiles(native.body, native.format === 'openai')
  const names = heldBack(native.body, nativeRules[native.format], provider)
  const betas = withPlainBetas(native.headers, provider)
  if (names.length === 0 && betas === null) return { native, dropped: none }
  const changed = names.length === 0 ? native : { ...native, body: without(native.body, names), bytes: bytesWithout(native.bytes, names) }
  return { native: betas === null ? changed : { ...changed, headers: betas.headers }, dropped: [...names, ...(betas?.dropped ?? none)] }
}

const nativeRules: Readonly<Record<NativeRequest['format'], FieldRules>> = {
  openai: chatFields,
  'openai-responses': responsesFields,
  anthropic: messagesFields,
}

const none: readonly string[] = Object.freeze([])

const without = (body: Fields, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))

const bytesWithout = (bytes: Buffer | null, names: readonly string[]): Buffer | null =>
  bytes === null ? null : editMembers(bytes, new Map(names.map(name => [name, undefined])))

const betaHeader = 'anthropic-beta'

/** The headers with those betas alone that cost nothing; null when nothing has to change. */
function withPlainBetas(headers: NativeRequest['headers'], { forwards, fields }: Provider) {
  const given = headers[betaHeader]
  if (given === undefined || forwards === 'all') return null
  const betas = given.split(',').map(beta => beta.trim())
  const isKept = (beta: string): boolean => beta === '' || plainBetas.test(beta) || fields?.has(`${betaHeader}.${beta}`) === true
  if (betas.every(isKept)) return null
  const { [betaHeader]: _given, ...others } = headers
  const kept = betas.filter(beta => beta !== '' && isKept(beta))
  return {
    headers: kept.length === 0 ? others : { ...others, [betaHeader]: kept.join(',') },
    dropped: betas.filter(beta => !isKept(beta)).map(beta => `${betaHeader}.${beta}`),
  }
}

/**
 * Parts of messages that name a file or a recording in the account of whoever owns the key. Recordings of earlier turns are known in the
 * chat format only; on the way to another they are dropped. Throws `bad_request`.
 */
function refuseStoredFiles({ messages }: Fields, knowsAudio: boolean): void {
  if (!Array.isArray(messages)) return
  for (let index = 0; index < messages.length; index++) {
    const message: unknown = messages[index]
    if (!isObject(message)) continue
    const { audio, content } = message
    if (knowsAudio && isObject(audio) && isGiven(audio['id'])) throw stored(`messages[${index}].audio.id`)
    if (Array.isArray(content)) refuseStoredParts(content, `messages[${index}].content`)
  }
}

/** Members of a part that may hold the reference: the part itself, or the file, picture, recording or source in it. */
const holders = ['file', 'image_url', 'input_audio', 'video_url', 'source'] as const

function refuseStoredParts(parts: readonly unknown[], at: string): void {
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]
    if (!isObject(part)) continue
    if (isGiven(part['file_id'])) throw stored(`${at}[${index}].file_id`)
    for (const name of holders) {
      const held = part[name]
      if (typeof held !== 'object' || held === null || !isObject(held)) continue
      if (isGiven(held['file_id'])) throw stored(`${at}[${index}].${name}.file_id`)
      if (name === 'input_audio' && isGiven(held['id'])) throw stored(`${at}[${index}].${name}.id`)
    }
    // What a tool gave back has parts of its own.
    if (Array.isArray(part['content'])) refuseStoredParts(part['content'], `${at}[${index}].content`)
  }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const stored = (at: string): Error =>
  fail('bad_request', {
    message: `"${at}" names something that is stored at the provider, in the account of whoever owns the key, so it is for your own provider key only. Send the content itself.`,
  })
