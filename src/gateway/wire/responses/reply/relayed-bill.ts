import { isObject, parsedObject } from '../../../../platform/values/json.ts'
import type { Bill } from '../../client-format.ts'
import { isBoundedJson } from '../../json/json-bounds.ts'
import type { TokenUsage } from '../../usage.ts'
import { responseUsage } from './response-object.ts'

const lineStart = 'data:'
const ends: readonly unknown[] = ['response.completed', 'response.incomplete']

/**
 * The last events of a stream of a provider that speaks the API, with the bill in the response that ends it, and with our own count of usage when the
 * provider reports none. Only that event is written again; all other bytes stay as they are.
 */
export function withBill(events: Uint8Array, usage: TokenUsage, bill: Bill): Uint8Array {
  const bytes = Buffer.from(events.buffer, events.byteOffset, events.byteLength)
  // Inside of JSON text a line never begins, so that what is found is the beginning of a line of data.
  for (let at = lastData(bytes, bytes.length); at !== -1; at = lastData(bytes, at - 1)) {
    const found = bytes.indexOf('\n', at)
    const end = found === -1 ? bytes.length : found
    const from = at + lineStart.length
    const event = isBoundedJson(bytes, from, end) ? parsedObject(bytes.toString('utf8', from, end)) : null
    if (event === null || !ends.includes(event['type']) || !isObject(event['response'])) continue
    const response = { ...event['response'], usage: event['response']['usage'] ?? responseUsage(usage), x_br: bill }
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(`${lineStart} ${JSON.stringify({ ...event, response })}`), bytes.subarray(end)])
  }
  return events
}

/** Where the last line of data before `before` begins, or -1. */
function lastData(bytes: Buffer, before: number): number {
  if (before < 0) return -1
  const found = bytes.subarray(0, before).lastIndexOf(`\n${lineStart}`)
  if (found !== -1) return found + 1
  return before > 0 && bytes.subarray(0, lineStart.length).equals(Buffer.from(lineStart)) ? 0 : -1
}
