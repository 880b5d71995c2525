/** The messages format as its own clients speak it: what goes on nearly as it came, and what is learned from a stream on its way back. */
import { isObject } from '../../../platform/json.ts'
import { editMembers, mayRepeat } from '../../wire/json-members.ts'
import { mergeMessagesUsage, tellsOutput } from '../../wire/messages/usage.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { NativeRequest, Target, UpstreamRequest } from '../dialect.ts'
import { userAgent } from '../user-agent.ts'
import { EventTap } from './event-tap.ts'

/** Sent where the caller names no version. */
export const anthropicVersion = '2023-06-01'

/**
 * The request for a provider that speaks the messages format: the body byte for byte, but for the model where the provider knows it by
 * another id; the query and the format's own headers as they came.
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

/** What decides over price, hold and ceiling. Of two equal names we read the last one, and a provider may read the first. */
const meteredNames = ['model', 'max_tokens', 'stream', 'messages', 'system', 'tools', 'mcp_servers', 'speed', 'inference_geo', 'service_tier'] as const

function bodyOf({ body, bytes }: NativeRequest, { upstreamModel }: Target): Buffer | string {
  const isNamedAsIs = body['model'] === upstreamModel
  if (bytes === null) return JSON.stringify(isNamedAsIs ? body : { ...body, model: upstreamModel })
  if (isNamedAsIs && !mayRepeat(bytes, meteredNames, body)) return bytes
  return editMembers(bytes, isNamedAsIs ? noEdits : new Map([['model', JSON.stringify(upstreamModel)]]))
}

const noEdits: ReadonlyMap<string, string> = new Map()

/**
 * Reads a stream of the messages format while its bytes go by. Any chunking of the same bytes gives the same result. `usage` stands when
 * the provider has told the final one; what it says of the prompt at the beginning is `partial`.
 */
export class AnthropicStreamTap extends EventTap {
  partial: TokenUsage | null = null

  protected field(bytes: Uint8Array, start: number, end: number): boolean {
    if (!isData(bytes, start, end)) return false
    this.#data(parsed(Buffer.from(bytes.buffer, bytes.byteOffset + start + dataName.length, end - start - dataName.length)))
    return true
  }

  #data(event: Record<string, unknown> | null): void {
    switch (event?.['type']) {
      case 'message_start': {
        const { message } = event
        if (isObject(message)) this.partial = mergeMessagesUsage(this.partial, message['usage'])
        return
      }
      case 'content_block_delta':
        this.outputChars += charsOf(event['delta'])
        return
      case 'message_delta': {
        const usage = mergeMessagesUsage(this.usage ?? this.partial, event['usage'])
        if (tellsOutput(event['usage'])) this.usage = usage
        return
      }
      case 'message_stop':
        this.isLast = true
        return
      case 'error':
        this.failed = true
        return
      default:
        return
    }
  }
}

const outputNames = ['text', 'thinking', 'partial_json'] as const

function charsOf(delta: unknown): number {
  if (!isObject(delta)) return 0
  for (const name of outputNames) {
    const text = delta[name]
    if (typeof text === 'string') return text.length
  }
  return 0
}

const dataName = Buffer.from('data:')

function isData(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start <= dataName.length) return false
  for (let index = 0; index < dataName.length; index++) if (bytes[start + index] !== dataName[index]) return false
  return true
}

function parsed(json: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json.toString('utf8'))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
