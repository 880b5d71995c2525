import fc from 'fast-check'
import { argumentsOf, callsOf, type Frame, reasoningOf, type Said, type ToolCall, type Turn, textOf } from './turn.ts'
import type { Upstream } from './upstreams.ts'

interface Style {
  readonly tools: 'plain' | 'id-each-chunk' | 'no-index' | 'index-zero' | 'no-id' | 'whole-call'
  readonly reasoningKey: 'reasoning_content' | 'reasoning'
  /** Where the usage is: in a separate chunk, in the chunk with the finish reason, or in every chunk. */
  readonly usageAt: 'own-chunk' | 'finish-chunk' | 'every-chunk'
  readonly roleChunk: boolean
  readonly nullFields: boolean
  /** A turn with tool calls has the same finish reason as a turn without them. */
  readonly plainFinish: boolean
  readonly finishTwice: boolean
}

const head = { id: 'chatcmpl-up', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'upstream-model' }
const chunk = (delta: object, finish: string | null = null, more: object = {}): Frame => ({
  data: { ...head, choices: [{ index: 0, delta, finish_reason: finish }], ...more },
})

/** Writes turns as a server with the OpenAI chat completions API does, in one of the variants of real servers. */
export const openAiUpstream: Upstream<Style> = {
  carries: {
    signatures: false,
    callIds: true,
    usage: usage => usage,
    arguments: argumentsOf,
    hasEndMark: true,
  },
  styles: fc.record({
    tools: fc.oneof(
      { weight: 3, arbitrary: fc.constant('plain' as const) },
      fc.constantFrom('id-each-chunk' as const, 'no-index' as const, 'index-zero' as const, 'no-id' as const, 'whole-call' as const),
    ),
    reasoningKey: fc.constantFrom('reasoning_content' as const, 'reasoning' as const),
    usageAt: fc.constantFrom('own-chunk' as const, 'finish-chunk' as const, 'every-chunk' as const),
    roleChunk: fc.boolean(),
    nullFields: fc.boolean(),
    plainFinish: fc.boolean(),
    finishTwice: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
  }),

  stream(turn, style) {
    const usage = turn.usage === null ? {} : { usage: usageOf(turn) }
    const finish = finishOf(turn, style)
    let callsBefore = 0
    const content = turn.said.flatMap(said => {
      const frames = framesOf(said, style, callsBefore)
      if (said.kind === 'tools') callsBefore += said.calls.length
      return frames
    })
    const nulls = style.nullFields ? { content: null, tool_calls: null, function_call: null, refusal: null } : {}
    const opening = style.roleChunk ? [chunk({ role: 'assistant', content: '' })] : []
    const body = [...opening, ...content].map(frame =>
      style.usageAt === 'every-chunk' && typeof frame.data === 'object' ? { data: { ...frame.data, ...usage } } : frame,
    )
    if (turn.ending === 'error') return { frames: [...body, errorFrame], tail: 0 }
    const ends = Array.from({ length: style.finishTwice ? 2 : 1 }, () => chunk(nulls, finish, style.usageAt === 'own-chunk' ? {} : usage))
    const told: Frame[] = style.usageAt === 'own-chunk' && turn.usage !== null ? [{ data: { ...head, choices: [], ...usage } }] : []
    const mark: Frame[] = turn.ending === 'no-mark' ? [] : [{ data: '[DONE]' }]
    return { frames: [...body, ...ends, ...told, ...mark], tail: ends.length + told.length + mark.length }
  },

  whole(turn, style) {
    const text = textOf(turn)
    const reasoning = reasoningOf(turn)
    const calls = callsOf(turn)
    const message = {
      role: 'assistant',
      content: text === '' ? null : text,
      ...(reasoning === '' ? {} : { [style.reasoningKey]: reasoning }),
      ...(calls.length === 0
        ? {}
        : { tool_calls: calls.map(call => ({ id: call.id, type: 'function', function: { name: call.name, arguments: argumentsOf(call) } })) }),
    }
    return {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finishOf(turn, style), logprobs: null }],
      ...(turn.usage === null ? {} : { usage: usageOf(turn) }),
    }
  },
}

const errorFrame: Frame = { data: { error: { message: 'The server is overloaded.', type: 'overloaded_error', code: 'overloaded' } } }

function finishOf(turn: Turn, style: Style): string {
  return turn.finish === 'stop' && callsOf(turn).length > 0 && !style.plainFinish ? 'tool_calls' : turn.finish
}

function usageOf({ usage }: Turn): object | null {
  if (usage === null) return null
  return {
    prompt_tokens: usage.prompt,
    completion_tokens: usage.completion,
    total_tokens: usage.prompt + usage.completion,
    prompt_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

function framesOf(said: Said, style: Style, callsBefore: number): readonly Frame[] {
  switch (said.kind) {
    case 'text':
      return said.parts.map(content => chunk(style.nullFields ? { role: 'assistant', content, reasoning_content: null } : { content }))
    case 'reasoning':
      return said.parts.map(part => chunk({ [style.reasoningKey]: part, ...(style.nullFields ? { content: null } : {}) }))
    case 'redacted':
      return []
    case 'tools':
      return toolFrames(said.calls, said.isInterleaved, style, callsBefore)
  }
}

/** When calls have no index, or always the same one, they can only come one after the other. */
function toolFrames(calls: readonly ToolCall[], isInterleaved: boolean, style: Style, callsBefore: number): readonly Frame[] {
  const perCall = calls.map((call, index) => callFrames(call, callsBefore + index, style))
  const canInterleave = style.tools === 'plain' || style.tools === 'id-each-chunk'
  if (!isInterleaved || !canInterleave) return perCall.flat()
  const longest = Math.max(...perCall.map(({ length }) => length))
  return Array.from({ length: longest }, (_, row) => perCall.flatMap(frames => frames[row] ?? [])).flat()
}

function callFrames(call: ToolCall, index: number, style: Style): readonly Frame[] {
  const place = style.tools === 'no-index' ? {} : { index: style.tools === 'index-zero' ? 0 : index }
  const id = style.tools === 'no-id' ? {} : { id: call.id }
  const first = { ...place, ...id, type: 'function' }
  if (style.tools === 'whole-call') return [chunk({ tool_calls: [{ ...first, function: { name: call.name, arguments: argumentsOf(call) } }] })]
  const later = style.tools === 'id-each-chunk' ? { ...first, function: { name: call.name } } : place
  return [
    chunk({ tool_calls: [{ ...first, function: { name: call.name, arguments: '' } }] }),
    ...call.parts.map(part =>
      chunk({ tool_calls: [{ ...later, function: { ...(style.tools === 'id-each-chunk' ? { name: call.name } : {}), arguments: part } }] }),
    ),
  ]
}
