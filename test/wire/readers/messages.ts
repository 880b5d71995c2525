import type { TurnUsage } from '../turns/turn.ts'
import { countOf, eventsOf, type Heard, type Hearing, listOf, must, nothingHeard, objectOf, textOf } from './heard.ts'

const finishes: Readonly<Record<string, Heard['finish']>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}

function finishOf(value: unknown): Heard['finish'] {
  const found = finishes[textOf(value, 'stop_reason')]
  must(found !== undefined, 'a stop_reason of the format', value)
  return found
}

function messagesUsage(value: unknown): TurnUsage {
  const usage = objectOf(value, 'usage')
  const cached = countOf(usage['cache_read_input_tokens'] ?? 0, 'cache_read_input_tokens')
  const cacheWrite = countOf(usage['cache_creation_input_tokens'] ?? 0, 'cache_creation_input_tokens')
  const prompt = countOf(usage['input_tokens'], 'input_tokens') + cached + cacheWrite
  return { prompt, completion: countOf(usage['output_tokens'], 'output_tokens'), cached, cacheWrite, reasoning: 0 }
}

type Event = Readonly<Record<string, unknown>>

/** Reads a stream of the messages format. It checks that message_start comes first and once, that blocks do not overlap, and that there is one end. */
export function readMessagesStream(stream: string): Heard {
  const hearing = nothingHeard()
  const block = { open: null as string | null, index: -1, said: '' }
  let state: 'before' | 'content' | 'stopping' | 'over' = 'before'
  for (const { name, data } of eventsOf(stream)) {
    const event: Event = objectOf(JSON.parse(data), 'an event')
    must(event['type'] === name, 'the event is named twice', data)
    must(state !== 'over', 'nothing behind the end', data)
    switch (name) {
      case 'ping':
        break
      case 'error': {
        const error = objectOf(event['error'], 'error')
        hearing.fault = { type: textOf(error['type'], 'type'), message: textOf(error['message'], 'message') }
        state = 'over'
        break
      }
      case 'message_start': {
        must(state === 'before', 'one message_start, first')
        const message = objectOf(event['message'], 'message')
        must(message['type'] === 'message' && message['role'] === 'assistant' && typeof message['model'] === 'string', 'a message', message)
        must(textOf(message['id'], 'id').startsWith('msg_') && listOf(message['content'], 'content').length === 0, 'a new message', message)
        messagesUsage(message['usage'])
        state = 'content'
        break
      }
      case 'message_delta':
        must(state === 'content' && block.open === null, 'message_delta behind closed blocks', data)
        hearing.finish = finishOf(objectOf(event['delta'], 'delta')['stop_reason'])
        hearing.usage = messagesUsage(event['usage'])
        state = 'stopping'
        break
      case 'message_stop':
        must(state === 'stopping', 'message_stop behind message_delta')
        state = 'over'
        break
      default:
        must(state === 'content', 'content between start and end', data)
        hearBlock(hearing, block, event)
    }
  }
  must(state === 'over', 'the stream has an end')
  return hearing
}

function hearBlock(hearing: Hearing, block: { open: string | null; index: number; said: string }, event: Event): void {
  if (event['type'] === 'content_block_start') {
    must(block.open === null, 'one block at a time', event)
    block.index++
    must(event['index'] === block.index, 'indexes count up', event)
    const begun = objectOf(event['content_block'], 'content_block')
    block.open = textOf(begun['type'], 'type')
    block.said = ''
    if (block.open === 'tool_use') {
      must(JSON.stringify(begun['input']) === '{}' && begun['id'] !== '', 'a tool begins empty', begun)
      hearing.calls.push({ id: textOf(begun['id'], 'id'), name: textOf(begun['name'], 'name'), arguments: '' })
    } else if (block.open === 'redacted_thinking') hearing.redacted.push(textOf(begun['data'], 'data'))
    else must(begun[block.open === 'thinking' ? 'thinking' : 'text'] === '', 'a block begins empty', begun)
    return
  }
  must(event['index'] === block.index && block.open !== null, 'in the open block', event)
  if (event['type'] === 'content_block_stop') {
    must(block.open !== 'text' || block.said !== '', 'no empty text block')
    block.open = null
    return
  }
  must(event['type'] === 'content_block_delta', 'a known event', event)
  const delta = objectOf(event['delta'], 'delta')
  const isOf = (open: string): void => must(block.open === open, `a delta of ${open} in its own block`, [block.open, delta])
  switch (delta['type']) {
    case 'text_delta':
      isOf('text')
      block.said += textOf(delta['text'], 'text')
      hearing.text += textOf(delta['text'], 'text')
      return
    case 'thinking_delta':
      isOf('thinking')
      hearing.reasoning += textOf(delta['thinking'], 'thinking')
      return
    case 'signature_delta':
      isOf('thinking')
      if (delta['signature'] !== '') hearing.signatures.push(textOf(delta['signature'], 'signature'))
      return
    case 'input_json_delta': {
      isOf('tool_use')
      const call = hearing.calls.at(-1)
      if (call) call.arguments += textOf(delta['partial_json'], 'partial_json')
      return
    }
    default:
      must(false, 'a known delta', delta)
  }
}

/** Reads a whole message. */
export function readMessage(reply: Event): Heard {
  const hearing = nothingHeard()
  must(
    reply['type'] === 'message' && reply['role'] === 'assistant' && typeof reply['model'] === 'string' && textOf(reply['id'], 'id').startsWith('msg_'),
    'a message',
    reply,
  )
  let hasOther = false
  for (const block of listOf(reply['content'], 'content')) {
    switch (block['type']) {
      case 'text':
        must(block['text'] !== '', 'no empty text block')
        hearing.text += textOf(block['text'], 'text')
        hasOther = true
        break
      case 'thinking':
        must(!hasOther, 'thinking comes first', reply['content'])
        hearing.reasoning += textOf(block['thinking'], 'thinking')
        if (block['signature'] !== '') hearing.signatures.push(textOf(block['signature'], 'signature'))
        break
      case 'redacted_thinking':
        hearing.redacted.push(textOf(block['data'], 'data'))
        break
      case 'tool_use':
        hasOther = true
        hearing.calls.push({ id: textOf(block['id'], 'id'), name: textOf(block['name'], 'name'), arguments: JSON.stringify(objectOf(block['input'], 'input')) })
        break
      default:
        must(false, 'a known block', block)
    }
  }
  hearing.finish = finishOf(reply['stop_reason'])
  must(reply['stop_sequence'] === null || typeof reply['stop_sequence'] === 'string', 'stop_sequence', reply)
  hearing.usage = messagesUsage(reply['usage'])
  return hearing
}
