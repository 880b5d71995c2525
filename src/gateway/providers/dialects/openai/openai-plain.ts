/** Converts a translated request to the form that OpenAI-compatible servers accept. It removes what only the hub format has. */

import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { HubRequest, Target } from '../../dialect.ts'
import { noteThoughts } from '../hub-messages.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Removes what servers refuse or do not know: cache marks, thinking of earlier turns with its signatures, `top_k`, and an effort for a model that
 * does not think. A field stays when the provider is known to accept it. `dropped` names the removed fields that change the answer or the bill.
 * Throws `bad_request` for a document that is only a URL.
 */
export function plainRequest(
  { body }: HubRequest,
  { provider, traits }: Target,
): { readonly body: Record<string, unknown>; readonly dropped: readonly string[] } {
  const dropped = new Set<string>()
  const keepsMarks = provider.quirks.includes('cache-control')
  const keepsThoughts = provider.quirks.includes('echo-reasoning')
  const { messages, tools, top_k: topK, reasoning_effort: effort, ...rest } = body
  const unmarked = (holder: Fields): Record<string, unknown> => {
    const { cache_control: mark, ...others } = holder
    if (mark === undefined || keepsMarks) return { ...holder }
    dropped.add('cache_control')
    return others
  }
  const plain: Record<string, unknown> = { ...rest }
  if (Array.isArray(messages))
    plain['messages'] = messages.map((message: unknown) => (isObject(message) ? plainMessage(message, { unmarked, keepsThoughts, dropped }) : message))
  if (Array.isArray(tools)) plain['tools'] = tools.map((tool: unknown) => (isObject(tool) ? unmarked(tool) : tool))
  const known = traits.supportedParameters
  if (topK !== undefined) {
    if (known.length === 0 || known.includes('top_k')) plain['top_k'] = topK
    else dropped.add('top_k')
  }
  if (effort !== undefined) {
    if (traits.reasoning || known.includes('reasoning_effort')) plain['reasoning_effort'] = effort
    else if (effort !== 'none') dropped.add('reasoning_effort')
  }
  return { body: plain, dropped: [...dropped] }
}

interface Plainly {
  unmarked(holder: Fields): Record<string, unknown>
  readonly keepsThoughts: boolean
  readonly dropped: Set<string>
}

function plainMessage(message: Fields, { unmarked, keepsThoughts, dropped }: Plainly): Record<string, unknown> {
  const { thinking_blocks: _blocks, reasoning_content: thought, tool_calls: calls, ...others } = unmarked(message)
  const givesThought = keepsThoughts && typeof thought === 'string' && others['role'] === 'assistant'
  if (!givesThought) noteThoughts(message, 0, dropped)
  const content = Array.isArray(others['content']) ? plainContent(others['content'], others['role'], unmarked) : others['content']
  return {
    ...others,
    ...('content' in others ? { content } : {}),
    ...(givesThought ? { reasoning_content: thought } : {}),
    ...(Array.isArray(calls) ? { tool_calls: calls.map((call: unknown) => (isObject(call) ? unmarked(call) : call)) } : {}),
  }
}

/** Joins text parts to one string for every role except the user. For the other roles, many servers accept only a string. */
function plainContent(parts: readonly unknown[], role: unknown, unmarked: (holder: Fields) => Record<string, unknown>): unknown {
  const plain = parts.map(part => (isObject(part) ? unmarked(part) : part))
  plain.forEach(checkFile)
  const texts = plain.flatMap(part =>
    isObject(part) && part['type'] === 'text' && part['cache_control'] === undefined && typeof part['text'] === 'string' ? [part['text']] : [],
  )
  if (texts.length !== plain.length) return plain
  return role === 'user' && texts.length > 1 ? plain : texts.join('\n\n')
}

function checkFile(part: unknown): void {
  if (!isObject(part) || part['type'] !== 'file' || !isObject(part['file']) || part['file']['file_url'] === undefined) return
  throw fail('bad_request', { message: 'This model takes a document as bytes (base64) only, not by its URL.' })
}
