/** Removes fields of a request before it goes to a provider on the operator's key. On a key or server of the caller, the gateway sends all fields. */
import type { HubRequest, NativeRequest } from '../../providers/dialect.ts'
import {
  chatFields,
  embeddingFields,
  type FieldRules,
  geminiFields,
  heldBack,
  messagesFields,
  plainBetas,
  responsesFields,
} from '../../providers/format-fields.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Attempt } from '../../routing/plan.ts'
import { editMembers } from '../../wire/json/json-members.ts'
import { withFreeFileParser } from '../media/file-fees.ts'
import { refuseProviderTools, refuseUnknownItems } from '../media/surcharges.ts'
import { refuseStoredContents, refuseStoredFiles, refuseStoredItems } from './stored-files.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns a chat or embeddings request for a route on the operator's key. Withheld fields are removed and named as dropped. For a provider that reads files
 * for a fee, the request asks for an engine without a fee. Returns the same object when nothing changes. Throws `bad_request` for parts whose removal would
 * change the meaning of the request: tools that the provider would run, and references to content that is stored in the provider's account.
 */
export function withoutWithheld(hub: HubRequest, attempt: Attempt): HubRequest {
  const {
    byok,
    route: { provider, dialect },
  } = attempt
  if (byok) return hub
  const isChat = hub.operation === 'chat'
  if (isChat) {
    refuseProviderTools(hub.body)
    refuseStoredFiles(hub.body, provider, dialect === 'openai')
  }
  const names = heldBack(hub.body, isChat ? chatFields : embeddingFields, provider)
  const sent = names.length === 0 ? hub : { ...hub, body: without(hub.body, names), bytes: bytesWithout(hub.bytes, names), dropped: [...hub.dropped, ...names] }
  return isChat ? withFreeFileParser(sent, attempt) : sent
}

/** Returns a request in the client's own format without the withheld fields, and their names. */
export function withoutNativeWithheld(
  native: NativeRequest,
  { byok, route: { provider } }: Attempt,
): { readonly native: NativeRequest; readonly dropped: readonly string[] } {
  if (byok) return { native, dropped: none }
  if (native.format === 'openai-responses') {
    refuseStoredItems(native.body, provider)
    if (provider.forwards !== 'all') refuseUnknownItems(native.body)
  } else if (native.format === 'gemini') refuseStoredContents(native.body, provider)
  else refuseStoredFiles(native.body, provider, native.format === 'openai')
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
  gemini: geminiFields,
}

const none: readonly string[] = Object.freeze([])

/** Returns an object without these members. It has one lookup a member, because a caller can send thousands. */
export function without(body: Fields, names: readonly string[]): Record<string, unknown> {
  const withheld = new Set(names)
  return Object.fromEntries(Object.entries(body).filter(([name]) => !withheld.has(name)))
}

const bytesWithout = (bytes: Buffer | null, names: readonly string[]): Buffer | null =>
  bytes === null ? null : editMembers(bytes, new Map(names.map(name => [name, undefined])))

const betaHeader = 'anthropic-beta'

/** Returns the headers with only those betas that cost nothing. Null when nothing changes. */
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
