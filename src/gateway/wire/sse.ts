import { type LineSink, lineMaxBytes, SseLineScanner } from './sse-lines.ts'

/** The end mark of an OpenAI stream. */
export const doneFrame = 'data: [DONE]\n\n'

/** One event of a chat stream. */
export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

/**
 * Takes the usage-only chunk (no choices, a usage block) out of a chat stream, for callers who said `include_usage: false`. All
 * other bytes pass as they are; an event is held back until it is whole. Ends and fails as its source does.
 */
export async function* withholdUsage(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const events = new EventSplitter()
  for await (const chunk of chunks) {
    const kept = events.push(chunk).filter(event => !isUsageOnly(event))
    if (kept.length > 0) yield kept.length === 1 && kept[0] !== undefined ? kept[0] : Buffer.concat(kept)
  }
  const rest = events.rest()
  if (rest.length > 0 && !isUsageOnly(rest)) yield rest
}

/** Cuts a byte stream into whole events, blank line included, across any chunking. An event longer than any real one is passed on in parts, not kept. */
class EventSplitter implements LineSink {
  #pending: Uint8Array[] = []
  #pendingBytes = 0
  #ends: number[] = []
  readonly #lines = new SseLineScanner(this)

  push(chunk: Uint8Array): Buffer[] {
    this.#ends = []
    this.#lines.push(chunk)
    const events: Buffer[] = []
    let from = 0
    for (const end of this.#ends) {
      this.#keep(chunk.subarray(from, end))
      events.push(this.#take())
      from = end
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from))
    if (this.#pendingBytes > lineMaxBytes) events.push(this.#take())
    return events
  }

  line(_bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    if (start === end) this.#ends.push(nextInChunk)
  }

  rest(): Buffer {
    return Buffer.concat(this.#pending)
  }

  #keep(part: Uint8Array): void {
    this.#pending.push(part)
    this.#pendingBytes += part.length
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#pending)
    this.#pending = []
    this.#pendingBytes = 0
    return bytes
  }
}

function isUsageOnly(event: Buffer): boolean {
  if (event.indexOf('"usage"') === -1) return false
  const data = event
    .toString('utf8')
    .split(/\r?\n/)
    .filter(line => line.startsWith('data:'))
    .map(line => line.slice(5))
    .join('\n')
  try {
    const value: unknown = JSON.parse(data)
    if (typeof value !== 'object' || value === null || !('usage' in value) || typeof value.usage !== 'object' || value.usage === null) return false
    // An error frame may carry usage too, and must reach the caller.
    if ('error' in value && value.error !== null) return false
    return !('choices' in value) || !Array.isArray(value.choices) || value.choices.length === 0
  } catch {
    return false
  }
}
