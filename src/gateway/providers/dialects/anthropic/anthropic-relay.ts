/** The messages format as its own clients speak it: what goes on nearly as it came, and what is learned from a stream on its way back. */
import { isObject, parsedObject } from '../../../../platform/values/json.ts'
import { isBoundedJson } from '../../../wire/json/json-bounds.ts'
import { hasDoubles } from '../../../wire/json/json-doubles.ts'
import { editMembers } from '../../../wire/json/json-members.ts'
import { mergeMessagesUsage, tellsOutput } from '../../../wire/messages/reply/usage.ts'
import type { TokenUsage } from '../../../wire/usage.ts'
import type { NativeRequest, Target, UpstreamRequest } from '../../dialect.ts'
import { userAgent } from '../../user-agent.ts'
import { blockChars, deltaChars } from '../anthropic-output.ts'
import { EventTap, modelNamed } from '../event-tap.ts'

/** Sent where the caller names no version. */
export const anthropicVersion = '2023-06-01'

/**
 * The request for a provider that speaks the messages format: the body byte for byte, except for the model when the provider knows it by another id,
 * with the query and the format's own headers unchanged.
 */
export function anthropicRelay(request: NativeRequest, target: Target): UpstreamRequest {
  return relayTo('messages', request, target)
}

/** The same for the count of a prompt's tokens. */
export function anthropicCountRelay(request: NativeRequest, target: Target): UpstreamRequest {
  return relayTo('messages/count_tokens', request, target)
}

function relayTo(path: string, request: NativeRequest, target: Target): UpstreamRequest {
  return {
    method: 'POST',
    url: `${target.provider.baseUrl}/${path}${request.query === '' ? '' : `?${request.query}`}`,
    headers: { ...anthropicHeaders(target, request.stream), ...request.headers },
    body: bodyOf(request, target),
    dropped: none,
  }
}

const none: readonly string[] = Object.freeze([])

/**
 * Headers of a request to a provider that speaks the messages format, `anthropic-version` among them. A forwarded credential goes in the
 * headers in which it came, and then none of ours goes with it.
 */
export function anthropicHeaders({ provider, credential, forwarded }: Target, stream: boolean): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    'user-agent': userAgent,
    'anthropic-version': anthropicVersion,
  }
  if (forwarded !== null) {
    if (forwarded.authorization !== null) headers['authorization'] = forwarded.authorization.reveal()
    if (forwarded.xApiKey !== null) headers['x-api-key'] = forwarded.xApiKey.reveal()
  } else if (credential !== null && provider.auth !== 'none') {
    if (provider.auth === 'bearer') headers['authorization'] = `Bearer ${credential.reveal()}`
    else headers[provider.auth] = credential.reveal()
  }
  return headers
}

/** A body with a repeated name is written again: we read the last occurrence, and a provider may read the first. */
function bodyOf({ body, bytes }: NativeRequest, { upstreamModel }: Target): Buffer | string {
  const isNamedAsIs = body['model'] === upstreamModel
  if (bytes === null || hasDoubles(bytes, body)) return JSON.stringify(isNamedAsIs ? body : { ...body, model: upstreamModel })
  return isNamedAsIs ? bytes : editMembers(bytes, new Map([['model', JSON.stringify(upstreamModel)]]))
}

/**
 * Reads a stream of the messages format while its bytes pass. Any chunking of the same bytes gives the same result. `usage` is set when the provider has
 * sent the final usage; its report about the prompt at the beginning is `partial`.
 */
export class AnthropicStreamTap extends EventTap {
  partial: TokenUsage | null = null
  /** `partial` tells of the output as well. */
  #hasToldOutput = false

  protected field(bytes: Uint8Array, start: number, end: number): boolean {
    if (!isData(bytes, start, end)) return false
    this.#data(parsed(Buffer.from(bytes.buffer, bytes.byteOffset + start + dataName.length, end - start - dataName.length)))
    return true
  }

  #data(event: Record<string, unknown> | null): void {
    if (event === null) return
    const { type } = event
    if (type !== 'ping' && type !== 'error') this.says = true
    switch (type) {
      case 'message_start': {
        const { message } = event
        if (!isObject(message)) return
        this.model = modelNamed(message) ?? this.model
        this.partial = mergeMessagesUsage(this.partial, message['usage'])
        this.usageChars = this.outputChars
        return
      }
      case 'content_block_start':
        this.outputChars += blockChars(event['content_block'])
        return
      case 'content_block_delta':
        this.outputChars += deltaChars(event['delta'])
        return
      case 'message_delta': {
        const usage = mergeMessagesUsage(this.usage ?? this.partial, event['usage'])
        if (!tellsOutput(event['usage'])) return
        this.usageChars = this.outputChars
        // Before the reason of the end it is a running figure.
        if (isObject(event['delta']) && typeof event['delta']['stop_reason'] === 'string') this.usage = usage
        else {
          this.partial = usage
          this.#hasToldOutput = true
        }
        return
      }
      case 'message_stop':
        this.isLast = true
        if (this.#hasToldOutput) this.usage ??= this.partial
        return
      case 'error':
        this.failed = true
        this.fault = JSON.stringify(event).slice(0, faultMaxChars)
        return
      default:
        return
    }
  }
}

/** Only the beginning of a longer error is passed on. */
const faultMaxChars = 4096

const dataName = Buffer.from('data:')

function isData(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start <= dataName.length) return false
  for (let index = 0; index < dataName.length; index++) if (bytes[start + index] !== dataName[index]) return false
  return true
}

const parsed = (json: Buffer): Record<string, unknown> | null => (isBoundedJson(json, 0, json.length) ? parsedObject(json.toString('utf8')) : null)
