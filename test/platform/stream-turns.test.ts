import { expect, test } from 'vitest'
import { StreamTurns, sharedMaxBytes } from '../../src/platform/loop/stream-turns.ts'

const nextTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** Returns turns whose clock moves only during a part of a stream. Organisations below 10 belong to one person. */
function turnsOf() {
  let nowMs = 0
  const turns = new StreamTurns({ monotonicMs: () => nowMs })
  turns.divideBy(orgId => (orgId < 10 ? 'one person' : String(orgId)))
  const done: string[] = []
  const rest = (name: string, orgId: number | null, ms: number, then: () => void = () => {}): void =>
    turns.rest(orgId, () => {
      done.push(name)
      nowMs += ms
      then()
    })
  return { turns, done, rest }
}

test('a turn of the loop ends after some milliseconds, whatever the number of streams, and owners take turns', async () => {
  const { done, rest } = turnsOf()
  for (const name of ['a', 'b', 'c', 'd']) rest(`org 1 ${name}`, 1, 2)
  rest('org 2', 2, 2)
  rest('org 11', 11, 2)
  rest('nobody', null, 2)
  const seen: number[] = []
  while (done.length < 7) {
    await nextTurn()
    seen.push(done.length)
  }
  expect(done).toEqual(['org 1 a', 'org 11', 'nobody', 'org 1 b', 'org 1 c', 'org 1 d', 'org 2'])
  expect(seen).toEqual([2, 4, 6, 7])
})

test('many parts that cost little run in one turn, each owner for a millisecond', async () => {
  const { done, rest } = turnsOf()
  for (let count = 0; count < 6; count++) rest('first', 1, 0.25)
  for (let count = 0; count < 3; count++) rest('second', 11, 0.25)
  await nextTurn()
  expect(done.join(' ')).toBe('first first first first second second second first first')
})

test('a stream that rests again continues in the next turn', async () => {
  const { done, rest } = turnsOf()
  let left = 5
  const again = (): void => {
    if (--left > 0) rest(`part ${left}`, 1, 0, again)
  }
  rest('part 5', 1, 0, again)
  for (let turn = 1; turn <= 5; turn++) {
    await nextTurn()
    expect(done).toHaveLength(turn)
  }
})

test('streams must rest when they have taken their bytes together, until the next turn', async () => {
  const { turns, rest } = turnsOf()
  turns.spend(sharedMaxBytes)
  expect(turns.isSpent).toBe(false)
  turns.spend(1)
  expect(turns.isSpent).toBe(true)
  const spent: boolean[] = []
  for (let count = 0; count < 2; count++)
    rest('a', 1, 0, () => {
      spent.push(turns.isSpent)
      turns.spend(sharedMaxBytes + 1)
    })
  await nextTurn()
  expect([...spent, turns.isSpent]).toEqual([false, false, false])
})
