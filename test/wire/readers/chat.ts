import type { TurnUsage } from '../turns/turn.ts'
import { countOf, eventsOf, type Heard, type Hearing, listOf, must, nothingHeard, objectOf, textOf } from './heard.ts'

const finishes = ['stop', 'length', 'tool_calls', 'content_filter'] as const

function finishOf(value: unknown): Heard['finish'] {
  const found = finishes.find(one => one === value)
  must(found !== undefined, 'a finish_reason of the format', value)
  return found
}

export function chatUsage(value: unknown): TurnUsage {
  const usage = objectOf(value, 'usage')
  const prompt = countOf(usage['prompt_tokens'], 'prompt_tokens')
  const completion = countOf(usage['completion_tokens'], 'completion_tokens')
  must(usage['total_tokens'] === prompt + completion, 'total_tokens is the sum', usage)
  const inner = objectOf(usage['prompt_tokens_details'] ?? {}, 'prompt_tokens_details')
  const outer = objectOf(usage['completion_tokens_details'] ?? {}, 'completion_tokens_details')
  const cached = countOf(inner['cached_tokens'] ?? 0, 'cached_tokens')
  const cacheWrite = countOf(inner['cache_write_tokens'] ?? 0, 'cache_write_tokens')
  must(cached + cacheWrite <= prompt, 'cached tokens are part of the prompt', usage)
  return { prompt, completion, cached, cacheWrite, reasoning: countOf(outer['reasoning_tokens'] ?? 0, 'reasoning_tokens') }
}

function hearThoughts(hearing: Hearing, blocks: unknown): void {
  for (const block of listOf(blocks ?? [], 'thinking_blocks')) {
    if (block['type'] === 'redacted_thinking') hearing.redacted.push(textOf(block['data'], 'data'))
    else {
      must(block['type'] === 'thinking', 'a thinking block', block)
      textOf(block['thinking'], 'thinking')
      if (block['signature'] !== '') hearing.signatures.push(textOf(block['signature'], 'signature'))
    }
  }
}

/** Reads an OpenAI chat stream as strictly as the format is documented. */
export function readChatStream(stream: string): Heard {
  const hearing = nothingHeard()
  const events = eventsOf(stream)
  must(events.filter(({ data }) => data === '[DONE]').length === 1, 'one end mark')
  must(events.at(-1)?.data === '[DONE]', 'the end mark is last')
  const ids = new Set<unknown>()
  let hasRole = false
  for (const { name, data } of events.slice(0, -1)) {
    must(name === null, 'events have no name', name)
    must(hearing.fault === null && hearing.usage === null, 'nothing behind an error or the usage', data)
    const chunk = objectOf(JSON.parse(data), 'a chunk')
    if (chunk['error'] !== undefined) {
      const error = objectOf(chunk['error'], 'error')
      hearing.fault = { type: error['type'], message: error['message'] }
      must(typeof error['code'] === 'string', 'an error has a code', error)
      continue
    }
    must(chunk['object'] === 'chat.completion.chunk' && typeof chunk['created'] === 'number' && typeof chunk['model'] === 'string', 'a chunk', chunk)
    ids.add(textOf(chunk['id'], 'id'))
    must(ids.size === 1, 'one id on all chunks', [...ids])
    const choices = listOf(chunk['choices'], 'choices')
    if (chunk['usage'] !== undefined && chunk['usage'] !== null) hearing.usage = chatUsage(chunk['usage'])
    else must(choices.length > 0, 'a chunk without usage has choices', chunk)
    for (const choice of choices) {
      must(choice['index'] === 0, 'one choice', choice)
      const delta = objectOf(choice['delta'], 'delta')
      must(hearing.finish === null || Object.keys(delta).length === 0, 'no content behind the finish reason', chunk)
      if (delta['role'] !== undefined) must(delta['role'] === 'assistant', 'role', delta)
      hasRole ||= delta['role'] !== undefined
      must(hasRole || Object.keys(delta).length === 0, 'the first delta has the role', delta)
      hearDelta(hearing, delta)
      if (choice['finish_reason'] !== null && choice['finish_reason'] !== undefined) {
        must(hearing.finish === null, 'one finish_reason')
        hearing.finish = finishOf(choice['finish_reason'])
      }
    }
  }
  must((hearing.finish !== null) !== (hearing.fault !== null) || hearing.fault !== null, 'a stream has a finish reason or an error')
  return hearing
}

function hearDelta(hearing: Hearing, delta: Record<string, unknown>): void {
  hearing.text += textOf(delta['content'] ?? '', 'content')
  hearing.refusal += textOf(delta['refusal'] ?? '', 'refusal')
  hearing.reasoning += textOf(delta['reasoning_content'] ?? '', 'reasoning_content')
  hearThoughts(hearing, delta['thinking_blocks'])
  for (const call of listOf(delta['tool_calls'] ?? [], 'tool_calls')) {
    const index = countOf(call['index'], 'index')
    const made = objectOf(call['function'] ?? {}, 'function')
    const known = hearing.calls[index]
    if (known === undefined) {
      must(index === hearing.calls.length, 'indexes count up', call)
      must(call['type'] === 'function' && call['id'] !== '', 'the first delta of a call names it', call)
      hearing.calls.push({ id: textOf(call['id'], 'id'), name: textOf(made['name'], 'name'), arguments: textOf(made['arguments'] ?? '', 'arguments') })
    } else {
      must(call['id'] === undefined && made['name'] === undefined, 'only the first delta has id and name', call)
      known.arguments += textOf(made['arguments'] ?? '', 'arguments')
    }
  }
}

/** Reads a whole OpenAI chat reply. */
export function readChatReply(reply: Readonly<Record<string, unknown>>): Heard {
  const hearing = nothingHeard()
  must(
    reply['object'] === 'chat.completion' && typeof reply['id'] === 'string' && typeof reply['created'] === 'number' && typeof reply['model'] === 'string',
    'a completion',
    reply,
  )
  const choices = listOf(reply['choices'], 'choices')
  must(choices.length === 1, 'one choice', choices)
  const [choice = {}] = choices
  const message = objectOf(choice['message'], 'message')
  must(choice['index'] === 0 && message['role'] === 'assistant' && 'content' in message, 'a message', choice)
  hearing.refusal = textOf(message['refusal'] ?? '', 'refusal')
  hearing.text = textOf(message['content'] ?? '', 'content')
  must(message['reasoning_content'] === undefined || message['reasoning_content'] !== null, 'reasoning_content is absent, not null', message)
  hearing.reasoning = textOf(message['reasoning_content'] ?? '', 'reasoning_content')
  hearThoughts(hearing, message['thinking_blocks'])
  must(message['tool_calls'] === undefined || listOf(message['tool_calls'], 'tool_calls').length > 0, 'no empty tool_calls', message)
  for (const call of listOf(message['tool_calls'] ?? [], 'tool_calls')) {
    const made = objectOf(call['function'], 'function')
    must(call['type'] === 'function', 'a function call', call)
    hearing.calls.push({ id: textOf(call['id'], 'id'), name: textOf(made['name'], 'name'), arguments: textOf(made['arguments'], 'arguments') })
  }
  hearing.finish = finishOf(choice['finish_reason'])
  hearing.usage = chatUsage(reply['usage'])
  return hearing
}
