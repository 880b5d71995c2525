import fc from 'fast-check'
import { argumentsOf, type Frame, type Said, type ToolCall, type Turn } from './turn.ts'
import type { Upstream } from './upstreams.ts'

interface Style {
  /** Whether reasoning is sent as a summary or as its full text. */
  readonly reasoning: 'summary' | 'text'
  /** False for a server that leaves out the events that repeat the content. */
  readonly withDone: boolean
}

/** Writes turns as a server with the OpenAI responses API does. */
export const responsesUpstream: Upstream<Style> = {
  carries: {
    signatures: false,
    callIds: true,
    usage: usage => ({ ...usage, cacheWrite: 0 }),
    arguments: argumentsOf,
    hasEndMark: false,
  },
  styles: fc.record({ reasoning: fc.constantFrom('summary' as const, 'text' as const), withDone: fc.boolean() }),

  stream(turn, style) {
    const items = turn.said.flatMap(itemsOf)
    const opening = [
      event('response.created', { response: responseOf(turn, [], 'in_progress') }),
      event('response.in_progress', { response: responseOf(turn, [], 'in_progress') }),
    ]
    const body = groupsOf(turn, items, style)
    const numbered = (frames: readonly Frame[]): readonly Frame[] =>
      frames.map((frame, sequence_number) => (typeof frame.data === 'object' ? { ...frame, data: { ...frame.data, sequence_number } } : frame))
    if (turn.ending === 'error') {
      const failed = { ...responseOf(turn, [], 'failed'), error: { code: 'server_error', message: 'The server had an error.' } }
      return { frames: numbered([...opening, ...body, event('response.failed', { response: failed })]), tail: 0 }
    }
    const name = turn.finish === 'stop' ? 'response.completed' : 'response.incomplete'
    return { frames: numbered([...opening, ...body, event(name, { response: this.whole(turn, style) })]), tail: 1 }
  },

  whole(turn, style) {
    return responseOf(
      turn,
      turn.said.flatMap(itemsOf).map((item, index) => doneItem(item, index, style)),
      turn.finish === 'stop' ? 'completed' : 'incomplete',
    )
  },
}

type Item =
  | { readonly kind: 'text' | 'reasoning'; readonly parts: readonly string[]; readonly signature: string | null }
  | { readonly kind: 'call'; readonly call: ToolCall }

function itemsOf(said: Said): readonly Item[] {
  switch (said.kind) {
    case 'text':
      return [{ kind: 'text', parts: said.parts, signature: null }]
    case 'reasoning':
      return [{ kind: 'reasoning', parts: said.parts, signature: said.signature }]
    case 'redacted':
      return []
    case 'tools':
      return said.calls.map(call => ({ kind: 'call', call }))
  }
}

const event = (type: string, data: object): Frame => ({ event: type, data: { type, ...data } })

function responseOf(turn: Turn, output: readonly object[], status: string): Record<string, unknown> {
  const { usage } = turn
  const isOver = status === 'completed' || status === 'incomplete'
  return {
    id: 'resp_up',
    object: 'response',
    created_at: 1_700_000_000,
    status,
    model: 'upstream-model',
    output,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: turn.finish === 'length' ? 'max_output_tokens' : 'content_filter' } : null,
    usage:
      usage === null || !isOver
        ? null
        : {
            input_tokens: usage.prompt,
            input_tokens_details: { cached_tokens: usage.cached },
            output_tokens: usage.completion,
            output_tokens_details: { reasoning_tokens: usage.reasoning },
            total_tokens: usage.prompt + usage.completion,
          },
  }
}

function doneItem(item: Item, index: number, style: Style): object {
  switch (item.kind) {
    case 'text':
      return {
        type: 'message',
        id: `msg_${index}`,
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: item.parts.join(''), annotations: [] }],
      }
    case 'reasoning': {
      const text = item.parts.join('')
      const said = style.reasoning === 'summary' ? { summary: [{ type: 'summary_text', text }] } : { summary: [], content: [{ type: 'reasoning_text', text }] }
      return { type: 'reasoning', id: `rs_${index}`, ...said, ...(item.signature === null ? {} : { encrypted_content: item.signature }) }
    }
    case 'call':
      return { type: 'function_call', id: `fc_${index}`, call_id: item.call.id, name: item.call.name, arguments: argumentsOf(item.call), status: 'completed' }
  }
}

/** Returns the events of all items. Interleaved calls send their events in turn. */
function groupsOf(turn: Turn, items: readonly Item[], style: Style): readonly Frame[] {
  const perItem = items.map((item, index) => itemFrames(item, index, style))
  const frames: Frame[] = []
  let place = 0
  for (const said of turn.said) {
    const count = itemsOf(said).length
    const group = perItem.slice(place, place + count)
    place += count
    if (said.kind !== 'tools' || !said.isInterleaved) frames.push(...group.flat())
    else {
      const longest = Math.max(...group.map(({ length }) => length))
      for (let row = 0; row < longest; row++) frames.push(...group.flatMap(one => one[row] ?? []))
    }
  }
  return frames
}

function itemFrames(item: Item, output_index: number, style: Style): readonly Frame[] {
  const done = doneItem(item, output_index, style) as { id: string }
  const at = { item_id: done.id, output_index }
  const finished = event('response.output_item.done', { output_index, item: done })
  const repeated = (frames: readonly Frame[]): readonly Frame[] => (style.withDone ? frames : [])
  if (item.kind === 'call')
    return [
      event('response.output_item.added', { output_index, item: { ...done, arguments: '', status: 'in_progress' } }),
      ...item.call.parts.map(delta => event('response.function_call_arguments.delta', { ...at, delta })),
      ...repeated([event('response.function_call_arguments.done', { ...at, arguments: argumentsOf(item.call) })]),
      finished,
    ]
  const text = item.parts.join('')
  if (item.kind === 'text') {
    const part = { ...at, content_index: 0 }
    return [
      event('response.output_item.added', { output_index, item: { ...done, status: 'in_progress', content: [] } }),
      event('response.content_part.added', { ...part, part: { type: 'output_text', text: '', annotations: [] } }),
      ...item.parts.map(delta => event('response.output_text.delta', { ...part, delta })),
      ...repeated([
        event('response.output_text.done', { ...part, text }),
        event('response.content_part.done', { ...part, part: { type: 'output_text', text, annotations: [] } }),
      ]),
      finished,
    ]
  }
  const added = event('response.output_item.added', { output_index, item: { type: 'reasoning', id: done.id, summary: [] } })
  if (style.reasoning === 'text')
    return [
      added,
      ...item.parts.map(delta => event('response.reasoning_text.delta', { ...at, content_index: 0, delta })),
      ...repeated([event('response.reasoning_text.done', { ...at, content_index: 0, text })]),
      finished,
    ]
  const part = { ...at, summary_index: 0 }
  return [
    added,
    event('response.reasoning_summary_part.added', { ...part, part: { type: 'summary_text', text: '' } }),
    ...item.parts.map(delta => event('response.reasoning_summary_text.delta', { ...part, delta })),
    ...repeated([
      event('response.reasoning_summary_text.done', { ...part, text }),
      event('response.reasoning_summary_part.done', { ...part, part: { type: 'summary_text', text } }),
    ]),
    finished,
  ]
}
