import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compareKeys, isStoreError, type ObjectStore } from '../../src/memory/stores/object-store.ts'
import { type Peer, peers } from './stores.ts'

/** The bound of a read in tests that do not test the bound. */
const sizeBytesMax = 64 * 1024

async function kindOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'no error'
  } catch (error) {
    for (const kind of ['not-found', 'precondition-failed', 'unsupported', 'too-large', 'unavailable', 'denied'] as const)
      if (isStoreError(error, kind)) return kind
    throw error
  }
}

for (const kind of peers) {
  describe.skipIf(!kind.isInstalled)(`object store contract on ${kind.name}${kind.isInstalled ? '' : ' (not installed)'}`, () => {
    let peer: Peer
    let store: ObjectStore
    beforeAll(async () => {
      peer = await kind.start()
      store = peer.store
    }, 120_000)
    afterAll(() => peer?.close())

    test('an object is returned with its bytes, metadata and etag', async () => {
      const bytes = Buffer.from([0, 1, 255, 10, 13, 0xe2, 0x82])
      const { etag } = await store.put('org-1/a/b c+ü.txt', bytes, {
        metadata: { 'br-user': '7', 'br-agent': 'x y' },
        contentType: 'text/plain; charset=utf-8',
      })
      const found = await store.get('org-1/a/b c+ü.txt', { sizeBytesMax })
      expect(found.bytes.equals(bytes)).toBe(true)
      expect(found.metadata).toMatchObject({ 'br-user': '7', 'br-agent': 'x y' })
      expect(found.etag).toBe(etag)
      expect(etag).toMatch(/^".+"$/)
      expect(await store.head('org-1/a/b c+ü.txt')).toMatchObject({ etag, sizeBytes: bytes.length })
    })

    test('an object without bytes can be written and read', async () => {
      await store.put('org-1/empty', Buffer.alloc(0))
      expect((await store.get('org-1/empty', { sizeBytesMax })).bytes).toHaveLength(0)
    })

    test('a missing object is not found, its head is null, and its deletion succeeds', async () => {
      expect(await kindOf(store.get('org-1/none', { sizeBytesMax }))).toBe('not-found')
      expect(await store.head('org-1/none')).toBeNull()
      await store.delete('org-1/none')
    })

    test('a put replaces the whole object and its metadata', async () => {
      await store.put('org-1/r', Buffer.from('one'), { metadata: { first: '1' } })
      await store.put('org-1/r', Buffer.from('three'), { metadata: { second: '2' } })
      const found = await store.get('org-1/r', { sizeBytesMax })
      expect(found.bytes.toString()).toBe('three')
      expect(found.metadata['first']).toBeUndefined()
      await store.delete('org-1/r')
      expect(await store.head('org-1/r')).toBeNull()
    })

    test('a copy has the bytes and metadata of its source, does not change when the source changes, and is made only if its condition holds', async () => {
      const from = 'org-1/c/söurce +%.md'
      const { etag } = await store.put(from, Buffer.from('copied'), { metadata: { 'br-user': '7' }, contentType: 'text/plain; charset=utf-8' })
      await store.copy(from, 'org-1/.versions/1', { ifMatch: etag })
      await store.put(from, Buffer.from('changed'))
      const copy = await store.get('org-1/.versions/1', { sizeBytesMax })
      expect([copy.bytes.toString(), copy.metadata['br-user']]).toEqual(['copied', '7'])
      expect(await kindOf(store.copy(from, 'org-1/.versions/2', { ifMatch: etag }))).toBe('precondition-failed')
      expect(await kindOf(store.copy('org-1/none', 'org-1/.versions/2'))).toBe('not-found')
      expect(await kindOf(store.copy('org-1/none', 'org-1/.versions/2', { ifMatch: etag }))).toMatch(/^(?:not-found|precondition-failed)$/)
      expect(await store.head('org-1/.versions/2')).toBeNull()
      await store.copy(from, 'org-1/.versions/1')
      expect((await store.get('org-1/.versions/1', { sizeBytesMax })).bytes.toString()).toBe('changed')
      await store.delete(from)
      expect((await store.get('org-1/.versions/1', { sizeBytesMax })).bytes.toString()).toBe('changed')
    })

    test('a key can be the beginning of another key, and keys are case-sensitive', async () => {
      for (const key of ['org-1/n/a', 'org-1/n/a/b', 'org-1/n/A', 'org-1/n/con', 'org-1/n/x.', 'org-1/n/.y']) await store.put(key, Buffer.from(key))
      for (const key of ['org-1/n/a', 'org-1/n/a/b', 'org-1/n/A', 'org-1/n/con', 'org-1/n/x.', 'org-1/n/.y'])
        expect((await store.get(key, { sizeBytesMax })).bytes.toString()).toBe(key)
    })

    test('lists are in bytewise order, paged without gaps and limited to the prefix', async () => {
      const keys = Array.from({ length: 25 }, (_, n) => `org-2/l/${String(n).padStart(3, '0')}`)
      for (const key of [...keys, 'org-2/l', 'org-2/m', 'org-20/l/000', 'org-2/l/é']) await store.put(key, Buffer.from('12345'))
      const seen: string[] = []
      let startAfter: string | undefined
      for (let pages = 1; ; pages++) {
        const page = await store.list({ prefix: 'org-2/l/', limit: 10, ...(startAfter === undefined ? {} : { startAfter }) })
        seen.push(...page.objects.map(object => object.key))
        for (const object of page.objects) expect(object.sizeBytes).toBe(5)
        if (page.next === null) {
          expect(pages).toBe(3)
          break
        }
        startAfter = page.next
      }
      expect(seen).toEqual([...keys, 'org-2/l/é'])
      const [first] = (await store.list({ prefix: 'org-2/m' })).objects
      expect(first?.etag).toBe((await store.head('org-2/m'))?.etag)
    })

    test('a list by folder has each folder once and the keys of its level, in pages without gaps, and no folder without objects', async () => {
      const level = ['org-3/f/a-b', 'org-3/f/b', 'org-3/f/zoo']
      const below = ['a/1', 'a/2/deep/er', 'Ünï/x', 'm/x', `${'long '.repeat(40)}/x`].map(name => `org-3/f/${name}`)
      for (const key of [...level, ...below, 'org-3/f2/x', 'org-3/f/gone/x', 'org-3/f/left/deep/x']) await store.put(key, Buffer.from('x'))
      for (const key of ['org-3/f/gone/x', 'org-3/f/left/deep/x']) await store.delete(key)
      const folders = [...new Set(below.map(key => `org-3/f/${key.split('/')[2]}/`))]
      const sorted = (names: readonly string[]): string[] => [...names].sort(compareKeys)
      for (const limit of [1, 2, 1000]) {
        const seen: string[] = []
        let startAfter: string | undefined
        for (;;) {
          const page = await store.list({ prefix: 'org-3/f/', byFolder: true, limit, ...(startAfter === undefined ? {} : { startAfter }) })
          const entries = [...page.objects.map(({ key }) => key), ...(page.folders ?? [])]
          expect(entries.length).toBeLessThanOrEqual(limit)
          seen.push(...sorted(entries))
          if (page.next === null) break
          startAfter = page.next
        }
        // A folder store lists the keys of a folder whose name is too long for a file name. A list of memory joins them.
        const joined = seen.map(entry => (entry.endsWith('long /x') ? entry.slice(0, -1) : entry))
        expect(joined).toEqual(sorted([...level, ...folders]))
      }
      expect((await store.list({ prefix: 'org-3/f', byFolder: true })).folders).toEqual(['org-3/f/', 'org-3/f2/'])
      expect(await store.list({ prefix: 'org-3/none/', byFolder: true })).toEqual({ objects: [], folders: [], next: null })
    })

    test('an object above the bound of a read is refused', async () => {
      await store.put('org-1/large', Buffer.alloc(1000))
      expect(await kindOf(store.get('org-1/large', { sizeBytesMax: 999 }))).toBe('too-large')
      expect((await store.get('org-1/large', { sizeBytesMax: 1000 })).bytes).toHaveLength(1000)
    })

    test.skipIf(!kind.hasConditions)('conditions of puts and deletes are honoured', async () => {
      const key = 'org-1/cas'
      const { etag } = await store.put(key, Buffer.from('1'), { ifNoneMatch: '*' })
      expect(await kindOf(store.put(key, Buffer.from('2'), { ifNoneMatch: '*' }))).toBe('precondition-failed')
      expect(await kindOf(store.put(key, Buffer.from('2'), { ifMatch: '"00000000000000000000000000000000"' }))).toBe('precondition-failed')
      expect(await kindOf(store.put('org-1/cas-none', Buffer.from('2'), { ifMatch: etag }))).toBe('precondition-failed')
      const second = await store.put(key, Buffer.from('2'), { ifMatch: etag })
      expect(await kindOf(store.delete(key, { ifMatch: etag }))).toBe('precondition-failed')
      await store.delete(key, { ifMatch: second.etag })
      expect(await store.head(key)).toBeNull()
    })

    test.skipIf(!kind.hasConditions)('when many writers create one key concurrently, exactly one succeeds', async () => {
      const tries = await Promise.all(Array.from({ length: 16 }, (_, n) => kindOf(store.put('org-1/race', Buffer.from(String(n)), { ifNoneMatch: '*' }))))
      expect(tries.filter(kind => kind === 'no error')).toHaveLength(1)
      expect(tries.filter(kind => kind === 'precondition-failed')).toHaveLength(15)
    })

    test.skipIf(kind.hasConditions)('a store without conditions refuses conditional calls as unsupported', async () => {
      expect(await kindOf(store.put('org-1/cas', Buffer.from('1'), { ifNoneMatch: '*' }))).toBe('unsupported')
    })

    test('readers during a write see the old object or the new one, never a mixture', async () => {
      const key = 'org-1/torn'
      await store.put(key, Buffer.alloc(4000, 'a'))
      let isWriting = true
      const writes = (async () => {
        for (let n = 0; n < 15; n++) await store.put(key, Buffer.alloc(4000 + n, n % 2 === 0 ? 'b' : 'c'))
        isWriting = false
      })()
      while (isWriting) {
        // A store may replace an object in two steps and show no object in between. Any object that it shows is the old or the new one.
        const found = await store.get(key, { sizeBytesMax }).catch(error => (isStoreError(error, 'not-found') ? null : Promise.reject(error)))
        if (found !== null) expect(new Set(found.bytes).size).toBe(1)
      }
      await writes
    })
  })
}
