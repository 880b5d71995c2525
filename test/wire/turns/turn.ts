/** One turn of a model, independent of wire formats. The generators of upstreams write it in their format, and the readers of clients read it back. */
import fc from 'fast-check'

export interface ToolCall {
  readonly id: string
  readonly name: string
  /**
   * The arguments as JSON text, in the pieces of the stream. The joined text is '' for a call without arguments, and an incomplete object for a call that
   * was cut off.
   */
  readonly parts: readonly string[]
}

export type Said =
  | { readonly kind: 'text'; readonly parts: readonly string[] }
  | { readonly kind: 'reasoning'; readonly parts: readonly string[]; readonly signature: string | null }
  | { readonly kind: 'redacted'; readonly data: string }
  /** Several calls together. With `isInterleaved`, their parts alternate, if the format allows it. */
  | { readonly kind: 'tools'; readonly calls: readonly ToolCall[]; readonly isInterleaved: boolean }

/** The usage as in the hub format: the prompt includes cached tokens, and the completion includes reasoning tokens. */
export interface TurnUsage {
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly cacheWrite: number
  readonly reasoning: number
}

export type Ending =
  | 'good'
  /** The content and the finish reason are complete, but the format's end mark is missing. */
  | 'no-mark'
  /** The provider reports a failure. */
  | 'error'
  /** The bytes end in the middle of the turn. */
  | 'cut'

export interface Turn {
  readonly said: readonly Said[]
  readonly finish: 'stop' | 'length' | 'content_filter'
  /** null: no usage is reported. */
  readonly usage: TurnUsage | null
  readonly ending: Ending
}

export const argumentsOf = (call: ToolCall): string => call.parts.join('')
/** Returns the arguments as an object. It is empty for a call without arguments and for a call that was cut off. */
export function inputOf(call: ToolCall): unknown {
  const text = argumentsOf(call)
  return parses(text) ? JSON.parse(text) : {}
}
export function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
export const textOf = (turn: Turn): string => turn.said.flatMap(said => (said.kind === 'text' ? said.parts : [])).join('')
export const reasoningOf = (turn: Turn): string => turn.said.flatMap(said => (said.kind === 'reasoning' ? said.parts : [])).join('')
export const callsOf = (turn: Turn): readonly ToolCall[] => turn.said.flatMap(said => (said.kind === 'tools' ? said.calls : []))

const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', ' ', 'Z', '0', 'é', 'ß') },
  { weight: 2, arbitrary: fc.constantFrom('"', '\\', '\n', '\r', '\t', '\u0000', '\u2028', '\u2029', '\ufeff', '{', '}', ':', ',') },
  { weight: 2, arbitrary: fc.constantFrom('न', 'म', '्', '😀', '𝒳', '👩‍👩‍👧', '漢') },
  { weight: 1, arbitrary: fc.constantFrom('\ud800', '\udbff', '\udc00', '\udfff') },
  { weight: 1, arbitrary: fc.constantFrom('data: [DONE]', '\n\ndata: {}\n\n', 'event: error\n', ': comment', '[DONE]', '"usage":{', '"error":1') },
)
const words = (maxLength: number): fc.Arbitrary<string> => fc.array(character, { maxLength }).map(found => found.join(''))
/** Returns a text in the pieces of its stream. A surrogate pair may be divided. */
export function inPieces(text: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> {
  return fc.tuple(text, fc.array(fc.nat({ max: 40 }), { maxLength: 4 })).map(([whole, cuts]) => {
    const places = [...new Set(cuts.map(cut => Math.min(cut, whole.length)))].sort((a, b) => a - b)
    return [0, ...places].map((from, index) => whole.slice(from, places[index] ?? whole.length))
  })
}

const json = fc.dictionary(
  fc.stringMatching(/^[a-z]{1,6}$/),
  fc.oneof(words(6), fc.integer(), fc.boolean(), fc.constant(null), fc.array(fc.nat(), { maxLength: 3 }), fc.constant({}), fc.constant({ a: [{}] })),
  { maxKeys: 3, noNullPrototype: true },
)
const callArguments = fc.oneof(
  { weight: 5, arbitrary: inPieces(json.map(value => JSON.stringify(value))) },
  // Pieces that look like an empty value, but can be part of a string.
  { weight: 1, arbitrary: fc.constantFrom([''], ['{}'], ['{', '}'], ['{"a":"x', ' ', '{}', 'y"', '}']) },
)
const call = fc.record({ id: fc.constant(''), name: fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_-]{0,11}$/), parts: callArguments })

const said: fc.Arbitrary<Said> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('text' as const), parts: inPieces(words(12)) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('reasoning' as const),
      parts: inPieces(words(10)),
      signature: fc.option(fc.stringMatching(/^[A-Za-z0-9+/]{4,16}={0,2}$/)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('redacted' as const), data: fc.stringMatching(/^[A-Za-z0-9+/]{4,16}$/) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('tools' as const), calls: fc.array(call, { minLength: 1, maxLength: 3 }), isInterleaved: fc.boolean() }),
  },
)

