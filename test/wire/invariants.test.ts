/**
 * What holds of every translation, whatever a model says and however its bytes arrive: (i) any byte split gives the same events, (ii)
 * blocks are opened and closed once and count up, (iii) arguments parse if they did, (iv) text in = text out, (v) one end, (vi) usage adds
 * up. The readers of `readers/` refuse what breaks (ii) and (v); `sdk.test.ts` has (vii), `round-trip.test.ts` (viii).
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hasDialect } from '../../src/gateway/providers/dialects.ts'
import type { DialectId } from '../../src/gateway/providers/provider.ts'
import type { WireFormat } from '../../src/gateway/wire/client-format.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { type Client, clients, cutAt, oneByOne, promptEstimate, translateReply, translateStream } from './play.ts'
import type { Heard } from './readers/heard.ts'
import { bytesOf, callsOf, framings, parses, reasoningOf, type Turn, textOf, turns } from './turns/turn.ts'
import { type Carries, type Played, turnsOf } from './turns/upstreams.ts'

const numRuns = propertyRuns(300)
const dialects: readonly DialectId[] = ['openai', 'anthropic', 'gemini', 'openai-responses']

for (const dialect of dialects.filter(hasDialect)) {
  for (const [name, client] of Object.entries(clients) as [WireFormat, Client][]) {
    if (name === dialect) continue
    const { carries } = turnsOf(dialect, turns(1))
    describe(`${dialect} upstream, ${name} client`, () => {
      test('every turn is heard as it was said, streamed and whole', () => {
        fc.assert(
          fc.property(turnsOf(dialect, turns(5)).turns, framings, fc.double({ min: 0, max: 1, noNaN: true }), ({ turn, played }, framing, where) => {
            const bytes = streamed(turn, played, framing, where)
            check(client.stream(translateStream(dialect, client.format, [bytes])), turn, carries, name)
            if (turn.ending === 'good') checkWhole(client.whole(translateReply(dialect, client.format, played.whole)), turn, carries, name, true)
          }),
          { numRuns },
        )
      })

      test('the bytes of a stream may be cut anywhere', () => {
        const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 })
        fc.assert(
          fc.property(turnsOf(dialect, turns(5)).turns, framings, cuts, ({ turn, played }, framing, places) => {
            const bytes = streamed(turn, played, framing, 0.5)
            const whole = translateStream(dialect, client.format, [bytes])
            const offsets = [0, ...places.map(place => Math.floor(place * bytes.length)).sort((a, b) => a - b), bytes.length]
            const parts = offsets.slice(1).map((to, index) => bytes.subarray(offsets[index], to))
            expect(translateStream(dialect, client.format, parts)).toBe(whole)
            expect(translateStream(dialect, client.format, oneByOne(bytes))).toBe(whole)
          }),
          { numRuns: Math.ceil(numRuns / 3) },
        )
      })

      test('the bytes of a small stream may be cut at every place', () => {
        fc.assert(
          fc.property(turnsOf(dialect, turns(2)).turns, framings, ({ turn, played }, framing) => {
            const bytes = streamed(turn, played, framing, 0.5)
            const whole = translateStream(dialect, client.format, [bytes])
            for (let place = 1; place < bytes.length; place++) {
              const made = translateStream(dialect, client.format, cutAt(bytes, place))
              if (made !== whole) expect(made, `cut at ${place}`).toBe(whole)
            }
          }),
          { numRuns: Math.ceil(numRuns / 30) },
        )
      })
    })
  }
}

/** The bytes of the turn's stream; of one that is cut, a part that ends before its finish reason is out. */
function streamed(turn: Turn, { frames, tail }: Played, framing: Parameters<typeof bytesOf>[1], where: number): Buffer {
  const bytes = bytesOf(frames, framing)
  if (turn.ending !== 'cut') return bytes
  const before = bytesOf(frames.slice(0, frames.length - tail), framing).length
  return bytes.subarray(0, Math.floor(before * where))
}

function signaturesOf(turn: Turn): readonly string[] {
  return turn.said.flatMap(said => (said.kind === 'reasoning' && said.signature !== null ? [said.signature] : []))
}
const redactedOf = (turn: Turn): readonly string[] => turn.said.flatMap(said => (said.kind === 'redacted' ? [said.data] : []))

/** Thoughts that come in parts are joined by blank lines where the client's format has one text for them, and a blank one may be left out. */
const thoughts = (text: string): string => text.replaceAll(/\s+/g, '')

function check(heard: Heard, turn: Turn, carries: Carries, client: WireFormat): void {
  if (turn.ending === 'error' || turn.ending === 'cut') {
    expect(heard.fault).not.toBeNull()
    if (turn.ending === 'error' && callsOf(turn).length === 0) {
      expect([heard.text, thoughts(heard.reasoning)]).toEqual([textOf(turn), thoughts(reasoningOf(turn))])
      return
    }
    // What waits for the end of a call that never comes is not said.
    for (const [said, given] of [
      [heard.text, textOf(turn)],
      [thoughts(heard.reasoning), thoughts(reasoningOf(turn))],
    ] as const)
      expect(given.slice(0, said.length)).toBe(said)
    return
  }
  checkWhole(heard, turn, carries, client)
}

function checkWhole(heard: Heard, turn: Turn, carries: Carries, client: WireFormat, isWhole = false): void {
  expect(heard.fault).toBeNull()
  // A refusal that the provider does not put into words is put into words, and the messages format has no place of its own for it.
  const said = textOf(turn)
  if (client === 'anthropic' && turn.finish === 'content_filter') expect(heard.text.slice(0, said.length)).toBe(said)
  else expect(heard.text).toBe(said)
  expect(thoughts(heard.reasoning)).toBe(thoughts(reasoningOf(turn)))
  const calls = callsOf(turn)
  expect(heard.calls.map(({ name }) => name)).toEqual(calls.map(({ name }) => name))
  if (carries.callIds) for (const [index, { id }] of calls.entries()) if (!heard.calls[index]?.id.includes('made')) expect(heard.calls[index]?.id).toBe(id)
  expect(new Set(heard.calls.map(({ id }) => id)).size, 'ids are unique').toBe(calls.length)
  for (const [index, call] of calls.entries()) {
    const text = carries.arguments(call) || '{}'
    const said = heard.calls[index]?.arguments || '{}'
    if (parses(text)) expect(JSON.parse(said)).toEqual(JSON.parse(text))
    // What was cut off stays cut off; only whole replies whose format knows no text there have an empty object.
    else if (said !== text) expect([isWhole, said]).toEqual([true, '{}'])
  }
  expect(heard.finish).toBe(turn.finish === 'stop' && calls.length > 0 ? 'tool_calls' : turn.finish)
  if (carries.signatures && client !== 'openai-responses') {
    expect(heard.signatures).toEqual(signaturesOf(turn))
    expect(heard.redacted).toEqual(redactedOf(turn))
  }
  checkUsage(heard, turn, carries, client)
}

function checkUsage({ usage }: Heard, turn: Turn, carries: Carries, client: WireFormat): void {
  expect(usage).not.toBeNull()
  if (turn.usage === null) return void expect(usage?.prompt).toBe(promptEstimate)
  const expected = carries.usage(turn.usage)
  const told = client === 'anthropic' ? { ...expected, reasoning: 0 } : client === 'openai-responses' ? { ...expected, cacheWrite: 0 } : expected
  expect(usage).toEqual(told)
}
