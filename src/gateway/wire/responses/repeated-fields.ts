/** What a reply of the Responses API repeats of its request. Decision 0414 says why. */
import type { JsonObject } from '../../../platform/values/json.ts'
import { roomBehind } from '../json/json-room.ts'

/** About this many characters are repeated in each reply or snapshot. A stream has three snapshots, and the event loop writes all of them in one turn. */
const repeatedMaxChars = 256 * 1024

/** The fields, smallest first, with the replacement for a field that is absent or does not fit. */
const otherwise = {
  max_output_tokens: null,
  parallel_tool_calls: true,
  prompt_cache_key: null,
  temperature: null,
  top_p: null,
  truncation: 'disabled',
  user: null,
  reasoning: { effort: null, summary: null },
  tool_choice: 'auto',
  metadata: {},
  text: { format: { type: 'text' } },
  instructions: null,
  tools: [],
} as const

const known = new WeakMap<JsonObject, JsonObject>()

/** The fields of a request that its reply repeats, as they were sent. Those that are too long to be repeated have their default. */
export function repeatedFields(request: JsonObject): JsonObject {
  const before = known.get(request)
  if (before !== undefined) return before
  let left = repeatedMaxChars
  const fields: Record<string, unknown> = {}
  for (const [name, fallback] of Object.entries(otherwise)) {
    const given = request[name] ?? fallback
    const room = roomBehind(given, left)
    fields[name] = room < 0 ? fallback : given
    if (room >= 0) left = room
  }
  known.set(request, fields)
  return fields
}
