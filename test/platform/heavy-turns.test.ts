import { expect, test } from 'vitest'
import { Cancellation } from '../../src/platform/loop/cancellation.ts'
import { HeavyTurns } from '../../src/platform/loop/heavy-turns.ts'

/** Returns turns whose clock moves only during work and rests. Organisations below 10 belong to one person. */
function turnsOf() {
  let nowMs = 0
  const done: string[] = []
  const clock = {
    monotonicMs: () => nowMs,
    async sleep(ms: number) {
      done.push(`rest ${ms}`)
      nowMs += ms
    },
  }
  const work = (name: string, ms: number): void => {
    done.push(name)
    nowMs += ms
  }
  return { done, work, turns: new HeavyTurns(clock, orgId => (orgId < 10 ? 'one person' : String(orgId))) }
}

test('owners take turns, and each turn is followed by a pause of the same length', async () => {
  const { turns, done, work } = turnsOf()
  await Promise.all([1, 1, 2, 11].map(orgId => turns.run(orgId, () => work(`org ${orgId}`, 20))))
  await turns.run(12, () => {})
  expect(done.slice(0, 8)).toEqual(['org 1', 'rest 20', 'org 1', 'rest 20', 'org 11', 'rest 20', 'org 2', 'rest 20'])
})

test('a turn with a sequel includes the work that the caller does with the result', async () => {
  const { turns, done, work } = turnsOf()
  const reader = async (name: string): Promise<void> => {
    await turns.runWithSequel(1, () => work(`${name} scans`, 5))
    await Promise.resolve()
    work(`${name} parses`, 20)
  }
  await Promise.all([reader('one'), reader('two')])
  await turns.run(2, () => {})
  expect(done.slice(0, 6)).toEqual(['one scans', 'one parses', 'rest 25', 'two scans', 'two parses', 'rest 25'])
})

test('an error of the work reaches its caller, and the next turn begins', async () => {
  const { turns } = turnsOf()
  const failing = turns.runWithSequel(1, () => {
    throw new Error('not a page')
  })
  await expect(failing).rejects.toThrow('not a page')
  expect(await turns.run(1, () => 'next')).toBe('next')
})

test('work whose signal aborts gives up its place, and work whose signal has aborted gets none', async () => {
  const { turns, done, work } = turnsOf()
  const leaving = new Cancellation()
  const all = [turns.run(1, () => work('first', 20)), turns.run(1, () => work('left', 20), leaving), turns.run(2, () => work('last', 20), new Cancellation())]
  leaving.abort(new Error('gone'))
  const ends = await Promise.allSettled([...all, turns.run(3, () => work('late', 20), leaving)])
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  expect(done.filter(each => !each.startsWith('rest'))).toEqual(['first', 'last'])
})
