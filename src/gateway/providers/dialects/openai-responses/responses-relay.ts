/** Relays the Responses API for its own clients: it sends requests on with few changes, and reads streams while they pass. */

import { isObject, type JsonObject, parsedObject } from '../../../../platform/values/json.ts'
import { isBoundedJson } from '../../../wire/json/json-bounds.ts'
import { hasDoubles } from '../../../wire/json/json-doubles.ts'
import { editMembers } from '../../../wire/json/json-members.ts'
import { foreignThinkingName, isPackedHere } from '../../../wire/responses/reasoning.ts'
import { isWebSearch, webSearchName, withoutWebSearch } from '../../../wire/responses/request/tools.ts'
import type { NativeRequest, Target, UpstreamRequest } from '../../dialect.ts'
import { EventTap, modelNamed } from '../event-tap.ts'
import { jsonBody, textOf } from '../json-values.ts'
import { openAiHeaders } from '../openai/openai.ts'
import { eventChars, ItemChars } from '../responses-output.ts'
import { usageOfResponse } from './responses-reply.ts'
import { effortOf } from './responses-request.ts'

/**
 * Returns the request for a provider that uses the Responses API. The body is sent byte for byte, with these exceptions: the model if the provider has another
 * id for it, `store`, which is always false, and fields that this gateway does not allow or the API does not know.
 */
export function responsesRelay(request: NativeRequest, target: Target): UpstreamRequest {
  const { edits, dropped } = editsOf(request.body, target.upstreamModel)
  return { method: 'POST', url: `${target.provider.baseUrl}/responses`, headers: openAiHeaders(request, target), ...bodyOf(request, edits, target), dropped }
}

type Edits = ReadonlyMap<string, unknown>

function editsOf(body: JsonObject, upstreamModel: string): { readonly edits: Edits; readonly dropped: readonly string[] } {
  const edits = new Map<string, unknown>()
  const dropped: string[] = []
  if (body['model'] !== upstreamModel) edits.set('model', upstreamModel)
  if (body['store'] !== false) edits.set('store', false)
  if (body['store'] === true) dropped.push('store')
  const { input, reasoning, tools } = body
  const isPacked = Array.isArray(input) && input.some(isPackedHere)
  const isSearching = Array.isArray(input) && input.some(offersWebSearch)
  if (isPacked || isSearching) edits.set('input', input.filter(item => !isPackedHere(item)).map(withoutItsWebSearch))
  if (isPacked) dropped.push(foreignThinkingName)
  if (isObject(reasoning) && effortOf(reasoning['effort']) !== reasoning['effort'])
    edits.set('reasoning', { ...reasoning, effort: effortOf(reasoning['effort']) })
  const isOffered = Array.isArray(tools) && tools.some(isWebSearch)
  if (isOffered) {
    const left = withoutWebSearch(tools)
    edits.set('tools', left.length === 0 ? undefined : left)
  }
  if (isOffered || isSearching) dropped.push(webSearchName)
  return { edits, dropped }
}

const offersWebSearch = (item: unknown): boolean => isObject(item) && Array.isArray(item['tools']) && item['tools'].some(isWebSearch)

const withoutItsWebSearch = (item: unknown): unknown =>
  isObject(item) && Array.isArray(item['tools']) ? { ...item, tools: withoutWebSearch(item['tools']) } : item

function bodyOf({ body, bytes }: NativeRequest, edits: Edits, target: Target): Pick<UpstreamRequest, 'body' | 'unwritten'> {
  // If a name occurs twice, the gateway reads the last one, and a provider may read the first.
  if (bytes === null || hasDoubles(bytes, body)) return jsonBody({ ...body, ...Object.fromEntries(edits) }, target)
  if (edits.size === 0) return { body: bytes }
  return { body: editMembers(bytes, new Map([...edits].map(([name, value]) => [name, value === undefined ? undefined : JSON.stringify(value)]))) }
}