const usage: fc.Arbitrary<TurnUsage> = fc
  .record({
    cached: fc.nat({ max: 5000 }),
    cacheWrite: fc.nat({ max: 500 }),
    fresh: fc.nat({ max: 5000 }),
    reasoning: fc.nat({ max: 300 }),
    answer: fc.nat({ max: 3000 }),
  })
  .map(({ cached, cacheWrite, fresh, reasoning, answer }) => ({
    prompt: cached + cacheWrite + fresh,
    completion: reasoning + answer,
    cached,
    cacheWrite,
    reasoning,
  }))

const ending: fc.Arbitrary<Ending> = fc.oneof(
  { weight: 5, arbitrary: fc.constant('good' as const) },
  fc.constantFrom('no-mark' as const, 'error' as const, 'cut' as const),
)

/** Turns with at most `saidMax` outputs. The position of a call makes its id unique. */
export function turns(saidMax: number): fc.Arbitrary<Turn> {
  return fc
    .record({
      said: fc.array(said, { maxLength: saidMax }),
      finish: fc.oneof({ weight: 4, arbitrary: fc.constant('stop' as const) }, fc.constantFrom('length' as const, 'content_filter' as const)),
      usage: fc.option(usage, { freq: 4 }),
      ending,
      cut: fc.nat({ max: 20 }),
    })
    .map(({ cut, ...turn }) => ({ ...turn, said: (turn.finish === 'length' ? cutOff(turn.said, cut) : turn.said).map((one, place) => withIds(one, place)) }))
}

/** Returns the outputs with the last call cut off, as at the token limit. */
function cutOff(said: readonly Said[], place: number): readonly Said[] {
  const last = said.at(-1)
  const call = last?.kind === 'tools' ? last.calls.at(-1) : undefined
  if (last?.kind !== 'tools' || call === undefined || argumentsOf(call) === '') return said
  const text = argumentsOf(call)
  const parts = [text.slice(0, 1), text.slice(1, Math.max(1, Math.min(place, text.length - 1)))]
  return [...said.slice(0, -1), { ...last, calls: [...last.calls.slice(0, -1), { ...call, parts }] }]
}

function withIds(one: Said, place: number): Said {
  return one.kind === 'tools' ? { ...one, calls: one.calls.map((made, index) => ({ ...made, id: `call_${place}x${index}` })) } : one
}

/** One event of an event stream, before it is written as bytes. */
export interface Frame {
  readonly event?: string
  readonly data: object | '[DONE]'
}

/** How events are written as bytes. These are the variants that the event stream format allows. */
export interface Framing {
  readonly lineEnd: '\n' | '\r\n' | '\r'
  readonly space: boolean
  readonly byteOrderMark: boolean
  /** Non-ASCII characters are written as escapes. */
  readonly ascii: boolean
  /** The JSON is divided into several data lines. */
  readonly multiLine: boolean
  /** The positions of events with a comment before them. */
  readonly comments: readonly number[]
  readonly idAndRetry: boolean
}

export const plainFraming: Framing = { lineEnd: '\n', space: true, byteOrderMark: false, ascii: false, multiLine: false, comments: [], idAndRetry: false }

export const framings: fc.Arbitrary<Framing> = fc.record({
  lineEnd: fc.oneof({ weight: 3, arbitrary: fc.constant('\n' as const) }, fc.constantFrom('\r\n' as const, '\r' as const)),
  space: fc.boolean(),
  byteOrderMark: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
  ascii: fc.boolean(),
  multiLine: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
  comments: fc.array(fc.nat({ max: 12 }), { maxLength: 2 }),
  idAndRetry: fc.boolean(),
})

export function bytesOf(frames: readonly Frame[], framing: Framing): Buffer {
  const { lineEnd, space, ascii } = framing
  const field = (name: string, value: string): string => `${name}:${space ? ' ' : ''}${value}${lineEnd}`
  const texts = frames.map(({ event, data }, place) => {
    const json = data === '[DONE]' ? data : JSON.stringify(data, null, framing.multiLine ? 1 : undefined)
    const text = ascii ? json.replace(/[\u0080-\uffff]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`) : json
    const lines = text.split('\n').map(line => field('data', line))
    const comment = framing.comments.includes(place) ? `: waiting${lineEnd}${lineEnd}` : ''
    const more = framing.idAndRetry ? field('id', String(place)) + field('retry', '3000') : ''
    return `${comment}${event === undefined ? '' : field('event', event)}${more}${lines.join('')}${lineEnd}`
  })
  return Buffer.from(`${framing.byteOrderMark ? '\ufeff' : ''}${texts.join('')}`)
}
