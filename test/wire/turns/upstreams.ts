import fc from 'fast-check'
import type { DialectId } from '../../../src/gateway/providers/provider.ts'
import { anthropicUpstream } from './anthropic.ts'
import { geminiUpstream } from './gemini.ts'
import { openAiUpstream } from './openai.ts'
import { responsesUpstream } from './responses.ts'
import type { Frame, ToolCall, Turn, TurnUsage } from './turn.ts'

/** What of a turn a format can carry at all, and how it comes out in hub terms. */
export interface Carries {
  /** Signatures and redacted thinking. */
  readonly signatures: boolean
  /** Ids of tool calls. */
  readonly callIds: boolean
  usage(usage: TurnUsage): TurnUsage
  /** Text of the arguments as this format gives it back. */
  arguments(call: ToolCall): string
  /** The format has an end mark of its own behind the finish reason. */
  readonly hasEndMark: boolean
}

/** Writes turns as one kind of provider does. */
export interface Upstream<Style> {
  readonly carries: Carries
  /** Deviations of real servers. */
  readonly styles: fc.Arbitrary<Style>
  /** The events in order. The last `tail` of them come behind the finish reason or are it: a stream that is cut ends before them. */
  stream(turn: Turn, style: Style): { readonly frames: readonly Frame[]; readonly tail: number }
  whole(turn: Turn, style: Style): Record<string, unknown>
}

/** A turn as it is written by one provider. */
export interface Played {
  readonly frames: readonly Frame[]
  readonly tail: number
  readonly whole: Record<string, unknown>
}

function played<Style>(upstream: Upstream<Style>, turns: fc.Arbitrary<Turn>): { carries: Carries; turns: fc.Arbitrary<{ turn: Turn; played: Played }> } {
  const { carries } = upstream
  return {
    carries,
    turns: fc.tuple(turns, upstream.styles).map(([given, style]) => {
      const turn: Turn = given.ending === 'no-mark' && !carries.hasEndMark ? { ...given, ending: 'good' } : given
      return { turn, played: { ...upstream.stream(turn, style), whole: upstream.whole(turn, style) } }
    }),
  }
}

/** Turns as providers of that dialect write them. */
export function turnsOf(dialect: DialectId, turns: fc.Arbitrary<Turn>): { carries: Carries; turns: fc.Arbitrary<{ turn: Turn; played: Played }> } {
  switch (dialect) {
    case 'openai':
      return played(openAiUpstream, turns)
    case 'anthropic':
      return played(anthropicUpstream, turns)
    case 'gemini':
      return played(geminiUpstream, turns)
    case 'openai-responses':
      return played(responsesUpstream, turns)
  }
}
