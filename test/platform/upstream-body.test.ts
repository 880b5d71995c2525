import type { Dispatcher } from 'undici'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { StreamTurns } from '../../src/platform/loop/stream-turns.ts'
import { dispatch } from '../../src/platform/outbound/upstream-body.ts'

test('HARD-03 the socket of a provider is paused above 128 KiB of unread bytes, and resumed when the reader continues', async () => {
  let isPaused = false
  const controller = {
    get paused() {
      return isPaused
    },
    pause: () => {
      isPaused = true
    },
    abort: () => undefined,
    resume: () => {
      isPaused = false
    },
  } as unknown as Dispatcher.DispatchController
  let handler: Dispatcher.DispatchHandler = {}
  const dispatcher = {
    dispatch: (_options: unknown, given: Dispatcher.DispatchHandler) => {
      handler = given
      return true
    },
  } as unknown as Dispatcher
  const reply = dispatch(dispatcher, { path: '/', method: 'GET' }, undefined)
  handler.onRequestStart?.(controller, null)
  handler.onResponseStart?.(controller, 200, {}, 'OK')
  const { body } = await reply
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const come = () => handler.onResponseData?.(controller, chunk)
  come()
  come()
  expect(isPaused).toBe(false)
  come()
  expect(isPaused).toBe(true)
  const reader = body[Symbol.asyncIterator]()
  let readBytes = 0
  while (readBytes < 3 * chunk.length) readBytes += (await reader.next()).value?.length ?? 0
  const next = reader.next()
  await Promise.resolve()
  expect(isPaused).toBe(false)
  come()
  expect((await next).value?.length).toBeGreaterThan(0)
  // Bytes that were read do not count any more.
  come()
  expect(isPaused).toBe(false)
  await reader.return?.()
})

test('a nudge ends a waiting read with an empty chunk, and the body continues afterwards', async () => {
  let handler: Dispatcher.DispatchHandler = {}
  const dispatcher = {
    dispatch: (_options: unknown, given: Dispatcher.DispatchHandler) => {
      handler = given
      return true
    },
  } as unknown as Dispatcher
  let isAborted = false
  const controller = { paused: false, abort: () => (isAborted = true) } as unknown as Dispatcher.DispatchController
  const reply = dispatch(dispatcher, { path: '/', method: 'GET' }, undefined)
  handler.onRequestStart?.(controller, null)
  handler.onResponseStart?.(controller, 200, {}, 'OK')
  const { body } = await reply
  const reader = body[Symbol.asyncIterator]()
  const waiting = reader.next()
  await Promise.resolve()
  body.nudge()
  expect(await waiting).toEqual({ done: false, value: new Uint8Array() })
  handler.onResponseData?.(controller, Buffer.from('more'))
  // A nudge without a waiting read applies to the next read that would wait.
  body.nudge()
  expect(String((await reader.next()).value)).toBe('more')
  expect((await reader.next()).value?.length).toBe(0)
  handler.onResponseEnd?.(controller, {})
  expect([(await reader.next()).done, isAborted]).toEqual([true, false])
})

/** A dispatched reply whose data the test brings itself. */
async function scripted(turns = new StreamTurns(systemClock)) {
  let handler: Dispatcher.DispatchHandler = {}
  const seen = { isPaused: false, isAborted: false, resumes: 0 }
  const dispatcher = {
    dispatch: (_options: unknown, given: Dispatcher.DispatchHandler) => {
      handler = given
      return true
    },
  } as unknown as Dispatcher
  const controller = {
    get paused() {
      return seen.isPaused
    },
    pause: () => {
      seen.isPaused = true
    },
    resume: () => {
      seen.isPaused = false
      seen.resumes++
    },
    abort: () => {
      seen.isAborted = true
    },
  } as unknown as Dispatcher.DispatchController
  const reply = dispatch(dispatcher, { path: '/', method: 'GET' }, undefined, { refusesFine: false, headersTimeoutMs: 0, turns })
  handler.onRequestStart?.(controller, null)
  handler.onResponseStart?.(controller, 200, {}, 'OK')
  const { body } = await reply
  return {
    body,
    seen,
    come: (chunk: Uint8Array) => handler.onResponseData?.(controller, Buffer.from(chunk)),
    end: () => handler.onResponseEnd?.(controller, {}),
    fail: (error: Error) => handler.onResponseError?.(controller, error),
  }
}

