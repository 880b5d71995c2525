import type { CacheRequest } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'

/** The request header that lets a client repeat a call with a charge, so that the call is performed only once. */
export const idempotencyHeader = 'idempotency-key'

const idempotencyKeyShape = /^[\x21-\x7e]{1,255}$/

/** Returns the checked idempotency key, or undefined when the header is absent or empty. Throws `bad_request`. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header.join(',') : header
  if (text === undefined || text === '') return undefined
  if (!idempotencyKeyShape.test(text)) throw fail('bad_request', { message: 'Idempotency-Key must be 1 to 255 printable ASCII characters without spaces.' })
  return text
}

/** The request headers in which clients name a conversation: the first one that is there counts. The last four are those of Codex, Claude Code and opencode. */
const conversationHeaders = ['x-session-affinity', 'thread-id', 'x-claude-code-session-id', 'session-id', 'session_id', 'x-session-id'] as const
/** A sub-agent of Claude Code has the session of its parent and another prompt. */
const subAgentHeader = 'x-claude-code-agent-id'

const conversationShape = /^[\x21-\x7e]{1,256}$/

/** Returns the id of the conversation to which a request belongs. Undefined when no header names one, or when its text is no id: it is a hint only. */
export function conversationOf(headers: Readonly<Record<string, string | string[] | undefined>>): string | undefined {
  for (const name of conversationHeaders) {
    const id = headers[name]
    if (id === undefined) continue
    if (typeof id !== 'string' || !conversationShape.test(id)) return undefined
    const subAgent = headers[subAgentHeader]
    return typeof subAgent === 'string' && conversationShape.test(subAgent) ? `${id} ${subAgent}` : id
  }
  return undefined
}

/** The request header that asks for the reply cache. */
export const cacheHeader = 'x-br-cache'
const cacheTtlHeader = 'x-br-cache-ttl'
const cacheIncludeHeader = 'x-br-cache-include'

/** How long a reply is kept when the request does not say. */
const cacheTtlDefaultSeconds = 300
const cacheTtlMaxSeconds = 86_400
const cacheIncludes = ['tools', 'sampled'] as const

/** Returns what a request asks of the reply cache. Undefined without the header, which is nearly every request, and for `off`. Throws `bad_request`. */
export function cacheOf(headers: Readonly<Record<string, string | string[] | undefined>>): CacheRequest | undefined {
  const mode = headers[cacheHeader]
  if (mode === undefined || mode === '' || mode === 'off') return undefined
  if (mode !== 'use' && mode !== 'refresh') throw fail('bad_request', { message: 'x-br-cache must be use, refresh or off.' })
  const ttl = headers[cacheTtlHeader]
  const ttlSeconds = ttl === undefined ? cacheTtlDefaultSeconds : typeof ttl === 'string' && /^\d{1,5}$/.test(ttl) ? Number(ttl) : 0
  if (ttlSeconds < 1 || ttlSeconds > cacheTtlMaxSeconds)
    throw fail('bad_request', { message: `x-br-cache-ttl must be a whole number of seconds from 1 to ${cacheTtlMaxSeconds}.` })
  const include = String(headers[cacheIncludeHeader] ?? '')
  const names = include
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
  if (!names.every(name => cacheIncludes.some(known => known === name)))
    throw fail('bad_request', { message: `x-br-cache-include takes ${cacheIncludes.join(' and ')}, separated by a comma.` })
  return { mode, ttlSeconds, lets: { tools: names.includes('tools'), sampled: names.includes('sampled') } }
}

/** The request header that names an agent. */
export const agentIdHeader = 'x-br-agent-id'

/** The allowed form of `x-br-agent-id`, a label for reports and memory. It is printable, short, and safe in headers, CSV and object metadata. */
const agentLabelShape = /^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,99}$/

/** Returns the checked label, or null when the header is absent or empty. Throws `bad_request`. */
export function agentLabelOf(header: string | string[] | undefined): string | null {
  if (header === undefined) return null
  const text = (Array.isArray(header) ? (header[0] ?? '') : header).trim()
  if (text === '') return null
  if (!agentLabelShape.test(text)) throw fail('bad_request', { message: 'x-br-agent-id must be 1 to 100 characters: letters, digits, space and . _ : @ / -' })
  return text
}
