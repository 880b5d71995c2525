import { expect, test } from 'vitest'
import { type IdleKey, type InactivityRule, inactivityStep } from '../../../src/gateway/keys/inactivity/inactivity.ts'

const day = 24 * 3600_000
const now = 1000 * day
const rule: InactivityRule = { days: 90, noticeDays: 14 }
const key = (over: Partial<IdleKey> = {}): IdleKey => ({ createdAtMs: 0, lastUsedAtMs: null, idleFromMs: null, noticeAtMs: null, isPinned: false, ...over })

test.each([
  ['a key that was never used is idle from the time when it was made', { createdAtMs: now - 90 * day }, 'notice'],
  ['a key that was never used gets no notice before its idle time is over', { createdAtMs: now - 90 * day + 1 }, 'none'],
  ['use restarts the idle time', { lastUsedAtMs: now - 89 * day }, 'none'],
  ['enabling restarts the idle time', { lastUsedAtMs: now - 200 * day, idleFromMs: now - 89 * day }, 'none'],
  ['the later of use and enabling counts', { lastUsedAtMs: now - 95 * day, idleFromMs: now - 300 * day }, 'notice'],
  ['a key with a notice is not disabled before the notice is over', { lastUsedAtMs: now - 103 * day, noticeAtMs: now - 14 * day + 1 }, 'none'],
  ['a key is disabled when its notice is over', { lastUsedAtMs: now - 104 * day, noticeAtMs: now - 14 * day }, 'disable'],
  ['a use during the notice withdraws the notice', { lastUsedAtMs: now - 1, noticeAtMs: now - 14 * day }, 'withdraw'],
  [
    'a use long after the notice withdraws the notice, although the key is idle again',
    { lastUsedAtMs: now - 91 * day, noticeAtMs: now - 200 * day },
    'withdraw',
  ],
  ['a pinned key gets no notice', { isPinned: true }, 'none'],
  ['a pin withdraws the notice', { isPinned: true, noticeAtMs: now - 20 * day }, 'withdraw'],
] as const)('%s', (_title, over, step) => {
  expect(inactivityStep(key(over), rule, now)).toBe(step)
})

test('a rule that is switched off gives no notice and withdraws existing notices; switched on again, it begins with a new notice', () => {
  const off = { days: null, noticeDays: 14 }
  expect(inactivityStep(key(), off, now)).toBe('none')
  expect(inactivityStep(key({ noticeAtMs: now - 500 * day }), off, now)).toBe('withdraw')
})

test('lengthening the window withdraws a notice that is too early for the new window', () => {
  expect(inactivityStep(key({ lastUsedAtMs: now - 104 * day, noticeAtMs: now - 14 * day }), { days: 365, noticeDays: 14 }, now)).toBe('withdraw')
})
