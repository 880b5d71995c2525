import fc from 'fast-check'
import type { DialectId } from '../../../src/gateway/providers/provider.ts'
import { anthropicUpstream } from './anthropic.ts'
import { geminiUpstream } from './gemini.ts'
import { openAiUpstream } from './openai.ts'
import { responsesUpstream } from './responses.ts'
import type { Frame, ToolCall, Turn, TurnUsage } from './turn.ts'

/** The parts of a turn that a format can carry, and how the hub format shows them. */
export interface Carries {
  /** Signatures and redacted thinking. */
  readonly signatures: boolean
  /** Ids of tool calls. */
  readonly callIds: boolean
  usage(usage: TurnUsage): TurnUsage
  /** Returns the text of the arguments after a round trip through this format. */
  arguments(call: ToolCall): string
  /** The format has an end mark after the finish reason. */
  readonly hasEndMark: boolean
}

/** Writes turns in the format of one kind of provider. */
export interface Upstream<Style> {
  readonly carries: Carries
  /** Deviations of real servers. */
  readonly styles: fc.Arbitrary<Style>
  /** Returns the events in order. The last `tail` of them are the event with the finish reason and those after it. A stream that is cut ends before these. */
  stream(turn: Turn, style: Style): { readonly frames: readonly Frame[]; readonly tail: number }
  whole(turn: Turn, style: Style): Record<string, unknown>
}

/** A turn in the format of one provider. */
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

/** Returns turns in the format of providers of that dialect. */
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
