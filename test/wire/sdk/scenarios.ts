/** The replies of the upstreams to every scenario, in their own formats. */
import type { DialectId } from '../../../src/gateway/providers/provider.ts'
import { wantsStream } from '../../harness/upstream-formats.ts'
import type { RecordedRequest, UpstreamScript } from '../../harness/upstream-server.ts'
import { anthropicUpstream } from '../turns/anthropic.ts'
import { geminiUpstream } from '../turns/gemini.ts'
import { openAiUpstream } from '../turns/openai.ts'
import { responsesUpstream } from '../turns/responses.ts'
import { bytesOf, plainFraming, type Said, type ToolCall, type Turn } from '../turns/turn.ts'
import { answerText } from './ask.ts'

const usage = { prompt: 40, completion: 20, cached: 8, cacheWrite: 0, reasoning: 0 }
const turn = (said: readonly Said[], finish: Turn['finish'] = 'stop'): Turn => ({ said, finish, usage, ending: 'good' })
const text = (...parts: readonly string[]): Said => ({ kind: 'text', parts })
const call = (id: string, city: string): ToolCall => ({ id, name: 'get_weather', parts: ['{"ci', `ty":"${city}"}`] })
const tools = (...calls: readonly ToolCall[]): Said => ({ kind: 'tools', calls, isInterleaved: true })

export const turns = {
  text: turn([text('The weather ', 'is fine. ☀️ ', 'पुणे')]),
  'one tool': turn([text('Let me look.'), tools(call('call_a1', 'Pune'))]),
  'parallel tools': turn([tools(call('call_a1', 'Pune'), call('call_b2', 'Goa'))]),
  'json schema': turn([text(answerText.slice(0, 6), answerText.slice(6))]),
  thinking: turn([{ kind: 'reasoning', parts: ['Pune is ', 'in India.'], signature: 'c2lnbmVk' }, text('Fine.')]),
  refusal: turn([text('I will not.')], 'content_filter'),
  'max tokens': turn([text('The weather is')], 'length'),
} as const satisfies Readonly<Record<string, Turn>>

export type TurnName = keyof typeof turns

/** Returns a function that makes the reply of an upstream to a request. */
export function scriptOf(dialect: DialectId, name: TurnName): (request: RecordedRequest) => UpstreamScript {
  return request => {
    const asked = JSON.stringify(request.json ?? {})
    const { frames, whole } = written(dialect, asked.includes('"br_json_reply"') && name === 'json schema' ? replyTool : turns[name])
    return wantsStream(request) ? { rawStream: [bytesOf(frames, plainFraming)] } : { body: whole }
  }
}

/** A model without support for schemas answers with a call of the tool that replaces the schema. */
const replyTool = turn([{ kind: 'tools', calls: [{ id: 'toolu_1', name: 'br_json_reply', parts: [answerText] }], isInterleaved: false }])

function written(dialect: DialectId, said: Turn): { frames: Parameters<typeof bytesOf>[0]; whole: Record<string, unknown> } {
  switch (dialect) {
    case 'openai': {
      const style = {
        tools: 'plain',
        reasoningKey: 'reasoning_content',
        usageAt: 'own-chunk',
        roleChunk: true,
        nullFields: false,
        plainFinish: false,
        finishTwice: false,
      } as const
      return { frames: openAiUpstream.stream(said, style).frames, whole: openAiUpstream.whole(said, style) }
    }
    case 'anthropic': {
      const style = { pings: true, mergesUsage: true, lateUsage: false, inputInStart: false }
      return { frames: anthropicUpstream.stream(said, style).frames, whole: anthropicUpstream.whole(said, style) }
    }
    case 'gemini': {
      const style = { callIds: false, usageEachChunk: true, finishBesideLast: true, signs: 'text' } as const
      return { frames: geminiUpstream.stream(said, style).frames, whole: geminiUpstream.whole(said, style) }
    }
    case 'openai-responses': {
      const style = { reasoning: 'summary', withDone: true } as const
      return { frames: responsesUpstream.stream(said, style).frames, whole: responsesUpstream.whole(said, style) }
    }
  }
}

/** Returns an error reply of an upstream, in its own format. */
export function errorOf(dialect: DialectId, status: 400 | 429 | 500): UpstreamScript {
  const words = { 400: 'The request is wrong.', 429: 'Too many requests.', 500: 'The server failed.' }[status]
  const named = { 400: 'invalid_request_error', 429: 'rate_limit_error', 500: 'api_error' }[status]
  if (dialect === 'gemini')
    return {
      status,
      body: { error: { code: status, message: words, status: { 400: 'INVALID_ARGUMENT', 429: 'RESOURCE_EXHAUSTED', 500: 'INTERNAL' }[status] } },
    }
  if (dialect === 'anthropic') return { status, body: { type: 'error', error: { type: named, message: words } } }
  return { status, body: { error: { message: words, type: named, param: null, code: null } } }
}
