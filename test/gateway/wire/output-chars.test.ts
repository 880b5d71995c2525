import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ChunkFacts, noFacts, scanChunkJson } from '../../../src/gateway/wire/chat/chat-chunk-scan.ts'
import { reasoningEdits } from '../../../src/gateway/wire/chat/chat-reasoning.ts'
import { isBoundedJson } from '../../../src/gateway/wire/json/json-bounds.ts'
import { JsonProgress } from '../../../src/gateway/wire/json/json-progress.ts'
import { outputChars, spokenBytes } from '../../../src/gateway/wire/output-chars.ts'
import { GrowingBytes } from '../../../src/gateway/wire/sse/growing-bytes.ts'
import { SseEventReader } from '../../../src/gateway/wire/sse/sse-events.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

function scanned(chunk: unknown, space?: number): ChunkFacts {
  const facts = noFacts()
  const bytes = Buffer.from(JSON.stringify(chunk, null, space))
  scanChunkJson(bytes, 0, bytes.length, facts)
  return facts
}
const name = fc.constantFrom(
  'content',
  'name',
  'arguments',
  'reasoning',
  'reasoning_details',
  'thinking',
  'id',
  'type',
  'role',
  'signature',
  'data',
  'b64_json',
  'url',
  'text',
  'input',
  'x',
)
const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.constantFrom('data:image/png;base64,AAAA', '', '"\\', '2026', 'item 42'))
const { said } = fc.letrec(tie => ({
  said: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(null, 5, true),
    fc.array(tie('said'), { maxLength: 3 }),
    fc.dictionary(name, tie('said'), { maxKeys: 4 }),
  ),
}))

describe('the count of output', () => {
  test('is the same for bytes and for values, for any delta', () => {
    fc.assert(
      fc.property(fc.array(said, { maxLength: 3 }), fc.constantFrom(undefined, 2), (deltas, space) => {
        const chunk = {
          id: 'long id',
          choices: deltas.map((delta, index) => ({ index, delta, logprobs: { content: [{ token: 'no' }] }, finish_reason: null })),
        }
        const expected = deltas.reduce((sum: number, delta) => sum + outputChars(JSON.parse(JSON.stringify(delta))), 0)
        expect(scanned(chunk, space).outputChars).toBe(expected)
      }),
      { numRuns: propertyRuns(1000) },
    )
  })

  test('a line of the longest allowed length is read with each line end, whole and in pieces', () => {
    const read = (pieces: readonly Buffer[]): unknown => {
      const reader = new SseEventReader(64)
      return [...pieces.flatMap(bytes => reader.push(bytes)), ...reader.end()]
    }
    const data = `data: ${'x'.repeat(58)}`
    for (const end of ['\n', '\r\n', '\r']) {
      const bytes = Buffer.from(`${data}${end}${end}:\r\r`)
      const whole = read([bytes])
      expect(whole).toMatchObject([{ kind: 'event', data: 'x'.repeat(58) }, { kind: 'comment' }])
      expect(read(Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)))).toEqual(whole)
      expect(read([bytes.subarray(0, -3), bytes.subarray(-3)])).toEqual(whole)
      expect(read([Buffer.from(`${data}y${end}${end}`)])).toMatchObject([{ name: 'error' }])
    }
  })

  test('text in every script counts by its UTF-8 bytes, with and without escapes', () => {
    const escaped = (text: string): string => text.replace(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('नमस्ते दुनिया', 'é', '\u0001', '😀😀', '\u07ff\u0800', 'ꯀ')), said => {
        const json = JSON.stringify({ choices: [{ delta: { content: said } }] })
        for (const written of [json, escaped(json), escaped(json).replace(/\\u[0-9a-f]{4}/g, found => `\\u${found.slice(2).toUpperCase()}`)]) {
          const facts = noFacts()
          const bytes = Buffer.from(written)
          scanChunkJson(bytes, 0, bytes.length, facts)
          expect(facts.outputChars).toBe(spokenBytes(said))
        }
        expect(outputChars({ content: said })).toBe(spokenBytes(said))
      }),
    )
    expect(outputChars({ content: 'नमस्ते' })).toBe(18)
  })

  test('finds choices, finish reasons and misplaced thinking, and nothing that only looks like them', () => {
    const choice = (more: object) => ({ choices: [{ index: 0, ...more }] })
    expect(scanned(choice({ delta: {}, finish_reason: 'stop' }))).toMatchObject({ hasChoices: true, hasFinish: true, hasOddThinking: false })
    expect(scanned(choice({ delta: { finish_reason: 'stop', error: { a: 1 }, usage: {} } }))).toMatchObject({
      hasFinish: false,
      hasError: false,
      hasUsage: false,
    })
    expect(scanned({ choices: [], finish_reason: 'stop' })).toMatchObject({ hasChoices: false, hasFinish: false })
    for (const odd of [{ reasoning: 'a' }, { content: [] }]) expect(scanned(choice({ delta: odd })).hasOddThinking).toBe(true)
    for (const even of [{ reasoning: '' }, { reasoning: null }, { reasoning_content: 'a' }, { x: { reasoning: 'a' } }])
      expect(scanned(choice({ delta: even })).hasOddThinking).toBe(false)
  })

  test('edits that rename thinking change only its delta', () => {
    const chunk =
      '{"id": 1.0, "choices" :[ {"delta":{"content":"\\u0041","reasoning":"b"},"seed":12345678901234567890} , {"index":1,"delta":{"reasoning":"c" }}]}'
    const bytes = Buffer.from(chunk)
    const [first, second, ...rest] = reasoningEdits(bytes, 0, bytes.length).map(({ from, to, bytes: made }) => [
      chunk.slice(from, to),
      Buffer.from(made).toString(),
    ])
    expect([first, second, rest]).toEqual([
      ['{"content":"\\u0041","reasoning":"b"}', '{"content":"\\u0041","reasoning_content":"b"}'],
      ['{"reasoning":"c" }', '{"reasoning_content":"c"}'],
      [],
    ])
    for (const nonsense of ['', '{', '{"choices":5}', '{"choices":[5,{"delta":5}]}', '[1]'])
      expect(reasoningEdits(Buffer.from(nonsense), 0, nonsense.length)).toEqual([])
  })
})

