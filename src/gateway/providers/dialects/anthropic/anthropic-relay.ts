/**
 * Passes calls of clients of Anthropic's Messages API on to providers with the same API. It changes little in requests, and reads streams while they
 * pass.
 */
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
import { jsonBody } from '../json-values.ts'

/** The version that is sent when the caller names none. */
export const anthropicVersion = '2023-06-01'

/**
 * Returns the request for a provider that uses the messages format. The body is sent byte for byte, except for the model id when the provider has
 * another id for the model. The query and the format's own headers are unchanged.
 */
export function anthropicRelay(request: NativeRequest, target: Target): UpstreamRequest {
  return relayTo('messages', request, target)
}

/** Returns the request that counts the tokens of a prompt. */
export function anthropicCountRelay(request: NativeRequest, target: Target): UpstreamRequest {
  return relayTo('messages/count_tokens', request, target)
}

function relayTo(path: string, request: NativeRequest, target: Target): UpstreamRequest {
  return {
    method: 'POST',
    url: `${target.provider.baseUrl}/${path}${request.query === '' ? '' : `?${request.query}`}`,
    headers: { ...anthropicHeaders(target, request.stream), ...request.headers },
    ...bodyOf(request, target),
    dropped: none,
  }
}

const none: readonly string[] = Object.freeze([])

/**
 * Returns the headers of a request to a provider that uses the messages format, including `anthropic-version`. A forwarded credential is sent in the
 * same headers in which it arrived. No credential of the gateway is then sent.
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
  } else if (credential !== null && provider.auth !== 'none' && provider.auth !== 'identity') {
    if (provider.auth === 'bearer') headers['authorization'] = `Bearer ${credential.reveal()}`
    else headers[provider.auth] = credential.reveal()
  }
  return headers
}

/** Returns the body. A body with a repeated name is written again. The gateway reads the last occurrence, and a provider may read the first. */
function bodyOf({ body, bytes }: NativeRequest, target: Target): Pick<UpstreamRequest, 'body' | 'unwritten'> {
  const { upstreamModel } = target
  const isNamedAsIs = body['model'] === upstreamModel
  if (bytes === null || hasDoubles(bytes, body)) return jsonBody(isNamedAsIs ? body : { ...body, model: upstreamModel }, target)
  return { body: isNamedAsIs ? bytes : editMembers(bytes, new Map([['model', JSON.stringify(upstreamModel)]])) }
}

/**
 * Reads a stream of the messages format while its bytes pass. The same bytes give the same result, however they are chunked. `usage` is set when the
 * provider has sent the final usage. `partial` is the usage of the prompt that the provider reports at the beginning.
 */
export class AnthropicStreamTap extends EventTap {
  partial: TokenUsage | null = null
  /** True when `partial` also contains output tokens. */
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
        // The number is not final before the stop reason.
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

/** Maximum number of characters of an error that are passed on. */
const faultMaxChars = 4096

const dataName = Buffer.from('data:')

function isData(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start <= dataName.length) return false
  for (let index = 0; index < dataName.length; index++) if (bytes[start + index] !== dataName[index]) return false
  return true
}

const parsed = (json: Buffer): Record<string, unknown> | null => (isBoundedJson(json, 0, json.length) ? parsedObject(json.toString('utf8')) : null)
