import { isObject } from '../../../../platform/values/json.ts'

/** The reason why an answer ended, in the terms of the messages format. */
export interface Stop {
  readonly stop_reason: string
  readonly stop_sequence: string | null
}

/** The facts about the end of one answer in the hub format. */
export interface HubEnd {
  readonly finishReason: unknown
  /** The stop string that matched, if the upstream reports it. */
  readonly stopSequence: string | null
  readonly hasToolUse: boolean
  readonly hasRefusal: boolean
}

/** Returns the stop reason of an answer. An answer with tool calls stops for its calls, whatever the upstream says, unless it was cut off. */
export function stopOf({ finishReason, stopSequence, hasToolUse, hasRefusal }: HubEnd): Stop {
  if (finishReason === 'length') return { stop_reason: 'max_tokens', stop_sequence: null }
  if (finishReason === 'content_filter' || (hasRefusal && !hasToolUse)) return { stop_reason: 'refusal', stop_sequence: null }
  if (hasToolUse) return { stop_reason: 'tool_use', stop_sequence: null }
  if (stopSequence !== null) return { stop_reason: 'stop_sequence', stop_sequence: stopSequence }
  return { stop_reason: 'end_turn', stop_sequence: null }
}

/** Returns the stop string of a choice, from the hub's field or from the field that some servers write. Only a string that the request named counts. */
export function stopSequenceOf(choice: Readonly<Record<string, unknown>>, request: Readonly<Record<string, unknown>>): string | null {
  const asked = request['stop_sequences']
  for (const said of [choice['stop_sequence'], choice['stop_reason']]) {
    if (typeof said === 'string' && Array.isArray(asked) && asked.includes(said)) return said
  }
  return null
}

/** Returns the first choice of a hub reply or chunk. The messages format has only one answer. */
export function firstChoice(choices: unknown): Record<string, unknown> | null {
  if (!Array.isArray(choices)) return null
  const found: unknown = choices.find((choice: unknown) => isObject(choice) && (choice['index'] === 0 || choice['index'] === undefined))
  return isObject(found) ? found : null
}