/** Events that name the model, have output, or end the stream. The bytes of all others are not read. */
const readEvents = /^response\.(?:[\w.]+\.delta|output_item\.done|created|completed|incomplete|failed)$|^error$/

/** Events that end a stream with a response. One with many probabilities has more values than are parsed: then its usage alone is read. */
const lastEvents: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])

/** Events that do not count as the beginning of a stream. */
const silentEvents: ReadonlySet<string> = new Set(['keepalive', 'response.queued', 'response.failed', 'error'])

/** Only this part of a longer error is passed on. */
const faultMaxChars = 4096

/** Most bytes of the usage of a response. */
const usageMaxBytes = 4096
const usageName = Buffer.from('"usage":')
/** Most members of that name that are examined. */
const usageLooksMax = 16

/**
 * Returns the last object called usage in the text of an event that is the usage of a response, or null. A string cannot hold that name, because its quotes
 * are escaped there, but other members may have it.
 */
function lastUsageOf(text: Buffer): JsonObject | null {
  for (let at = text.lastIndexOf(usageName), looks = 0; at > 0 && looks < usageLooksMax; at = text.lastIndexOf(usageName, at - 1), looks++) {
    const from = at + usageName.length
    const tail = text.toString('latin1', from, from + usageMaxBytes)
    if (!tail.startsWith('{')) continue
    for (let end = tail.indexOf('}'); end !== -1; end = tail.indexOf('}', end + 1)) {
      const usage = parsedObject(tail.slice(0, end + 1))
      if (usage !== null && usageOfResponse(usage) !== null) return usage
      if (usage !== null) break
    }
  }
  return null
}

/** Reads a stream of the Responses API while its bytes pass, and counts its events. The same bytes give the same result for any chunking. */
export class ResponsesStreamTap extends EventTap {
  #name: string | null = null
  readonly #items = new ItemChars()

  protected field(bytes: Uint8Array, start: number, end: number): boolean {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start)
    if (text.indexOf('event:') === 0) this.#name = text.toString('utf8', 'event:'.length).trim()
    if (text.indexOf('data:') !== 0) return false
    if (this.#name === null || readEvents.test(this.#name)) {
      const isBounded = isBoundedJson(text, 0, text.length)
      this.#event(isBounded ? parsedObject(text.toString('utf8', 'data:'.length)) : null)
      if (!isBounded && this.#name !== null && lastEvents.has(this.#name)) this.#end({ usage: lastUsageOf(text) })
    } else if (!silentEvents.has(this.#name)) this.says = true
    return true
  }

  protected override eventEnds(): void {
    this.#name = null
  }

  #event(event: JsonObject | null): void {
    const type = textOf(event?.['type']) || (this.#name ?? '')
    if (type === 'response.created') this.says = true
    if (event === null) return
    if (!silentEvents.has(type)) this.says = true
    if (type.endsWith('.delta')) {
      const chars = eventChars({ ...event, type })
      this.#items.addChars(event['output_index'], chars)
      this.outputChars += chars
      return
    }
    switch (type) {
      case 'response.output_item.done':
        this.outputChars += this.#items.late(event['output_index'], event['item'])
        return
      case 'response.created':
        this.#named(event['response'])
        return
      case 'response.completed':
      case 'response.incomplete':
        this.#end(event['response'])
        return
      case 'response.failed':
        this.#fail(event)
        this.#end(event['response'])
        return
      case 'error':
        this.#fail(event)
        return
      default:
        return
    }
  }

  #fail(event: JsonObject): void {
    this.failed = true
    const { response } = event
    const error = isObject(response) ? response['error'] : event
    this.fault = JSON.stringify(error ?? null).slice(0, faultMaxChars)
  }

  #named(response: unknown): void {
    if (isObject(response)) this.model = modelNamed(response) ?? this.model
  }

  #end(response: unknown): void {
    this.isLast = true
    if (!isObject(response)) return
    this.#named(response)
    const usage = usageOfResponse(response['usage'])
    if (usage === null) return
    this.usage = usage
    this.usageChars = this.outputChars
  }
}
