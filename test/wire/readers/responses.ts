import { isDeepStrictEqual } from 'node:util'
import type { TurnUsage } from '../turns/turn.ts'
import { countOf, eventsOf, type Heard, type Hearing, listOf, must, nothingHeard, objectOf, textOf } from './heard.ts'

type Event = Readonly<Record<string, unknown>>

function responsesUsage(value: unknown): TurnUsage {
  const usage = objectOf(value, 'usage')
  const prompt = countOf(usage['input_tokens'], 'input_tokens')
  const completion = countOf(usage['output_tokens'], 'output_tokens')
  must(usage['total_tokens'] === prompt + completion, 'total_tokens is the sum', usage)
  const cached = countOf(objectOf(usage['input_tokens_details'], 'input_tokens_details')['cached_tokens'], 'cached_tokens')
  must(cached <= prompt, 'cached tokens are part of the prompt', usage)
  const reasoning = countOf(objectOf(usage['output_tokens_details'], 'output_tokens_details')['reasoning_tokens'], 'reasoning_tokens')
  return { prompt, completion, cached, cacheWrite: 0, reasoning }
}

/** Reads a whole response. */
export function readResponse(reply: Event): Heard {
  const hearing = nothingHeard()
  must(
    reply['object'] === 'response' && typeof reply['id'] === 'string' && typeof reply['created_at'] === 'number' && typeof reply['model'] === 'string',
    'a response',
    reply,
  )
  for (const item of listOf(reply['output'], 'output')) hearItem(hearing, item)
  const status = textOf(reply['status'], 'status')
  must(status === 'completed' || status === 'incomplete', 'an ended response', status)
  if (status === 'completed') hearing.finish = hearing.calls.length > 0 ? 'tool_calls' : 'stop'
  else hearing.finish = objectOf(reply['incomplete_details'], 'incomplete_details')['reason'] === 'content_filter' ? 'content_filter' : 'length'
  hearing.usage = responsesUsage(reply['usage'])
  return hearing
}

function hearItem(hearing: Hearing, item: Event): void {
  textOf(item['id'], 'id')
  switch (item['type']) {
    case 'message':
      must(item['role'] === 'assistant', 'role', item)
      for (const part of listOf(item['content'], 'content')) {
        if (part['type'] === 'refusal') hearing.refusal += textOf(part['refusal'], 'refusal')
        else {
          must(part['type'] === 'output_text' && Array.isArray(part['annotations']), 'a part of output', part)
          hearing.text += textOf(part['text'], 'text')
        }
      }
      return
    case 'reasoning':
      for (const part of listOf(item['summary'], 'summary')) hearing.reasoning += textOf(part['text'], 'text')
      for (const part of listOf(item['content'] ?? [], 'content')) hearing.reasoning += textOf(part['text'], 'text')
      if (typeof item['encrypted_content'] === 'string') hearing.signatures.push(item['encrypted_content'])
      return
    case 'function_call':
      hearing.calls.push({ id: textOf(item['call_id'], 'call_id'), name: textOf(item['name'], 'name'), arguments: textOf(item['arguments'], 'arguments') })
      return
    default:
      must(false, 'a known item', item)
  }
}

const terminals = ['response.completed', 'response.incomplete', 'response.failed']

interface OpenItem {
  readonly item: Event
  said: string
  isDone: boolean
}

/**
 * Reads a stream of the responses format. It checks that events are numbered, that each item is opened and done once, and that one final event repeats the
 * items.
 */
export function readResponsesStream(stream: string): Heard {
  const items: OpenItem[] = []
  const done: Event[] = []
  const events = eventsOf(stream).filter(({ name }) => name !== 'ping' && name !== 'keepalive')
  let end: Event | null = null
  for (const [number, { name, data }] of events.entries()) {
    const event: Event = objectOf(JSON.parse(data), 'an event')
    must(event['type'] === name && name !== null, 'the event is named twice', data)
    must(event['sequence_number'] === number, 'events are numbered', [number, data])
    must(end === null, 'nothing behind the end', data)
    if (number === 0) must(name === 'response.created' || name === 'response.failed', 'response.created is first', name)
    if (terminals.includes(name)) end = event
    else hearEvent(items, done, name, event)
  }
  must(end !== null, 'the stream has an end')
  const response = objectOf(end['response'], 'response')
  if (end['type'] === 'response.failed') {
    const error = objectOf(response['error'], 'error')
    must(response['status'] === 'failed', 'the status of a failure', response['status'])
    const hearing = nothingHeard()
    for (const { item, said } of items) hearPartial(hearing, item, said)
    return { ...hearing, fault: { type: textOf(error['code'], 'code'), message: textOf(error['message'], 'message') } }
  }
  must(
    items.every(({ isDone }) => isDone),
    'every item is done',
  )
  must(isDeepStrictEqual(response['output'], done), 'the end repeats the items', [response['output'], done])
  must(`response.${String(response['status'])}` === end['type'], 'the status of the end', response['status'])
  return readResponse(response)
}

function hearPartial(hearing: Hearing, item: Event, said: string): void {
  if (item['type'] === 'message') hearing.text += said
  else if (item['type'] === 'reasoning') hearing.reasoning += said
  else hearing.calls.push({ id: textOf(item['call_id'], 'call_id'), name: textOf(item['name'], 'name'), arguments: said })
}

function hearEvent(items: OpenItem[], done: Event[], name: string, event: Event): void {
  if (name === 'response.created' || name === 'response.in_progress') return void must(items.length === 0, 'begins empty', name)
  const index = countOf(event['output_index'], 'output_index')
  if (name === 'response.output_item.added') {
    must(index === items.length, 'items count up', event)
    items.push({ item: objectOf(event['item'], 'item'), said: '', isDone: false })
    return
  }
  const open = items[index]
  must(open !== undefined && !open.isDone, 'in an open item', event)
  if (name === 'response.output_item.done') {
    const item = objectOf(event['item'], 'item')
    must(item['id'] === open.item['id'] && item['type'] === open.item['type'], 'the item that was opened', item)
    const hearing = nothingHeard()
    hearItem(hearing, item)
    must(hearing.text + hearing.refusal + hearing.reasoning + (hearing.calls[0]?.arguments ?? '') === open.said, 'what was streamed is what is done', [
      open.said,
      item,
    ])
    open.isDone = true
    done[index] = item
    return
  }
  must(event['item_id'] === open.item['id'], 'the id of the item', event)
  if (name.endsWith('.delta')) {
    const kind = open.item['type'] === 'message' ? /text|refusal/ : open.item['type'] === 'reasoning' ? /reasoning/ : /arguments/
    must(kind.test(name), 'a delta of its item', [name, open.item])
    open.said += textOf(event['delta'], 'delta')
  } else must(name.endsWith('.done') || name.endsWith('.added'), 'a known event', name)
}
