/** The fields of a request that a reply of the Responses API repeats. Decision 0414 gives the reasons. */
import type { JsonObject } from '../../../platform/values/json.ts'
import { roomBehind } from '../json/json-room.ts'

/**
 * Maximum number of characters, approximately, that each reply or snapshot may repeat. A stream has three snapshots, and writing one blocks the event loop.
 */
const repeatedMaxChars = 256 * 1024

/** The repeated fields, smallest first. Each value is the default for a field that is absent or does not fit. */
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

/** Returns the fields of a request that its reply repeats, as they were sent. Fields that are too long to be repeated have their default. */
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
