import { expect, test } from 'vitest'
import { StreamHold } from '../../../src/gateway/inference/stream/stream-hold.ts'
import type { Scope } from '../../../src/gateway/limits/engine/counters/counter-state.ts'
import { systemClock } from '../../../src/platform/clock.ts'

/** Makes a hold whose extensions the test decides. `asked` contains the requested totals in output tokens. */
function holdThat(answer: (tokens: number) => boolean | Promise<boolean>, left: { refusedBy: Scope | null; tokens: number }) {
  const asked: number[] = []
  return {
    asked,
    refusedBy: left.refusedBy,
    coveredTokens: () => left.tokens,
    extendTo(tokens: { completionTokens: number }) {
      asked.push(tokens.completionTokens)
      return answer(tokens.completionTokens)
    },
  }
}
/** A clock whose waits end immediately. */
const hastyClock = { ...systemClock, sleep: () => Promise.resolve() }

test('the hold is extended when half of the last extension is left, by twice as much, and never above max_tokens', () => {
  const hold = holdThat(() => true, { refusedBy: null, tokens: 0 })
  const cover = new StreamHold(hold, systemClock, 10, 256, 1000)
  for (const tokens of [1, 128]) expect(cover.afterChunk(tokens)).toBe(true)
  expect(hold.asked).toEqual([])
  for (const tokens of [129, 512, 513, 999, 1000, 1500]) expect(cover.afterChunk(tokens)).toBe(true)
  expect(hold.asked).toEqual([768, 1000])
})

test('after a refused extension, the stream uses the rest of the hold, and then ends with the error of the budget that refused', () => {
  const hold = holdThat(() => false, { refusedBy: 'workspace', tokens: 300 })
  const cover = new StreamHold(hold, systemClock, 10, 256, null)
  expect([cover.afterChunk(200), cover.afterChunk(299), cover.afterChunk(300)]).toEqual([true, true, false])
  expect(hold.asked).toEqual([768])
  expect(cover.refusal).toEqual({ name: 'budget_exceeded' })
})

test('when the database fails or does not answer, the stream ends with an error other than a spent budget', async () => {
  for (const answer of [() => new Promise<boolean>(() => {}), () => Promise.reject(new Error('no database'))]) {
    const cover = new StreamHold(holdThat(answer, { refusedBy: null, tokens: 0 }), hastyClock, 10, 256, null)
    expect(cover.afterChunk(200)).toBe(true)
    expect(await cover.afterChunk(256)).toBe(false)
    expect(cover.refusal.name).toBe('database_unavailable')
  }
})

test('output above a pending extension is requested after that extension', async () => {
  let answerFirst = (_granted: boolean): void => {}
  const first = new Promise<boolean>(resolve => {
    answerFirst = resolve
  })
  const hold = holdThat(tokens => (tokens === 768 ? first : true), { refusedBy: null, tokens: 0 })
  const cover = new StreamHold(hold, systemClock, 10, 256, null)
  expect(cover.afterChunk(200)).toBe(true)
  const covered = cover.afterChunk(5000)
  answerFirst(true)
  expect(await covered).toBe(true)
  expect(hold.asked).toEqual([768, 6024])
})

/** Makes a clock that moves only when the test moves it. */
function standingClock() {
  let nowMs = 1000
  return {
    ...systemClock,
    monotonicMs: () => nowMs,
    advance(ms: number) {
      nowMs += ms
    },
  }
}

test('the hold covers hidden thinking by its time, at fifty tokens a second', () => {
  const clock = standingClock()
  const hold = holdThat(() => true, { refusedBy: null, tokens: 0 })
  const cover = new StreamHold(hold, clock, 10, 8192, null)
  expect(cover.afterChunk(0)).toBe(true)
  // The first check starts the count. After 160 seconds 8,000 tokens are assumed, and 8,100 soon after.
  expect(cover.duringSilence(0)).toBe(true)
  clock.advance(160_000)
  expect(cover.duringSilence(0)).toBe(true)
  expect(hold.asked).toEqual([])
  clock.advance(2000)
  expect(cover.duringSilence(0)).toBe(true)
  expect(hold.asked).toEqual([8192 + 512])
  // Shown output is added to the assumed thinking.
  expect(cover.afterChunk(500)).toBe(true)
  expect(hold.asked).toEqual([8192 + 512, 8192 + 512 + 1024])
  // Shown output ends the silence, so the next check starts a new count.
  clock.advance(60_000)
  expect(cover.duringSilence(500)).toBe(true)
  expect(hold.asked).toHaveLength(2)
})

test('when the budget no longer covers hidden thinking, the stream ends after the rest of the hold is used', () => {
  const clock = standingClock()
  const hold = holdThat(() => false, { refusedBy: 'agent', tokens: 8292 })
  const cover = new StreamHold(hold, clock, 10, 8192, null)
  expect(cover.duringSilence(0)).toBe(true)
  clock.advance(164_000)
  expect(cover.duringSilence(0)).toBe(true)
  expect(hold.asked).toHaveLength(1)
  clock.advance(2000)
  expect(cover.duringSilence(0)).toBe(false)
  expect(cover.refusal).toEqual({ name: 'agent_budget_exceeded' })
})

test('a call whose hold covers all of max_tokens is not ended because of thinking', () => {
  const clock = standingClock()
  const hold = holdThat(() => false, { refusedBy: 'agent', tokens: 0 })
  const cover = new StreamHold(hold, clock, 10, 4000, 4000)
  for (let i = 0; i < 5; i++) {
    expect(cover.duringSilence(0)).toBe(true)
    clock.advance(600_000)
  }
  expect(hold.asked).toEqual([])
})
