import { describe, expect, test } from 'vitest'
import { ImageTurns } from '../../src/platform/media/image-turns.ts'

const { signal } = new AbortController()

describe('turns of images', () => {
  /** Returns work that ends when the test says so, and that records its start. */
  const started = () => {
    let runOut = (): void => {}
    const begun: string[] = []
    const ends: (() => void)[] = []
    const turns = new ImageTurns({
      after(_ms, fn) {
        runOut = fn
        return () => {}
      },
    })
    const run = (founder: string, of: AbortSignal = signal) =>
      turns.run(founder, of, async () => {
        begun.push(founder)
        await new Promise<void>(resolve => ends.push(resolve))
        return founder
      })
    const endOne = async (): Promise<void> => {
      ends.shift()?.()
      await new Promise(resolve => setTimeout(resolve))
    }
    return { begun, run, endOne, runOut: () => runOut() }
  }

  test('a founder with many waiting images delays another founder by only one image', async () => {
    const { begun, run, endOne } = started()
    const many = Array.from({ length: 20 }, () => run('many'))
    const few = [run('few'), run('few')]
    await endOne()
    expect(begun).toEqual(['many', 'many', 'few'])
    await endOne()
    await endOne()
    expect(begun.filter(founder => founder === 'few')).toHaveLength(2)
    for (let count = 0; count < 30; count++) await endOne()
    expect([await Promise.all(few), (await Promise.all(many)).length]).toEqual([['few', 'few'], 20])
  })

  test('a founder has only a share of the places, so another founder finds one', async () => {
    const { run, endOne } = started()
    const many = Array.from({ length: 70 }, () => run('many'))
    const other = run('other')
    for (let count = 0; count < 80; count++) await endOne()
    expect((await Promise.all(many)).filter(made => made === null)).toHaveLength(10)
    expect(await other).toBe('other')
  })

  test('an image stops waiting when its call is cancelled or when the wait is too long', async () => {
    const { begun, run, endOne, runOut } = started()
    const running = [run('one'), run('one')]
    const left = new AbortController()
    const cancelled = run('one', left.signal)
    left.abort()
    expect(await cancelled).toBeNull()
    const late = run('two')
    runOut()
    expect(await late).toBeNull()
    await endOne()
    await endOne()
    expect(begun).toEqual(['one', 'one'])
    await Promise.all(running)
    const next = run('two')
    await endOne()
    expect(await next).toBe('two')
  })
})
