import { describe, expect, test } from 'vitest'
import { changedSink, pulled, type StreamPump } from '../../src/platform/loop/stream-sink.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('a pushed stream', () => {
  test('starts with the first read, and goes on when its chunks are read', async () => {
    const steps: string[] = []
    const pump: StreamPump = async sink => {
      for (const text of ['a', 'b', 'c']) {
        steps.push(text)
        if (!sink.push(bytes(text))) await sink.room()
      }
    }
    const chunks = pulled(pump)
    expect(steps).toEqual([])
    expect([String((await chunks.next()).value), steps.length]).toEqual(['a', 1])
    expect(String((await chunks.next()).value)).toBe('b')
    expect(String((await chunks.next()).value)).toBe('c')
    expect((await chunks.next()).done).toBe(true)
  })

  test('gives every chunk that was pushed without a wait, and then the error of the stream', async () => {
    const chunks = pulled(async sink => {
      sink.push(bytes('a'))
      sink.push(bytes('b'))
      throw new Error('broken')
    })
    expect([String((await chunks.next()).value), String((await chunks.next()).value)]).toEqual(['a', 'b'])
    await expect(chunks.next()).rejects.toThrow('broken')
  })

  test('learns that its reader has left, and `return` waits for its end', async () => {
    let end = 'not yet'
    const chunks = pulled(async sink => {
      while (!sink.isGone) if (!sink.push(bytes('a'))) await sink.room()
      end = 'left'
    })
    await chunks.next()
    expect((await chunks.return?.())?.done).toBe(true)
    expect([end, (await chunks.next()).done]).toEqual(['left', true])
  })

  test('does not start for a reader that leaves before it reads', async () => {
    let isStarted = false
    const chunks = pulled(async () => {
      isStarted = true
    })
    await chunks.return?.()
    expect([(await chunks.next()).done, isStarted]).toEqual([true, false])
  })

  test('can be changed on its way to the reader', async () => {
    const chunks = pulled(sink => {
      const upper = changedSink(sink, chunk => bytes(String(chunk).toUpperCase()))
      expect(upper.isGone).toBe(false)
      upper.push(bytes('a'))
      return upper.room()
    })
    expect(String((await chunks.next()).value)).toBe('A')
    expect((await chunks.next()).done).toBe(true)
  })
})
