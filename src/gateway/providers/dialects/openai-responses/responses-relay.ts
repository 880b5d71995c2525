/** Relays the Responses API for its own clients. It sends requests on with few changes, and reads streams while they pass. */

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
 * Returns the request for a provider that uses the Responses API. The body is sent byte for byte, with three exceptions. The model id changes when
 * the provider has another id for the model. `store` is always false. Fields that this gateway does not allow, or the API does not know, are removed.
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
  // When a name occurs twice, the gateway reads the last occurrence, and a provider may read the first.
  // A changed input is written again, which takes turns of the event loop when the body is heavy.
  const isWrittenLater = target.writesLater === true && edits.has('input')
  if (bytes === null || isWrittenLater || hasDoubles(bytes, body)) return jsonBody({ ...body, ...Object.fromEntries(edits) }, target)
  if (edits.size === 0) return { body: bytes }
  return { body: editMembers(bytes, new Map([...edits].map(([name, value]) => [name, value === undefined ? undefined : JSON.stringify(value)]))) }
}

/** Events that name the model, contain output, or end the stream. The bytes of other events are not read. */
const readEvents = /^response\.(?:[\w.]+\.delta|output_item\.done|created|completed|incomplete|failed)$|^error$/

/**
 * Events that end a stream with the whole response. A response with many token probabilities may have too many values to parse. In that case, only
 * its usage is read.
 */
const lastEvents: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])

/** Events that do not count as the beginning of a stream. */
const silentEvents: ReadonlySet<string> = new Set(['keepalive', 'response.queued', 'response.failed', 'error'])

/** Maximum number of characters of an error that are passed on. */
const faultMaxChars = 4096

/** Maximum size of the usage object of a response, in bytes. */
const usageMaxBytes = 4096
const usageName = Buffer.from('"usage":')
/** Maximum number of members of that name that are examined. */
const usageLooksMax = 16

/**
 * Returns the last object named usage in the text of an event, if it has the form of a response's usage. Returns null when there is none. The name
 * cannot occur inside a string, because quotes are escaped there, but other members may have the same name.
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

/** Reads a stream of the Responses API while its bytes pass, and counts its events. The same bytes give the same result, however they are chunked. */
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
