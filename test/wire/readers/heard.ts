import type { TurnUsage } from '../turns/turn.ts'

/** The content of a reply as a client reads it, independent of the wire format. */
export interface Heard {
  readonly text: string
  readonly reasoning: string
  /** The text of a refusal, in formats that distinguish it from an answer. */
  readonly refusal: string
  readonly signatures: readonly string[]
  readonly redacted: readonly string[]
  readonly calls: readonly HeardCall[]
  readonly finish: 'stop' | 'length' | 'tool_calls' | 'content_filter' | null
  /** The failure that the stream reported. */
  readonly fault: { readonly type: unknown; readonly message: unknown } | null
  readonly usage: TurnUsage | null
}

export interface HeardCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** Collects the content while a stream is read. */
export interface Hearing {
  text: string
  reasoning: string
  refusal: string
  signatures: string[]
  redacted: string[]
  calls: { id: string; name: string; arguments: string }[]
  finish: Heard['finish']
  fault: Heard['fault']
  usage: TurnUsage | null
}

export const nothingHeard = (): Hearing => ({
  text: '',
  reasoning: '',
  refusal: '',
  signatures: [],
  redacted: [],
  calls: [],
  finish: null,
  fault: null,
  usage: null,
})

/** Throws when the input breaks the format. */
export function must(isSo: boolean, what: string, shown?: unknown): asserts isSo {
  if (!isSo) throw new Error(`${what}${shown === undefined ? '' : `: ${JSON.stringify(shown)}`}`)
}

/** Returns the name and the data of every event, without comments. Throws for anything that a simple line reader could misread. */
export function eventsOf(text: string): readonly { readonly name: string | null; readonly data: string }[] {
  must(text === '' || text.endsWith('\n\n'), 'the stream ends behind a whole event', text.slice(-40))
  // Additional blank lines do not end another event.
  return text
    .replace(/^\n+/, '')
    .split(/\n\n+/)
    .flatMap(block => {
      if (block === '' || block.startsWith(':')) return []
      const lines = block.split('\n')
      const name = lines[0]?.startsWith('event: ') ? lines[0].slice('event: '.length) : null
      const rest = name === null ? lines : lines.slice(1)
      must(rest.length === 1 && rest[0]?.startsWith('data: ') === true, 'an event has one data line', block)
      return [{ name, data: rest[0].slice('data: '.length) }]
    })
}

export function objectOf(value: unknown, what: string): Record<string, unknown> {
  must(typeof value === 'object' && value !== null && !Array.isArray(value), `${what} is an object`, value)
  return value as Record<string, unknown>
}

export function listOf(value: unknown, what: string): readonly Record<string, unknown>[] {
  must(Array.isArray(value), `${what} is a list`, value)
  return value.map(item => objectOf(item, what))
}

export function textOf(value: unknown, what: string): string {
  must(typeof value === 'string', `${what} is text`, value)
  return value
}

/** Returns a token count. Throws when it is not a whole number of at least 0. */
export function countOf(value: unknown, what: string): number {
  must(typeof value === 'number' && Number.isInteger(value) && value >= 0, `${what} is a count`, value)
  return value
}
