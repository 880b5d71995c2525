import { isObject } from '../../../../platform/values/json.ts'

/** Why an answer ended, in the words of the messages format. */
export interface Stop {
  readonly stop_reason: string
  readonly stop_sequence: string | null
}

/** What is known of the end of one answer in the hub format. */
export interface HubEnd {
  readonly finishReason: unknown
  /** The stop string that matched, where the upstream says it. */
  readonly stopSequence: string | null
  readonly hasToolUse: boolean
  readonly hasRefusal: boolean
}

/** The stop reason of an answer. An answer that calls tools is there for its calls, whatever the upstream says of its end, unless it was cut off. */
export function stopOf({ finishReason, stopSequence, hasToolUse, hasRefusal }: HubEnd): Stop {
  if (finishReason === 'length') return { stop_reason: 'max_tokens', stop_sequence: null }
  if (finishReason === 'content_filter' || (hasRefusal && !hasToolUse)) return { stop_reason: 'refusal', stop_sequence: null }
  if (hasToolUse) return { stop_reason: 'tool_use', stop_sequence: null }
  if (stopSequence !== null) return { stop_reason: 'stop_sequence', stop_sequence: stopSequence }
  return { stop_reason: 'end_turn', stop_sequence: null }
}

/** The stop string of a choice: in the hub's own field, or in the one that some servers write; only a string that the request named counts. */
export function stopSequenceOf(choice: Readonly<Record<string, unknown>>, request: Readonly<Record<string, unknown>>): string | null {
  const asked = request['stop_sequences']
  for (const said of [choice['stop_sequence'], choice['stop_reason']]) {
    if (typeof said === 'string' && Array.isArray(asked) && asked.includes(said)) return said
  }
  return null
}

/** The first choice of a hub reply or chunk: the messages format has one answer. */
export function firstChoice(choices: unknown): Record<string, unknown> | null {
  if (!Array.isArray(choices)) return null
  const found: unknown = choices.find((choice: unknown) => isObject(choice) && (choice['index'] === 0 || choice['index'] === undefined))
  return isObject(found) ? found : null
}
