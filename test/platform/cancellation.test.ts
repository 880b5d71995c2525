import { expect, test } from 'vitest'
import { Cancellation } from '../../src/platform/loop/cancellation.ts'

test('a listener that throws stops neither the other listeners nor the caller of abort', () => {
  const cancellation = new Cancellation()
  const calls: string[] = []
  const first = new Error('first')
  cancellation.addEventListener('abort', () => {
    calls.push('a')
    throw first
  })
  cancellation.addEventListener('abort', () => {
    calls.push('b')
    throw new Error('second')
  })
  cancellation.addEventListener('abort', () => calls.push('c'))
  expect(cancellation.listenerError).toBe(null)
  cancellation.abort('left')
  expect(calls).toEqual(['a', 'b', 'c'])
  expect(cancellation.listenerError).toBe(first)
  expect(cancellation.reason).toBe('left')
})
