import fc from 'fast-check'
import { argumentsOf, callsOf, type Frame, inputOf, parses, type Said, type ToolCall, type Turn, type TurnUsage } from './turn.ts'
import type { Upstream } from './upstreams.ts'

interface Style {
  readonly pings: boolean
  /** The last usage repeats the prompt numbers of the first one. */
  readonly mergesUsage: boolean
  /** Only the last usage contains the prompt numbers. */
  readonly lateUsage: boolean
  readonly inputInStart: boolean
}

const named = (event: string, data: object): Frame => ({ event, data: { type: event, ...data } })

/** Writes turns as a server with the Anthropic messages API does. */
export const anthropicUpstream: Upstream<Style> = {
  carries: {
    signatures: true,
    callIds: true,
    usage: usage => ({ ...usage, reasoning: 0 }),
    arguments: argumentsOf,
    hasEndMark: true,
  },
  styles: fc.record({ pings: fc.boolean(), mergesUsage: fc.boolean(), lateUsage: fc.boolean(), inputInStart: fc.boolean() }),

  stream(turn, style) {
    const { usage } = turn
    const early = usage === null ? {} : { usage: style.lateUsage ? { input_tokens: 0, output_tokens: 0 } : { ...promptOf(usage), output_tokens: 1 } }
    const start = named('message_start', {
      message: { id: 'msg_up', type: 'message', role: 'assistant', model: 'upstream-model', content: [], stop_reason: null, stop_sequence: null, ...early },
    })
    const blocks = turn.said.flatMap(blocksOf).map((block, index) => streamBlock(block, index, style))
    const ping = style.pings ? [named('ping', {})] : []
    const body = [start, ...ping, ...blocks.flatMap(frames => [...frames, ...ping])]
    if (turn.ending === 'error') return { frames: [...body, named('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })], tail: 0 }
    const late = usage === null ? {} : { usage: { ...(style.mergesUsage || style.lateUsage ? promptOf(usage) : {}), output_tokens: usage.completion } }
    const ends = [named('message_delta', { delta: { stop_reason: stopReasonOf(turn), stop_sequence: null }, ...late })]
    const mark = turn.ending === 'no-mark' ? [] : [named('message_stop', {})]
    return { frames: [...body, ...ends, ...mark], tail: ends.length + mark.length }
  },

  whole(turn) {
    return {
      id: 'msg_up',
      type: 'message',
      role: 'assistant',
      model: 'upstream-model',
      content: turn.said.flatMap(blocksOf).map(wholeBlock),
      stop_reason: stopReasonOf(turn),
      stop_sequence: null,
      ...(turn.usage === null ? {} : { usage: { ...promptOf(turn.usage), output_tokens: turn.usage.completion } }),
    }
  },
}

function promptOf({ prompt, cached, cacheWrite }: TurnUsage): object {
  return { input_tokens: prompt - cached - cacheWrite, cache_read_input_tokens: cached, cache_creation_input_tokens: cacheWrite }
}

function stopReasonOf(turn: Turn): string {
  if (turn.finish === 'length') return 'max_tokens'
  if (turn.finish === 'content_filter') return 'refusal'
  return callsOf(turn).length > 0 ? 'tool_use' : 'end_turn'
}

type Block = Exclude<Said, { kind: 'tools' }> | { readonly kind: 'tool'; readonly call: ToolCall }

function blocksOf(said: Said): readonly Block[] {
  return said.kind === 'tools' ? said.calls.map(call => ({ kind: 'tool', call })) : [said]
}

function wholeBlock(block: Block): object {
  switch (block.kind) {
    case 'text':
      return { type: 'text', text: block.parts.join('') }
    case 'reasoning':
      return { type: 'thinking', thinking: block.parts.join(''), signature: block.signature ?? '' }
    case 'redacted':
      return { type: 'redacted_thinking', data: block.data }
    case 'tool':
      return { type: 'tool_use', id: block.call.id, name: block.call.name, input: inputOf(block.call) }
  }
}

function streamBlock(block: Block, index: number, style: Style): readonly Frame[] {
  const start = (content_block: object): Frame => named('content_block_start', { index, content_block })
  const delta = (value: object): Frame => named('content_block_delta', { index, delta: value })
  const stop = named('content_block_stop', { index })
  switch (block.kind) {
    case 'text':
      return [start({ type: 'text', text: '' }), ...block.parts.map(text => delta({ type: 'text_delta', text })), stop]
    case 'reasoning': {
      const signed = block.signature === null ? [] : [delta({ type: 'signature_delta', signature: block.signature })]
      return [
        start({ type: 'thinking', thinking: '', signature: '' }),
        ...block.parts.map(thinking => delta({ type: 'thinking_delta', thinking })),
        ...signed,
        stop,
      ]
    }
    case 'redacted':
      return [start({ type: 'redacted_thinking', data: block.data }), stop]
    case 'tool': {
      const { id, name, parts } = block.call
      if (style.inputInStart && (argumentsOf(block.call) === '' || parses(argumentsOf(block.call))))
        return [start({ type: 'tool_use', id, name, input: inputOf(block.call) }), stop]
      return [start({ type: 'tool_use', id, name, input: {} }), ...parts.map(partial_json => delta({ type: 'input_json_delta', partial_json })), stop]
    }
  }
}
