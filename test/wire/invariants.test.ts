/**
 * Invariants of every translation, for any turn of a model and any division of its bytes. (i) Any division of the bytes gives the same events. (ii) Blocks
 * are opened and closed once and have rising numbers. (iii) Arguments that were JSON are still JSON. (iv) The text does not change. (v) There is one end.
 * (vi) The usage adds up. The readers in `readers/` throw when (ii) or (v) is broken. `sdk/matrix.test.ts` tests (vii), and `round-trip.test.ts` tests
 * (viii).
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
      test('the client reads every turn as the model wrote it, streamed and whole', () => {
        fc.assert(
          fc.property(turnsOf(dialect, turns(5)).turns, framings, fc.double({ min: 0, max: 1, noNaN: true }), ({ turn, played }, framing, where) => {
            const bytes = streamed(turn, played, framing, where)
            check(client.stream(translateStream(dialect, client.format, [bytes])), turn, carries, name)
            if (turn.ending === 'good') checkWhole(client.whole(translateReply(dialect, client.format, played.whole)), turn, carries, name, true)
          }),
          { numRuns },
        )
      })

      test('any division of the bytes of a stream gives the same output', () => {
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

      test('a cut of a small stream at any byte gives the same output', () => {
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

/** Returns the bytes of the turn's stream. When the turn ends with a cut, the bytes end before the finish reason. */
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

/**
 * Removes white space from thinking before a comparison. Where the client's format has one text for it, parts are joined with blank lines, and an empty
 * part may be left out.
 */
const thoughts = (text: string): string => text.replaceAll(/\s+/g, '')

function check(heard: Heard, turn: Turn, carries: Carries, client: WireFormat): void {
  if (turn.ending === 'error' || turn.ending === 'cut') {
    expect(heard.fault).not.toBeNull()
    if (turn.ending === 'error' && callsOf(turn).length === 0) {
      expect([heard.text, thoughts(heard.reasoning)]).toEqual([textOf(turn), thoughts(reasoningOf(turn))])
      return
    }
    // Output that waits for the end of an unfinished call is missing.
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
  // When the provider refuses without a text, the gateway writes one. The messages format has no separate field for it, so it comes after the text.
  const said = textOf(turn)
  if ((client === 'anthropic' || client === 'gemini') && turn.finish === 'content_filter') expect(heard.text.slice(0, said.length)).toBe(said)
  else expect(heard.text).toBe(said)
  expect(thoughts(heard.reasoning)).toBe(thoughts(reasoningOf(turn)))
  // Google's format has no call whose arguments were cut off, unless the provider's own whole reply shows it as an empty one.
  const isEmpty = (id: string): boolean => isWhole && heard.calls.some(call => call.id === id && call.arguments === '{}')
  const calls = client === 'gemini' ? callsOf(turn).filter(call => parses(carries.arguments(call) || '{}') || isEmpty(call.id)) : callsOf(turn)
  expect(heard.calls.map(({ name }) => name)).toEqual(calls.map(({ name }) => name))
  if (carries.callIds) for (const [index, { id }] of calls.entries()) if (!heard.calls[index]?.id.includes('made')) expect(heard.calls[index]?.id).toBe(id)
  expect(new Set(heard.calls.map(({ id }) => id)).size, 'ids are unique').toBe(calls.length)
  for (const [index, call] of calls.entries()) {
    const text = carries.arguments(call) || '{}'
    const said = heard.calls[index]?.arguments || '{}'
    if (parses(text)) expect(JSON.parse(said)).toEqual(JSON.parse(text))
    // Arguments that were cut off stay cut off. Only whole replies of a format without text in this place have an empty object.
    else if (said !== text) expect([isWhole, said]).toEqual([true, '{}'])
  }
  expect(heard.finish).toBe(turn.finish === 'stop' && calls.length > 0 ? 'tool_calls' : turn.finish)
  // These two formats have one place for all thinking of a turn; the round trips show what is in it.
  if (carries.signatures && client !== 'openai-responses' && client !== 'gemini') {
    expect(heard.signatures).toEqual(signaturesOf(turn))
    expect(heard.redacted).toEqual(redactedOf(turn))
  }
  checkUsage(heard, turn, carries, client)
}

function checkUsage({ usage }: Heard, turn: Turn, carries: Carries, client: WireFormat): void {
  expect(usage).not.toBeNull()
  if (turn.usage === null) return void expect(usage?.prompt).toBe(promptEstimate)
  const expected = carries.usage(turn.usage)
  const told =
    client === 'anthropic' ? { ...expected, reasoning: 0 } : client === 'openai-responses' || client === 'gemini' ? { ...expected, cacheWrite: 0 } : expected
  expect(usage).toEqual(told)
}
