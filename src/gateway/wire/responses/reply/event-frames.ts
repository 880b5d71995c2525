import type { JsonObject } from '../../../../platform/values/json.ts'

/** Writes and numbers the events of one stream. Each event has its name twice, and the next sequence number. */
export class EventFrames {
  #next: number

  constructor(first = 0) {
    this.#next = first
  }

  frame(type: string, fields: JsonObject): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#next++, ...fields })}\n\n`
  }
}
