/** The Responses API as its own clients speak it: what goes on nearly as it came, and what is learned from a stream on its way back. */

import { isObject, type JsonObject, parsedObject } from '../../../platform/json.ts'
import { editMembers, mayRepeat } from '../../wire/json-members.ts'
import { foreignThinkingName, isPackedHere } from '../../wire/responses/reasoning.ts'
import { isWebSearch, webSearchName } from '../../wire/responses/tools.ts'
import type { NativeRequest, Target, UpstreamRequest } from '../dialect.ts'
import { EventTap } from './event-tap.ts'
import { textOf } from './json-values.ts'
import { openAiHeaders } from './openai.ts'
import { usageOfResponse } from './responses-reply.ts'
import { effortOf } from './responses-request.ts'

/**
 * The request for a provider that speaks the Responses API: the body byte for byte, but for the model where the provider knows it by
 * another id, `store`, which is always false, and what this gateway does not let through or the API does not know.
 */
export function responsesRelay(request: NativeRequest, target: Target): UpstreamRequest {
  const { edits, dropped } = editsOf(request.body, target.upstreamModel)
  return { method: 'POST', url: `${target.provider.baseUrl}/responses`, headers: openAiHeaders(request, target), body: bodyOf(request, edits), dropped }
}

/** What decides over price, hold, ceiling and storage. Of two equal names we read the last one, and a provider may read the first. */
const meteredNames = ['model', 'max_output_tokens', 'stream', 'store', 'input', 'instructions', 'tools', 'background', 'service_tier'] as const

type Edits = ReadonlyMap<string, unknown>

function editsOf(body: JsonObject, upstreamModel: string): { readonly edits: Edits; readonly dropped: readonly string[] } {
  const edits = new Map<string, unknown>()
  const dropped: string[] = []
  if (body['model'] !== upstreamModel) edits.set('model', upstreamModel)
  if (body['store'] !== false) edits.set('store', false)
  if (body['store'] === true) dropped.push('store')
  const { input, reasoning, tools } = body
  if (Array.isArray(input) && input.some(isPackedHere)) {
    edits.set(
      'input',
      input.filter(item => !isPackedHere(item)),
    )
    dropped.push(foreignThinkingName)
  }
  if (isObject(reasoning) && effortOf(reasoning['effort']) !== reasoning['effort'])
    edits.set('reasoning', { ...reasoning, effort: effortOf(reasoning['effort']) })
  if (Array.isArray(tools) && tools.some(isWebSearch)) {
    const left = tools.filter(tool => !isWebSearch(tool))
    edits.set('tools', left.length === 0 ? undefined : left)
    dropped.push(webSearchName)
  }
  return { edits, dropped }
}

function bodyOf({ body, bytes }: NativeRequest, edits: Edits): Buffer | string {
  if (bytes === null) return JSON.stringify({ ...body, ...Object.fromEntries(edits) })
  if (edits.size === 0 && !mayRepeat(bytes, meteredNames, body)) return bytes
  return editMembers(bytes, new Map([...edits].map(([name, value]) => [name, value === undefined ? undefined : JSON.stringify(value)])))
}

/** Events that say what has been produced or how it ended; the bytes of all others are not read. */
const readEvents = /^response\.(?:[\w.]+\.delta|completed|incomplete|failed)$|^error$/

/** Reads a stream of the Responses API while its bytes go by, and counts its events. Any chunking of the same bytes gives the same result. */
export class ResponsesStreamTap extends EventTap {
  #name: string | null = null

  protected field(bytes: Uint8Array, start: number, end: number): boolean {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start)
    if (text.indexOf('event:') === 0) this.#name = text.toString('utf8', 'event:'.length).trim()
    if (text.indexOf('data:') !== 0) return false
    if (this.#name === null || readEvents.test(this.#name)) this.#event(parsedObject(text.toString('utf8', 'data:'.length)))
    return true
  }

  protected override eventEnds(): void {
    this.#name = null
  }

  #event(event: JsonObject | null): void {
    const type = textOf(event?.['type']) || (this.#name ?? '')
    if (event === null) return
    if (type.endsWith('.delta')) {
      this.outputChars += textOf(event['delta']).length
      return
    }
    switch (type) {
      case 'response.completed':
      case 'response.incomplete':
        this.#end(event['response'])
        return
      case 'response.failed':
        this.failed = true
        this.#end(event['response'])
        return
      case 'error':
        this.failed = true
        return
      default:
        return
    }
  }

  #end(response: unknown): void {
    this.isLast = true
    if (isObject(response)) this.usage = usageOfResponse(response['usage']) ?? this.usage
  }
}