test('a chunk flows to its reader in the call in which it arrives, until the reader stops the flow', async () => {
  const { body, come, end } = await scripted()
  const taken: string[] = []
  let isOpen = true
  const take = (chunk: Uint8Array): boolean => {
    taken.push(String(chunk))
    return isOpen
  }
  come(Buffer.from('early'))
  const first = body.flow(take)
  expect(taken).toEqual(['early'])
  come(Buffer.from('now'))
  expect(taken).toEqual(['early', 'now'])
  isOpen = false
  come(Buffer.from('last'))
  come(Buffer.from('kept'))
  expect(taken).toEqual(['early', 'now', 'last'])
  expect(await first).toBe('stopped')
  isOpen = true
  const second = body.flow(take)
  expect(taken.at(-1)).toBe('kept')
  body.nudge()
  expect(await second).toBe('nudged')
  const third = body.flow(take)
  end()
  expect([await third, taken.length]).toEqual(['ended', 4])
})

test('a flow passes on what has arrived before it reports that the body broke off', async () => {
  const { body, come, fail } = await scripted()
  come(Buffer.from('a'))
  fail(new Error('broken'))
  const taken: string[] = []
  await expect(body.flow(chunk => taken.push(String(chunk)) > 0)).rejects.toThrow('broken')
  expect(taken).toEqual(['a'])
})

test('a flow rejects with the error of its reader, and with the reason of a body that its reader destroys', async () => {
  const { body, come } = await scripted()
  const failing = body.flow(() => {
    throw new RangeError('too deep')
  })
  come(Buffer.from('a'))
  await expect(failing).rejects.toThrow('too deep')
  const destroying = body.flow(() => {
    body.destroy()
    return true
  })
  come(Buffer.from('b'))
  await expect(destroying).rejects.toThrow('abandoned')
})

test('a burst flows in turns of about 32 KiB, and the socket is paused while it waits for its turn', async () => {
  const { body, seen, come, end } = await scripted()
  let takenBytes = 0
  const flow = body.flow(chunk => {
    takenBytes += chunk.length
    return true
  })
  const chunk = Buffer.alloc(16 * 1024, 'x')
  for (let count = 0; count < 20; count++) come(chunk)
  expect(takenBytes).toBeLessThanOrEqual(48 * 1024)
  expect(seen.isPaused).toBe(true)
  while (seen.isPaused) await new Promise(resolve => setImmediate(resolve))
  expect([takenBytes, seen.resumes]).toEqual([20 * chunk.length, 1])
  end()
  expect(await flow).toBe('ended')
})

test('HARD-03 the bodies of many calls have a bound of bytes together in one turn, and each of them gets its bytes in order', async () => {
  let nowMs = 0
  const turns = new StreamTurns({ monotonicMs: () => nowMs })
  const chunks = 8
  const taken: string[] = []
  const bodies = await Promise.all(Array.from({ length: 20 }, () => scripted(turns)))
  const flows = bodies.map(({ body }, index) =>
    body.flow(chunk => {
      taken.push(`${index}:${chunk[0]}`)
      // The work on 8 KiB takes a millisecond.
      nowMs += 1
      return true
    }, index),
  )
  for (let count = 0; count < chunks; count++) for (const { come } of bodies) come(Buffer.alloc(8 * 1024, count))
  // More than 64 KiB arrived in this turn.
  expect(taken).toHaveLength(9)
  const perTurn: number[] = []
  while (taken.length < bodies.length * chunks) {
    const before = taken.length
    await new Promise(resolve => setImmediate(resolve))
    perTurn.push(taken.length - before)
  }
  // A turn ends after 4 ms. A part that has begun by then has at most 32 KiB, and 8 KiB beyond.
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(3 + 5)
  bodies.forEach(({ end }, index) => {
    end()
    expect(taken.filter(one => one.startsWith(`${index}:`))).toEqual(Array.from({ length: chunks }, (_, count) => `${index}:${count}`))
  })
  expect(new Set(await Promise.all(flows))).toEqual(new Set(['ended']))
})

test('a body of another organisation does not wait behind all bodies of one that brings much', async () => {
  let nowMs = 0
  const turns = new StreamTurns({ monotonicMs: () => nowMs })
  const order: number[] = []
  const bodies = await Promise.all(Array.from({ length: 11 }, () => scripted(turns)))
  bodies.forEach(({ body, come }, index) => {
    void body.flow(
      chunk => {
        order.push(index)
        nowMs += chunk.length / 1024
        return true
      },
      index === 10 ? 2 : 1,
    )
    for (let count = 0; count < 8; count++) come(Buffer.alloc(index === 10 ? 100 : 16 * 1024))
  })
  const before = order.length
  while (!order.includes(10)) await new Promise(resolve => setImmediate(resolve))
  // One part of the other organisation came first.
  expect(new Set(order.slice(before, order.indexOf(10)))).toEqual(new Set([0]))
})
