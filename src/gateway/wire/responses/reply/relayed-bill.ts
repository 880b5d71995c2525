import { isObject, parsedObject } from '../../../../platform/values/json.ts'
import type { Bill } from '../../client-format.ts'
import { isBoundedJson } from '../../json/json-bounds.ts'
import type { TokenUsage } from '../../usage.ts'
import { responseUsage } from './response-object.ts'

const lineStart = 'data:'
const ends: readonly unknown[] = ['response.completed', 'response.incomplete']

/**
 * Adds the bill to the last events of a stream from a provider that uses this API. The bill goes into the event that ends the response. If the provider
 * reports no usage, the gateway's own count is added too. All other events stay unchanged.
 */
export function withBill(events: Uint8Array, usage: TokenUsage, bill: Bill): Uint8Array {
  const bytes = Buffer.from(events.buffer, events.byteOffset, events.byteLength)
  // JSON text has no raw line breaks, so every match is the beginning of a data line.
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

/** Returns the offset of the last data line before `before`, or -1. */
function lastData(bytes: Buffer, before: number): number {
  if (before < 0) return -1
  const found = bytes.subarray(0, before).lastIndexOf(`\n${lineStart}`)
  if (found !== -1) return found + 1
  return before > 0 && bytes.subarray(0, lineStart.length).equals(Buffer.from(lineStart)) ? 0 : -1
}
