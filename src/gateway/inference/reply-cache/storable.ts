/** Decides whether a reply may be kept, by the bytes that the client got. Pure. */
import { isUtf8 } from 'node:buffer'
import { isObject } from '../../../platform/values/json.ts'
import type { UsageKind } from '../../usage/events/record.ts'

/** What a caller lets in beside plain answers. */
export interface Lets {
  readonly tools: boolean
}

type Json = Readonly<Record<string, unknown>>

/** The kinds of calls whose replies may be kept. Pictures and sound are too large, and a repeated picture is not what its caller wants. */
export const cachedKinds: ReadonlySet<UsageKind> = new Set(['chat', 'messages', 'responses', 'embeddings', 'rerank', 'moderation'])

/**
 * Returns true for a complete answer: it ended by itself, not at a limit, a filter or a cut, and calls no tools unless the caller lets them in. A
 * reply that cannot be read is not kept.
 */
export function isStorable(kind: UsageKind, bytes: Buffer, isStream: boolean, lets: Lets): boolean {
  if (!isUtf8(bytes)) return false
  if (kind !== 'chat' && kind !== 'messages' && kind !== 'responses') return !isStream
  try {
    const text = bytes.toString('utf8')
    return isStream ? streams[kind](eventsOf(text), text, lets) : isWhole(kind, JSON.parse(text), lets)
  } catch {
    return false
  }
}

/** The bill of a call in the body of its reply. A member of JSON has no backslash before its quote, and text inside a string does. */
const bill = /(?<!\\)("x_br":\{"cost_inr":)[\d.e+-]+(,"value_inr":)[\d.e+-]+/g

/** Returns the reply as a later caller gets it: its bill says 0. */
export const withoutBill = (text: string): string => text.replace(bill, '$10$20')

/** The reasons for which an answer ends by itself. */
const chatEnds: ReadonlySet<unknown> = new Set(['stop'])
const messagesEnds: ReadonlySet<unknown> = new Set(['end_turn', 'stop_sequence'])
/** What an answer of the responses API consists of, without tools. */
const plainItems: ReadonlySet<unknown> = new Set(['message', 'reasoning'])

function isWhole(kind: 'chat' | 'messages' | 'responses', reply: unknown, lets: Lets): boolean {
  if (!isObject(reply) || isGiven(reply['error'])) return false
  switch (kind) {
    case 'chat': {
      const choices = listOf(reply['choices'])
      const [choice] = choices
      return choices.length === 1 && isChatEnd(choice?.['finish_reason'], lets) && (lets.tools || !hasCalls(choice?.['message']))
    }
    case 'messages':
      return isMessagesEnd(reply['stop_reason'], lets) && (lets.tools || !listOf(reply['content']).some(isToolBlock))
    case 'responses':
      return reply['status'] === 'completed' && (lets.tools || listOf(reply['output']).every(item => plainItems.has(item['type'])))
  }
}

const isChatEnd = (reason: unknown, { tools }: Lets): boolean => chatEnds.has(reason) || (tools && reason === 'tool_calls')
const isMessagesEnd = (reason: unknown, { tools }: Lets): boolean => messagesEnds.has(reason) || (tools && reason === 'tool_use')
const isToolBlock = ({ type }: Json): boolean => typeof type === 'string' && type.includes('tool')

function hasCalls(message: unknown): boolean {
  if (!isObject(message)) return false
  return listOf(message['tool_calls']).length > 0 || isGiven(message['function_call'])
}

const streams: Readonly<Record<'chat' | 'messages' | 'responses', (events: readonly Json[], text: string, lets: Lets) => boolean>> = {
  chat(events, text, lets) {
    const choices = events.flatMap(event => listOf(event['choices']))
    const ends = choices.map(choice => choice['finish_reason']).filter(isGiven)
    const isDone = /(?:^|\n)data: ?\[DONE\]/.test(text)
    if (!isDone || events.some(event => isGiven(event['error'])) || ends.length !== 1) return false
    return isChatEnd(ends[0], lets) && (lets.tools || !choices.some(choice => hasCalls(choice['delta'])))
  },
  messages(events, _text, lets) {
    const types = events.map(event => event['type'])
    const ends = events.flatMap(({ type, delta }) => (type === 'message_delta' && isObject(delta) ? [delta['stop_reason']] : [])).filter(isGiven)
    if (types.includes('error') || types.at(-1) !== 'message_stop' || ends.length !== 1) return false
    return isMessagesEnd(ends[0], lets) && (lets.tools || !events.some(({ content_block: block }) => isObject(block) && isToolBlock(block)))
  },
  responses(events, _text, lets) {
    const last = events.at(-1)
    return last?.['type'] === 'response.completed' && isWhole('responses', last['response'], lets)
  },
}

/** Returns the JSON objects of the `data` lines. Throws SyntaxError for a line that is neither JSON nor the end mark. */
function eventsOf(text: string): readonly Json[] {
  return text
    .split('\n')
    .filter(line => line.startsWith('data:') && !/^data: ?\[DONE\]/.test(line))
    .map(line => JSON.parse(line.slice('data:'.length)) as unknown)
    .filter(isObject)
}

const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as readonly unknown[]).filter(isObject) : [])
const isGiven = (value: unknown): boolean => value !== undefined && value !== null
