/** Translates the conversation of a messages request to messages of the hub format. */
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { ToolNames } from '../tool-names.ts'
import { noteBlockFields, noteMessageFields } from './block-fields.ts'
import { withoutReferences } from './deferred-tools.ts'
import { contentParts, type Part, partsOf } from './hub-parts.ts'

export type HubMessage = Record<string, unknown>

/** The state that all parts of one translation share. */
export interface HubContext {
  readonly names: ToolNames
  /** Notes a field that the hub format cannot carry. */
  drop(name: string): void
}

/** One turn: adjacent messages of the same role together, each block with its place in the request. */
interface Turn {
  readonly role: 'user' | 'assistant' | 'system'
  /** The index of its first message. */
  readonly index: number
  readonly blocks: { readonly block: unknown; readonly at: string }[]
}

/** Returns the system prompt and all turns, in their order. Throws `bad_request` that names the place. */
export function hubMessages(body: Readonly<Record<string, unknown>>, context: HubContext): readonly HubMessage[] {
  const system = systemMessage(contentParts(body['system'], 'system', context.drop))
  const turns = turnsOf(body['messages'], context)
  const messages: HubMessage[] = system === null ? [] : [system]
  let open: readonly string[] = []
  for (const turn of turns) {
    // A system turn may come between a call and its result, so it is not checked for results.
    if (turn.role !== 'system') checkResults(turn, open)
    if (turn.role === 'system') {
      const said = systemMessage(turn.blocks.flatMap(({ block, at }) => partsOf(block, at, context.drop)))
      if (said !== null) messages.push(said)
    } else if (turn.role === 'user') {
      addUser(messages, userMessages(turn, context))
      open = []
    } else {
      messages.push(...assistantMessages(turn, context))
      open = turn.blocks.flatMap(({ block }) => (isToolUse(block) ? [block.id] : []))
    }
  }
  const last = turns.at(-1)
  if (open.length > 0 && last !== undefined) throw bad(`"messages[${last.index}]" calls the tool use "${open[0]}" and no "tool_result" follows it.`)
  return messages
}

function turnsOf(messages: unknown, { drop }: HubContext): readonly Turn[] {
  const turns: Turn[] = []
  for (const [index, message] of (Array.isArray(messages) ? messages : []).entries()) {
    const at = `messages[${index}]`
    if (!isObject(message)) throw bad(`"${at}" must be an object.`)
    noteMessageFields(message, drop)
    const { role, content } = message
    if (role !== 'user' && role !== 'assistant' && role !== 'system') throw bad(`"${at}.role" must be "user" or "assistant".`)
    if (typeof content !== 'string' && !Array.isArray(content)) throw bad(`"${at}.content" must be a string or an array of blocks.`)
    const blocks =
      typeof content === 'string'
        ? [{ block: { type: 'text', text: content }, at: `${at}.content` }]
        : content.map((block: unknown, part) => ({ block, at: `${at}.content[${part}]` }))
    // An assistant turn without content is left out, so the turns before and after it become one turn.
    if (role === 'assistant' && blocks.every(({ block }) => isObject(block) && block['type'] === 'text' && block['text'] === '')) continue
    const last = turns.at(-1)
    if (last?.role === role) last.blocks.push(...blocks)
    else turns.push({ role, index, blocks: [...blocks] })
  }
  return turns
}

function systemMessage(parts: readonly Part[]): HubMessage | null {
  return parts.length === 0 ? null : { role: 'system', content: joined(parts) }
}

/** Returns one string if there is only text without cache marks, else the parts. */
function joined(parts: readonly Part[]): string | readonly Part[] {
  const isPlain = parts.every(part => part['type'] === 'text' && part['cache_control'] === undefined)
  return isPlain ? parts.map(part => part['text']).join('\n\n') : parts
}

/** Adds a user turn. It is joined to the previous user message if only an empty assistant turn was between them, because empty turns are left out. */
function addUser(messages: HubMessage[], said: readonly HubMessage[]): void {
  const last = messages.at(-1)
  const [first, ...others] = said
  if (last?.['role'] !== 'user' || first?.['role'] !== 'user') {
    for (const message of said) messages.push(message)
    return
  }
  // The list of parts can be extended in place, because this code made it. A copy for each turn would take quadratic time.
  const parts = partsIn(last['content'])
  for (const part of partsIn(first['content'])) parts.push(part)
  messages[messages.length - 1] = { role: 'user', content: parts }
  for (const message of others) messages.push(message)
}

const partsIn = (content: unknown): unknown[] => (Array.isArray(content) ? content : [{ type: 'text', text: content }])

/**
 * Returns the messages of a user turn. Results come first, because the hub format requires them directly after their calls. The hub format allows no images
 * in results, so images of results come later, with the rest.
 */
