import type { Dispatcher } from 'undici'
import { expect, test } from 'vitest'
import { dispatch } from '../../src/platform/outbound/upstream-body.ts'

test('HARD-03 the socket of a provider is paused above 128 KiB of unread bytes, and continues when the reader reads', async () => {
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
  // Bytes that were read no longer count.
  come()
  expect(isPaused).toBe(false)
  await reader.return?.()
})

test('a nudge ends a waiting read with an empty chunk, and the body continues after it', async () => {
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
  // Without a waiting read, a nudge ends the next read that would wait.
  body.nudge()
  expect(String((await reader.next()).value)).toBe('more')
  expect((await reader.next()).value?.length).toBe(0)
  handler.onResponseEnd?.(controller, {})
  expect([(await reader.next()).done, isAborted]).toEqual([true, false])
})