describe('reading in pieces', () => {
  const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
    const at = [...new Set(places.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
    return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length)).filter(part => part.length > 0)
  }

  test('hostile bytes give the same events for any chunking', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 12 }).map(bytes => Buffer.from(bytes)),
      fc
        .constantFrom(
          'data: {"a":1}',
          'data:',
          'data',
          'event: x',
          ':',
          '\r',
          '\n',
          '\r\n',
          '\n\n',
          '\r\r',
          'id: 1',
          'retry: x',
          'nothing',
          '\ufeff',
          'é😀',
          'data: b',
        )
        .map(line => Buffer.from(line)),
    )
    const read = (pieces: readonly Buffer[]): unknown => {
      const reader = new SseEventReader(64)
      return [...pieces.flatMap(bytes => reader.push(bytes)), ...reader.end()]
    }
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(1000), { maxLength: 12 }), (pieces, places) => {
        const bytes = Buffer.concat(pieces)
        expect(read(cut(bytes, places))).toEqual(read([bytes]))
        expect(read(Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)))).toEqual(read([bytes]))
      }),
      { numRuns: propertyRuns(1000) },
    )
  })

  test('bytes are joined unchanged', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 8 }), pieces => {
        const growing = new GrowingBytes()
        for (const each of pieces) growing.append(each)
        expect(growing.take().equals(Buffer.concat(pieces))).toBe(true)
        expect(growing.length).toBe(0)
      }),
    )
  })

  test('an object is complete at its last brace, and not if something comes after it', () => {
    const isWhole = (...pieces: string[]): boolean => {
      const progress = new JsonProgress()
      for (const each of pieces) progress.push(each)
      return progress.isWhole
    }
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }), fc.nat(), (value, place) => {
        const json = ` ${JSON.stringify(value)} `
        const at = place % json.length
        expect([isWhole(json), isWhole(json.slice(0, at), json.slice(at)), isWhole(json, '}'), isWhole(json.trimEnd().slice(0, -1))]).toEqual([
          true,
          true,
          false,
          false,
        ])
      }),
    )
    for (const other of ['', '5', '[1]', 'x{}', '{"a":"}', '{"a":"\\"}']) expect([other, isWhole(other)]).toEqual([other, false])
  })

  test('JSON that takes long to parse is recognised by its nesting and its members', () => {
    const isBounded = (json: string): boolean => isBoundedJson(Buffer.from(json), 0, Buffer.byteLength(json))
    expect(isBounded(`"${'[{"a":'.repeat(200_000)}"`.replaceAll('"a"', 'a'))).toBe(true)
    expect(isBounded(`[${'1,'.repeat(200_000)}1]`)).toBe(true)
    expect(isBounded('['.repeat(100_000))).toBe(false)
    expect(isBounded(`[${'{},'.repeat(200_000)}1]`)).toBe(false)
    expect(isBounded(`{${'"a":1,'.repeat(200_000)}`)).toBe(false)
  })
})
