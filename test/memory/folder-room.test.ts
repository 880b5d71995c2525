/** The reserve of the disk that folder stores leave to the gateway. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DiskSpace, diskSpaceOf } from '../../src/memory/stores/folder-room.ts'
import { FolderStore } from '../../src/memory/stores/object-store-folder.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemIds } from '../../src/platform/values/ids.ts'

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'brigade-room-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

const gib = 1024 ** 3
const ample: DiskSpace = { bytes: 100 * gib, freeBytes: 50 * gib, files: 1_000_000, freeFiles: 500_000 }

test.each([
  ['few bytes', { ...ample, freeBytes: 511 * 1024 * 1024 }],
  ['few files', { ...ample, freeFiles: 19_999 }],
  ['a twentieth of a small disk', { ...ample, bytes: gib, freeBytes: 0.04 * gib }],
])('a disk with %s left takes no more objects, and objects can still be read and deleted', async (_name, scarce) => {
  let space = ample
  let nowMs = 0
  const store = new FolderStore({ root, clock: { ...systemClock, monotonicMs: () => nowMs }, ids: systemIds, diskSpaceOf: async () => space })
  await store.put('a', Buffer.from('x'))
  space = scarce
  nowMs += 1000
  await expect(store.put('b', Buffer.from('y'))).rejects.toMatchObject({ kind: 'full' })
  await expect(store.copy('a', 'c')).rejects.toMatchObject({ kind: 'full' })
  expect((await store.get('a', { sizeBytesMax: 10 })).bytes.toString()).toBe('x')
  await store.delete('a')
  expect(await store.head('a')).toBeNull()
  space = { ...ample, files: 0, freeFiles: 0 }
  nowMs += 1000
  await store.put('b', Buffer.from('y'))
  await store.delete('b')
})

test('the file system says how much space a folder has', async () => {
  const { bytes, freeBytes } = await diskSpaceOf(root)
  expect(bytes).toBeGreaterThan(0)
  expect(freeBytes).toBeLessThanOrEqual(bytes)
})
