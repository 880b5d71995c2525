/**
 * Keeps the fees that a provider takes for reading a file away from the platform's key. No price, hold or charge contains them. Decision 0491 gives
 * the reasons.
 */
import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { HubRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import { editMembers } from '../../wire/json/json-members.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** Returns true when the catalog says that the model reads files itself, so that their tokens are their whole cost. */
const readsFiles = ({ model }: Attempt): boolean => model.modalities.includes('file')

/**
 * Refuses files on a platform key when the provider may charge for reading them. Models that read files themselves take them, and so does a
 * provider whose plugin can be told to use an engine without a fee. Throws `bad_request`.
 */
export function refuseUnpricedFiles({ promptMedia }: Pick<ParsedRequest, 'promptMedia'>, attempt: Attempt): void {
  const { route, byok, model } = attempt
  const { files, forwards, id } = route.provider
  if (files === undefined || byok || forwards === 'all' || promptMedia?.hasFile !== true || readsFiles(attempt)) return
  if (files === 'file-parser' && route.dialect === 'openai') return
  throw fail('bad_request', {
    message: `${model.id} does not read files itself, and ${id} may charge for reading them beside the tokens, so files are for your own provider key only. Send or save one, or send the text of the file.`,
  })
}

/** Returns the request with an engine of the provider's plugin that has no fee. A request of text alone, and one whose plugins the row allows, stay the same. */
export function withFreeFileParser(hub: HubRequest, attempt: Attempt): HubRequest {
  const { provider, dialect } = attempt.route
  if (provider.files !== 'file-parser' || provider.forwards === 'all' || dialect !== 'openai') return hub
  const { messages, plugins } = hub.body
  if (isGiven(plugins) || !Array.isArray(messages) || messages.every(isTextAlone)) return hub
  const chosen = [{ id: 'file-parser', pdf: { engine: readsFiles(attempt) ? 'native' : 'cloudflare-ai' } }]
  const bytes = hub.bytes === null ? null : editMembers(hub.bytes, new Map([['plugins', JSON.stringify(chosen)]]))
  return { ...hub, body: { ...hub.body, plugins: chosen }, bytes }
}

/** A part of any other type may contain a file, or something that the provider reads as one. */
function isTextAlone(message: unknown): boolean {
  const content: unknown = isObject(message) ? message['content'] : undefined
  if (!isGiven(content) || typeof content === 'string') return true
  return Array.isArray(content) && content.every(part => isObject(part) && part['type'] === 'text')
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null
