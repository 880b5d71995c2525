import { isObject } from '../../../platform/values/json.ts'
import type { ChatStreamEvent } from '../../wire/chat/chat-stream.ts'

type ChunkEvent = Extract<ChatStreamEvent, { kind: 'chunk' }>

/** The least number of events in one read for which pieces are joined. Ordinary streams have fewer, so their pieces stay as they are. */
const manyEvents = 64
/** Longer pieces of arguments are not joined. */
const shortChars = 16

/**
 * Joins short pieces of the arguments of one tool call that came in one read. Each piece becomes an event for the client, and writing it takes as long as for
 * a long one. The joined pieces are one event. Decision 0513 gives the reasons.
 */
export function joinedCalls(events: readonly ChatStreamEvent[]): readonly ChatStreamEvent[] {
  if (events.length < manyEvents) return events
  const out: ChatStreamEvent[] = []
  let run: Piece[] = []
  for (const event of events) {
    const piece = pieceOf(event)
    const [first] = run
    if (first !== undefined && (piece === null || !continues(first, piece))) {
      out.push(joined(first, run))
      run = []
    }
    if (piece === null) out.push(event)
    else run.push(piece)
  }
  if (run[0] !== undefined) out.push(joined(run[0], run))
  return out
}

/** An event that has only a short piece of arguments. */
interface Piece {
  readonly event: ChunkEvent
  readonly choice: Readonly<Record<string, unknown>>
  readonly index: unknown
  readonly text: string
}

function pieceOf(event: ChatStreamEvent): Piece | null {
  if (event.kind !== 'chunk' || (event.chunk.usage ?? null) !== null || !Array.isArray(event.chunk.choices) || event.chunk.choices.length !== 1) return null
  const choice: unknown = event.chunk.choices[0]
  if (!isObject(choice) || (choice['finish_reason'] ?? null) !== null || !isObject(choice['delta'])) return null
  const { tool_calls: calls, ...others } = choice['delta']
  if (!Array.isArray(calls) || calls.length !== 1 || Object.keys(others).length > 0) return null
  const call: unknown = calls[0]
  if (!isObject(call) || Object.keys(call).length !== 2 || call['index'] === undefined || !isObject(call['function'])) return null
  const { arguments: text, ...more } = call['function']
  if (typeof text !== 'string' || text.length > shortChars || Object.keys(more).length > 0) return null
  return { event, choice, index: call['index'], text }
}

const continues = (first: Piece, piece: Piece): boolean => first.index === piece.index && first.event.chunk['model'] === piece.event.chunk['model']

function joined(first: Piece, run: readonly Piece[]): ChatStreamEvent {
  if (run.length === 1) return first.event
  const { event, choice, index } = first
  const text = run.map(piece => piece.text).join('')
  const chunk = { ...event.chunk, choices: [{ ...choice, delta: { tool_calls: [{ index, function: { arguments: text } }] } }] }
  const isCounted = run.every(piece => piece.event.outputChars !== undefined)
  return isCounted ? { ...event, chunk, outputChars: run.reduce((sum, piece) => sum + (piece.event.outputChars ?? 0), 0) } : { kind: 'chunk', chunk }
}