function userMessages({ blocks, index }: Turn, context: HubContext): readonly HubMessage[] {
  const results: HubMessage[] = []
  const parts: Part[] = []
  for (const { block, at } of blocks) {
    if (!isObject(block) || block['type'] !== 'tool_result') {
      parts.push(...partsOf(block, at, context.drop))
      continue
    }
    noteBlockFields(block, context.drop)
    const { message, media } = resultOf(block, at, context)
    results.push(message)
    parts.push(...media)
  }
  if (parts.length === 0 && results.length === 0) throw bad(`"messages[${index}].content" must not be empty.`)
  if (parts.length === 0) return results
  const [only] = parts
  const content = parts.length === 1 && only !== undefined && only['type'] === 'text' && only['cache_control'] === undefined ? only['text'] : parts
  return [...results, { role: 'user', content }]
}

function resultOf(block: Readonly<Record<string, unknown>>, at: string, { names, drop }: HubContext): { message: HubMessage; media: readonly Part[] } {
  const id = String(block['tool_use_id'])
  const parts = contentParts(withoutReferences(block['content'], names), `${at}.content`, drop)
  const isText = (part: Part): boolean => part['type'] === 'text'
  const text = parts
    .filter(isText)
    .map(part => part['text'])
    .join('\n')
  const media = parts.filter(part => !isText(part))
  const content = [block['is_error'] === true ? 'Error:' : '', text, media.length > 0 && text === '' ? '(see the attachment below)' : '']
    .filter(piece => piece !== '')
    .join(' ')
  const cache = block['cache_control']
  return {
    message: { role: 'tool', tool_call_id: id, content, ...(isObject(cache) ? { cache_control: cache } : {}) },
    media: media.length === 0 ? [] : [{ type: 'text', text: `Attachment of the tool result ${id}:` }, ...media],
  }
}

/** Checks that this turn answers every call of the previous turn and nothing else. */
function checkResults({ role, index, blocks }: Turn, open: readonly string[]): void {
  const owed = new Set(open)
  for (const { block, at } of blocks) {
    if (!isObject(block) || block['type'] !== 'tool_result') continue
    if (role !== 'user') throw bad(`"${at}": a "tool_result" belongs into a user message.`)
    if (typeof block['tool_use_id'] !== 'string' || !owed.delete(block['tool_use_id']))
      throw bad(`"${at}": this "tool_result" answers no "tool_use" of the assistant message before it.`)
  }
  const [missing] = owed
  if (missing !== undefined) throw bad(`"messages[${index}]" must answer the tool use "${missing}" with a "tool_result".`)
}

interface ToolUse extends Record<string, unknown> {
  readonly id: string
  readonly name: string
}

const isToolUse = (block: unknown): block is ToolUse =>
  isObject(block) && block['type'] === 'tool_use' && typeof block['id'] === 'string' && typeof block['name'] === 'string'

/** Returns the message of an assistant turn. A turn without text and calls gives no message. */
function assistantMessages({ blocks }: Turn, context: HubContext): readonly HubMessage[] {
  const texts: Part[] = []
  const calls: Record<string, unknown>[] = []
  const thoughts: Record<string, unknown>[] = []
  for (const { block, at } of blocks) readAssistantBlock(block, at, { texts, calls, thoughts }, context)
  if (texts.length === 0 && calls.length === 0) {
    if (thoughts.length > 0) context.drop('messages.thinking')
    return []
  }
  const reasoning = thoughts.flatMap(({ thinking }) => (typeof thinking === 'string' && thinking !== '' ? [thinking] : [])).join('\n\n')
  return [
    {
      role: 'assistant',
      content: texts.length === 0 ? null : joined(texts),
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(thoughts.length === 0 ? {} : { thinking_blocks: thoughts }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ]
}

interface Said {
  readonly texts: Part[]
  readonly calls: Record<string, unknown>[]
  readonly thoughts: Record<string, unknown>[]
}

function readAssistantBlock(block: unknown, at: string, { texts, calls, thoughts }: Said, { names, drop }: HubContext): void {
  const type = isObject(block) ? block['type'] : undefined
  if (!isObject(block) || typeof type !== 'string') throw bad(`"${at}" must be an object with a "type".`)
  switch (type) {
    case 'text':
      texts.push(...partsOf(block, at, drop))
      return
    case 'thinking':
      thoughts.push({ type, thinking: block['thinking'] ?? '', signature: block['signature'] ?? '' })
      return
    case 'redacted_thinking':
      thoughts.push({ type, data: block['data'] ?? '' })
      return
    case 'tool_use':
      if (!isToolUse(block)) throw bad(`"${at}" must have an "id" and a "name".`)
      noteBlockFields(block, drop)
      calls.push(callOf(block, names))
      return
    default:
      // The block records what server tools of the original provider did in an earlier turn. No other provider can use it.
      drop(`messages.${type}`)
  }
}

function callOf(block: ToolUse, names: ToolNames): Record<string, unknown> {
  const call = { id: block.id, type: 'function', function: { name: names.toUpstream(block.name), arguments: JSON.stringify(block['input'] ?? {}) } }
  return isObject(block['cache_control']) ? { ...call, cache_control: block['cache_control'] } : call
}

function bad(message: string): GatewayError {
  return fail('bad_request', { message })
}
