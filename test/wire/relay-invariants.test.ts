/**
 * The invariants of `invariants.test.ts` for relayed bytes, where client and provider use the same format. For all pairs of formats it also tests streams
 * that break or that the gateway ends at any byte. Such a stream must be valid and have one end.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { WireFormat } from '../../src/gateway/wire/client-format.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { adapterOf, type Client, clients, cutAt, oneByOne, run, translateStream } from './play.ts'
import { anthropicUpstream } from './turns/anthropic.ts'
import { geminiUpstream } from './turns/gemini.ts'
import { openAiUpstream } from './turns/openai.ts'
import { responsesUpstream } from './turns/responses.ts'
import {
  argumentsOf,
  bytesOf,
  callsOf,
  type Frame,
  type Framing,
  inputOf,
  plainFraming,
  reasoningOf,
  type ToolCall,
  type Turn,
  textOf,
  turns,
} from './turns/turn.ts'
import { turnsOf } from './turns/upstreams.ts'

const numRuns = propertyRuns(300)
const formats = Object.entries(clients) as [WireFormat, Client][]

/** Returns the frames of a provider that follows its own documentation, because the strict readers read the relayed bytes. */
function framesOf(format: WireFormat, turn: Turn): readonly Frame[] {
  switch (format) {
    case 'openai': {
      const style = { tools: 'plain', reasoningKey: 'reasoning_content', usageAt: 'own-chunk', roleChunk: true } as const
      return openAiUpstream.stream(turn, { ...style, nullFields: false, plainFinish: false, finishTwice: false }).frames
    }
    case 'anthropic':
      return anthropicUpstream.stream(turn, { pings: true, mergesUsage: true, lateUsage: false, inputInStart: false }).frames
    case 'gemini':
      return geminiUpstream.stream(turn, { callIds: true, usageEachChunk: true, finishBesideLast: false, signs: 'calls' }).frames
    case 'openai-responses':
      return responsesUpstream.stream(turn, { reasoning: 'text', withDone: true }).frames
  }
}

/** Turns that the format can express: usage is always reported, no text block is empty, and an item occurs once. */
const told = (saidMax: number): fc.Arbitrary<Turn> =>
  turns(saidMax).map(turn => ({
    ...turn,
    usage: turn.usage ?? { prompt: 10, completion: 5, cached: 2, cacheWrite: 0, reasoning: 1 },
    said: turn.said.filter(said => said.kind !== 'text' || said.parts.join('') !== ''),
  }))
const relayFramings: fc.Arbitrary<Framing> = fc
  .record({
    lineEnd: fc.constantFrom('\n' as const, '\r\n' as const),
    space: fc.boolean(),
    ascii: fc.boolean(),
    idAndRetry: fc.boolean(),
    comments: fc.array(fc.nat({ max: 12 }), { maxLength: 2 }),
  })
  .map(framing => ({ ...plainFraming, ...framing }))

/** Normalises line ends. If the provider's error lacks its final blank line, the gateway writes one, perhaps with other line ends. */
const eventsIn = (text: string): string => text.replaceAll('\r\n', '\n').replaceAll(/\n\n+/g, '\n\n')

for (const [name, client] of formats) {
  describe(`${name}, relayed`, () => {
    test('the client reads every relayed turn as the model wrote it', () => {
      fc.assert(
        fc.property(told(5), turn => {
          const heard = client.stream(translateStream(name, client.format, [bytesOf(framesOf(name, { ...turn, ending: 'good' }), plainFraming)]))
          expect([heard.fault, heard.text, heard.reasoning]).toEqual([null, textOf(turn), reasoningOf(turn)])
          // Google's format has arguments as objects, not as text.
          const written = (call: ToolCall): string => (name === 'gemini' ? JSON.stringify(inputOf(call)) : argumentsOf(call))
          expect(heard.calls.map(call => [call.id, call.name, call.arguments])).toEqual(callsOf(turn).map(call => [call.id, call.name, written(call)]))
          expect([heard.usage?.prompt, heard.usage?.completion]).toEqual([turn.usage?.prompt, turn.usage?.completion])
        }),
        { numRuns },
      )
    })

    test('any division of the relayed bytes gives the same events, the same usage and the same end', () => {
      fc.assert(
        fc.property(turnsOf(name, turns(3)).turns, relayFramings, fc.array(fc.nat(5000), { maxLength: 6 }), ({ played }, framing, places) => {
          const bytes = bytesOf(played.frames, framing)
          const outcome = (chunks: readonly Uint8Array[]): unknown => {
            const adapter = adapterOf(name, client.format)
            return [eventsIn(run(adapter, chunks)), adapter.usage(), adapter.reported, adapter.finished, adapter.failed]
          }
          const whole = outcome([bytes])
          const offsets = [...new Set([0, ...places.map(place => place % bytes.length), bytes.length])].sort((a, b) => a - b)
          expect(outcome(offsets.slice(1).map((to, index) => bytes.subarray(offsets[index], to)))).toEqual(whole)
          expect(outcome(oneByOne(bytes))).toEqual(whole)
        }),
        { numRuns },
      )
    })

    test('a cut of a small relayed stream at any byte gives the same events', () => {
      fc.assert(
        fc.property(turnsOf(name, turns(2)).turns, relayFramings, ({ played }, framing) => {
          const bytes = bytesOf(played.frames, framing)
          const whole = eventsIn(translateStream(name, client.format, [bytes]))
          for (let place = 1; place < bytes.length; place++) {
            const made = eventsIn(translateStream(name, client.format, cutAt(bytes, place)))
            if (made !== whole) expect(made, `cut at ${place}`).toBe(whole)
          }
        }),
        { numRuns: Math.ceil(numRuns / 30) },
      )
    })
  })

  for (const dialect of ['openai', 'anthropic', 'gemini', 'openai-responses'] as const) {
    const cuttable = dialect === name ? told(2).map(turn => framesOf(dialect, turn)) : turnsOf(dialect, told(2)).turns.map(({ played }) => played.frames)
    const prefixes = (check: (bytes: Buffer, place: number) => void): void =>
      fc.assert(
        fc.property(cuttable, frames => {
          const bytes = bytesOf(frames, plainFraming)
          for (let place = 1; place <= bytes.length; place++) check(bytes, place)
        }),
        { numRuns: Math.ceil(numRuns / 60) },
      )

    test(`${dialect} upstream, ${name} client: a stream that breaks at any byte is valid for the client and has one end`, () => {
      prefixes((bytes, place) => {
        const text = translateStream(dialect, client.format, [bytes.subarray(0, place)])
        const { finish, fault } = client.stream(text)
        expect(fault === null ? finish : fault.message).not.toBeNull()
      })
    })

    test(`${dialect} upstream, ${name} client: a stream that the gateway ends at any byte is valid for the client and gives the reason`, () => {
      prefixes((bytes, place) => {
        const adapter = adapterOf(dialect, client.format)
        const before = adapter.push(bytes.subarray(0, place))
        // Nothing can follow the usage of a chat stream.
        if (adapter.finished || adapter.failed || (name === 'openai' && adapter.reported)) return
        const end = adapter.fail({ message: 'The budget is spent.', type: 'billing_error', code: 'budget_exceeded' })
        const { fault } = client.stream(Buffer.concat([...(before === null ? [] : [before]), end]).toString('utf8'))
        // The provider's own error may already be complete except for its final line.
        expect(String(fault?.message)).toMatch(/The budget is spent|overloaded|server had an error/i)
      })
    })
  }
}
