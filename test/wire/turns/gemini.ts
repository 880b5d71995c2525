import fc from 'fast-check'
import { type Frame, inputOf, type Said, type ToolCall, type Turn } from './turn.ts'
import type { Upstream } from './upstreams.ts'

interface Style {
  /** Calls have ids, as with newer servers. */
  readonly callIds: boolean
  readonly usageEachChunk: boolean
  /** The finish reason is in the chunk of the last part, not in a separate chunk. */
  readonly finishBesideLast: boolean
  /** Where the signature of thinking is: on the calls, on the text after the thinking, or on an empty text at the end. */
  readonly signs: 'calls' | 'text' | 'end'
}

const head = { modelVersion: 'upstream-model', responseId: 'gemini-up' }

/** Writes turns as a server with Gemini's generateContent API does. */
export const geminiUpstream: Upstream<Style> = {
  carries: {
    signatures: false,
    callIds: false,
    usage: usage => ({ ...usage, cacheWrite: 0 }),
    arguments: call => JSON.stringify(inputOf(call)),
    hasEndMark: false,
  },
  styles: fc.record({
    callIds: fc.boolean(),
    usageEachChunk: fc.boolean(),
    finishBesideLast: fc.boolean(),
    signs: fc.constantFrom('calls' as const, 'text' as const, 'end' as const),
  }),

  stream(turn, style) {
    const usage = turn.usage === null ? {} : { usageMetadata: usageOf(turn) }
    const chunk = (parts: readonly object[], finish: object, isLast: boolean): Frame => ({
      data: { candidates: [{ content: { role: 'model', parts }, ...finish, index: 0 }], ...(isLast || style.usageEachChunk ? usage : {}), ...head },
    })
    const groups = [...turn.said.flatMap(said => streamParts(said, style)), ...(style.signs === 'end' ? [[{ text: '', ...signed }]] : [])]
    if (turn.ending === 'error')
      return {
        frames: [
          ...groups.map(parts => chunk(parts, {}, false)),
          { data: { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } } },
        ],
        tail: 0,
      }
    const finish = { finishReason: finishOf(turn) }
    const last = style.finishBesideLast ? groups.at(-1) : undefined
    const before = last === undefined ? groups : groups.slice(0, -1)
    return { frames: [...before.map(parts => chunk(parts, {}, false)), chunk(last ?? [{ text: '' }], finish, true)], tail: 1 }
  },

  whole(turn, style) {
    const parts = [...turn.said.flatMap(said => partsOf(said, style)), ...(style.signs === 'end' ? [{ text: '', ...signed }] : [])]
    return {
      candidates: [{ content: { role: 'model', parts }, finishReason: finishOf(turn), index: 0 }],
      ...(turn.usage === null ? {} : { usageMetadata: usageOf(turn) }),
      ...head,
    }
  },
}

function finishOf({ finish }: Turn): string {
  if (finish === 'length') return 'MAX_TOKENS'
  return finish === 'stop' ? 'STOP' : 'SAFETY'
}

function usageOf({ usage }: Turn): object | null {
  if (usage === null) return null
  const { prompt, completion, cached, reasoning } = usage
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion - reasoning,
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cached,
    totalTokenCount: prompt + completion,
  }
}

const signed = { thoughtSignature: 'c2lnbmF0dXJl' }

function callPart(call: ToolCall, style: Style, isFirst: boolean): object {
  const args = inputOf(call)
  return {
    functionCall: { name: call.name, args, ...(style.callIds ? { id: call.id } : {}) },
    ...(isFirst ? signed : {}),
  }
}

/** Returns the parts of each chunk. */
function streamParts(said: Said, style: Style): readonly (readonly object[])[] {
  switch (said.kind) {
    case 'text':
      return said.parts.map((text, index) => [{ text, ...(style.signs === 'text' && index === said.parts.length - 1 ? signed : {}) }])
    case 'reasoning':
      return said.parts.map(text => [{ text, thought: true }])
    case 'redacted':
      return []
    case 'tools': {
      const parts = said.calls.map((call, index) => callPart(call, style, index === 0))
      return said.isInterleaved ? [parts] : parts.map(part => [part])
    }
  }
}

function partsOf(said: Said, style: Style): readonly object[] {
  switch (said.kind) {
    case 'text':
      return [{ text: said.parts.join(''), ...(style.signs === 'text' ? signed : {}) }]
    case 'reasoning':
      return [{ text: said.parts.join(''), thought: true }]
    case 'redacted':
      return []
    case 'tools':
      return said.calls.map((call, index) => callPart(call, style, index === 0))
  }
}
