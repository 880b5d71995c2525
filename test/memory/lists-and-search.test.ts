import { describe, expect, test } from 'vitest'
import type { ListEntry, MemoryCall } from '../../src/memory/access/memory-call.ts'
import { filtersOf } from '../../src/memory/objects/index/list-page.ts'
import { MemorySearch, type SearchRequest } from '../../src/memory/search/search.ts'
import type { SearchMatch } from '../../src/memory/search/search-run.ts'
import { memoryOn } from './memory-on.ts'
import { agentOf, callFrom, errorCode, keyOf } from './service.ts'
import { peers } from './stores.ts'

const mb = 1024 * 1024

for (const kind of peers) {
  describe.skipIf(!kind.isInstalled)(`lists, search and append on ${kind.name}${kind.isInstalled ? '' : ' (not installed)'}`, () => {
    const on = memoryOn(kind)
    const put = (call: MemoryCall, key: string, text: string | Buffer): Promise<{ etag: string }> =>
      on.testing.memory.objects.write(call, key, typeof text === 'string' ? Buffer.from(text) : text)

    async function pages(
      call: MemoryCall,
      prefix: string,
      params: { limit: number; delimiter?: string; author?: string; since?: string },
      between = async () => {},
    ) {
      const keys: ListEntry[] = []
      const prefixes: string[] = []
      for (let cursor: string | undefined; ; ) {
        const { limit, delimiter, since, author } = params
        const page = await on.testing.memory.objects.listPage(call, prefix, { limit, delimiter, cursor, ...filtersOf(since, author) })
        expect(page.keys.length + (page.prefixes?.length ?? 0)).toBeLessThanOrEqual(params.limit)
        keys.push(...page.keys)
        prefixes.push(...(page.prefixes ?? []))
        if (page.next_cursor === null) return { keys: keys.map(({ key }) => key), prefixes }
        cursor = page.next_cursor
        await between()
      }
    }

    async function everything(call: MemoryCall, text: string, more: Partial<SearchRequest> = {}) {
      const matches: SearchMatch[] = []
      let calls = 0
      for (let cursor: string | undefined; ; ) {
        const page = await on.testing.memory.search.search(call, { text, isRegex: false, isCaseSensitive: false, prefix: '', limit: 50, cursor, ...more })
        calls++
        matches.push(...page.matches)
        if (page.next_cursor === null) return { matches, calls }
        cursor = page.next_cursor
      }
    }

    test('the pages together are the whole list in the same order, even when objects are written between two pages', async () => {
      const { call } = await on.org()
      for (const key of ['agents/a', 'agents/B', 'agents/ä', 'agents/a/1', 'agents/a/2', 'users/7/x', 'users/7/y']) await put(call, key, key)
      const all = (await on.testing.memory.objects.list(call, '')).map(({ key }) => key)
      expect(all).toEqual(['agents/B', 'agents/a', 'agents/a/1', 'agents/a/2', 'agents/ä', 'users/7/x', 'users/7/y'])
      for (const limit of [1, 2, 3, 7, 1000]) expect((await pages(call, '', { limit })).keys).toEqual(all)
      let n = 0
      const seen = await pages(call, '', { limit: 2 }, async () => {
        await put(call, `agents/A${n++}`, 'before what was seen')
        await on.testing.memory.objects.remove(call, 'users/7/y')
      })
      expect(seen.keys).toEqual(all.slice(0, -1))
    })

    test('with a delimiter, keys below it are listed as one common prefix, also over several pages', async () => {
      const { call } = await on.org()
      for (const key of ['agents/a/1', 'agents/a/2/deep', 'agents/b', 'agents/c/1', 'agents/c/2', 'agents/d']) await put(call, key, '')
      for (const limit of [1, 2, 50]) {
        expect(await pages(call, 'agents/', { limit, delimiter: '/' })).toEqual({ keys: ['agents/b', 'agents/d'], prefixes: ['agents/a/', 'agents/c/'] })
        expect(await pages(call, '', { limit, delimiter: '/' })).toEqual({ keys: [], prefixes: ['agents/'] })
      }
      expect(await pages(call, 'agents/c', { limit: 5, delimiter: '/' })).toEqual({ keys: [], prefixes: ['agents/c/'] })
    })

    test('a level of a tree contains its folders and its keys, whether or not a gateway wrote them, and no name that is not served', async () => {
      const { call, orgId } = await on.org()
      for (const key of ['agents/z/1', 'agents/a/1', 'agents/a/2', 'agents/b', 'users/7/deep/1']) await put(call, key, '')
      const { store } = await on.testing.memory.configured(orgId)
      const outside = ['agents/outside/1', 'agents/by-hand', 'agents/bad\\name/1', 'agents/outside//1', 'elsewhere/1']
      for (const key of outside) await store.put(`org-${orgId}/${key}`, Buffer.from('x'))
      for (const limit of [1, 2, 50]) {
        expect(await pages(call, 'agents/', { limit, delimiter: '/' })).toEqual({
          keys: ['agents/b', 'agents/by-hand'],
          prefixes: ['agents/a/', 'agents/outside/', 'agents/z/'],
        })
        expect(await pages(call, '', { limit, delimiter: '/' })).toEqual({ keys: [], prefixes: ['agents/', 'users/'] })
        expect(await pages(call, 'users/', { limit, delimiter: '/' })).toEqual({ keys: [], prefixes: ['users/7/'] })
      }
      await on.testing.memory.objects.remove(call, 'agents/z/1')
      expect((await pages(call, 'agents/', { limit: 9, delimiter: '/' })).prefixes).toEqual(['agents/a/', 'agents/outside/'])
    })

    test('list filters select the writes of one author, and the writes since a time', async () => {
      const { orgId, call } = await on.org()
      await put(call, 'agents/1', 'by a user')
      await put(callFrom(agentOf(orgId)), 'agents/2', 'by an agent')
      await put(callFrom(keyOf(orgId, { userId: null }), '9'), 'agents/3', 'by a key that calls itself 9')
      const since = new Date(on.testing.clock.nowMs() + 1000).toISOString()
      on.testing.clock.advance(2000)
      await put(call, 'agents/4', 'later')
      expect((await pages(call, '', { limit: 2, author: 'agent:9' })).keys).toEqual(['agents/2'])
      expect((await pages(call, '', { limit: 2, author: 'user:7' })).keys).toEqual(['agents/1', 'agents/2', 'agents/4'])
      expect((await pages(call, '', { limit: 2, author: 'user:key-70' })).keys).toEqual(['agents/3'])
      expect((await pages(call, '', { limit: 2, since })).keys).toEqual(['agents/4'])
      for (const wrong of [
        { author: 'nobody', limit: 1 },
        { author: 'agent:key-1', limit: 1 },
        { since: 'yesterday', limit: 1 },
      ])
        expect(await errorCode(() => pages(call, '', wrong))).toBe('bad_request')
      expect(await errorCode(() => on.testing.memory.objects.listPage(call, '', { limit: 1, cursor: 'x' }))).toBe('bad_request')
      expect(await errorCode(() => pages(call, 'users/8/', { limit: 1 }))).toBe('forbidden')
    })

    test('a search finds lines with their place, text and author, and skips objects that are not text', async () => {
      const { orgId, call } = await on.org()
      await put(call, 'agents/a.md', 'nothing\r\nThe Needle is here\nand needles\n')
      await put(callFrom(agentOf(orgId)), 'agents/b.md', `${'x'.repeat(9000)} needle ${'y'.repeat(9000)}`)
      await put(call, 'agents/image', Buffer.concat([Buffer.from('needle'), Buffer.from([0, 1, 2])]))
      await put(call, 'agents/latin', Buffer.from([0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0xe9]))
      await put(call, 'users/7/c', 'ein Nädelchen')
      const { matches } = await everything(call, 'needle')
      expect(matches.map(({ key, line, author }) => ({ key, line, author }))).toEqual([
        { key: 'agents/a.md', line: 2, author: { user: '7' } },
        { key: 'agents/a.md', line: 3, author: { user: '7' } },
        { key: 'agents/b.md', line: 1, author: { user: '7', agent: '9', verified: true } },
      ])
      expect(matches[0]?.snippet).toBe('The Needle is here')
      expect(matches[2]?.snippet).toContain(' needle ')
      expect(matches[2]?.snippet.length).toBeLessThanOrEqual(240)
      const found = await on.testing.memory.objects.read(call, 'agents/b.md')
      expect(matches[2]).toMatchObject({ etag: found.etag, modified: found.modified.toISOString() })
      expect((await everything(call, 'needle', { isCaseSensitive: true })).matches.map(({ line }) => line)).toEqual([3, 1])
      expect((await everything(call, 'N[äa]d|n.{2}dles$', { isRegex: true })).matches.map(({ key }) => key)).toEqual(['agents/a.md', 'users/7/c'])
      expect((await everything(call, 'needle', { prefix: 'users/7/' })).matches).toEqual([])
      expect(await errorCode(() => everything(call, 'needle', { prefix: 'users/8/' }))).toBe('forbidden')
    })

    test('the cursor of a search continues at the exact line, even when other objects are written and deleted meanwhile', async () => {
      const { call } = await on.org()
      for (const key of ['agents/1', 'agents/2', 'agents/3']) await put(call, key, 'hit 1\nmiss\nhit 3\nhit 4\nmiss\n')
      const expected = ['agents/1', 'agents/2', 'agents/3'].flatMap(key => [1, 3, 4].map(line => `${key}:${line}`))
      for (const limit of [1, 2, 4, 50]) {
        const { matches } = await everything(call, 'hit', { limit })
        expect(matches.map(({ key, line }) => `${key}:${line}`)).toEqual(expected)
      }
      const first = await on.testing.memory.search.search(call, { text: 'hit', isRegex: false, isCaseSensitive: false, prefix: '', limit: 2 })
      await put(call, 'agents/0', 'hit before')
      await on.testing.memory.objects.remove(call, 'agents/2')
      await put(call, 'agents/1', 'new words\nhit again\n')
      const rest = await on.testing.memory.search.search(call, {
        text: 'hit',
        isRegex: false,
        isCaseSensitive: false,
        prefix: '',
        limit: 50,
        cursor: first.next_cursor ?? '',
      })
      // An object that was written again is searched from its beginning.
      expect(rest.matches.map(({ key, line }) => `${key}:${line}`)).toEqual(['agents/1:2', 'agents/3:1', 'agents/3:3', 'agents/3:4'])
    })

    test('a search call that reaches its time limit stops, even in the middle of a long line, and the next call continues there', async () => {
      const { call } = await on.org()
      await put(call, 'agents/lines', Array.from({ length: 40 }, (_, n) => (n % 4 === 0 ? `hit ${n}` : 'miss')).join('\n'))
      await put(call, 'agents/long', `${'x'.repeat(30_000)}hit${'y'.repeat(20_000)}\nhit`)
      let nowMs = 0
      const hurried = new MemorySearch({
        clock: {
          ...on.testing.clock,
          monotonicMs() {
            nowMs += 500
            return nowMs
          },
        },
        objects: on.testing.memory.objects,
        objectBytesMax: mb,
        configured: orgId => on.testing.memory.configured(orgId),
        founderOf: String,
      })
      const found: string[] = []
      const cursors = new Set<string>()
      for (let cursor: string | undefined; ; ) {
        const page = await hurried.search(call, { text: 'h[i]t', isRegex: true, isCaseSensitive: true, prefix: '', limit: 50, cursor })
        found.push(...page.matches.map(({ key, line }) => `${key}:${line}`))
        if (page.next_cursor === null) break
        cursor = page.next_cursor
        expect(cursors.has(cursor)).toBe(false)
        cursors.add(cursor)
      }
      expect(found).toEqual([...Array.from({ length: 10 }, (_, n) => `agents/lines:${4 * n + 1}`), 'agents/long:1', 'agents/long:2'])
      expect(cursors.size).toBeGreaterThan(10)
    })

    test('the number of concurrent searches of a process is bounded', async () => {
      const { call } = await on.org()
      await put(call, 'agents/a', 'text')
      const codes = await Promise.all([1, 2, 3, 4, 5].map(() => errorCode(() => everything(call, 'text'))))
      expect(codes.sort()).toEqual(['ok', 'ok', 'ok', 'ok', 'rate_limit_exceeded'])
      expect((await everything(call, 'text')).matches).toHaveLength(1)
    })

    test('every append makes a separate object, so no writer loses an entry and nobody can overwrite one', async () => {
      const { orgId, call } = await on.org()
      const { appends, objects } = on.testing.memory
      const callers = [call, callFrom(agentOf(orgId)), callFrom(keyOf(orgId, { userId: null }), 'night shift!')]
      const count = kind.hasConditions ? 30 : 9
      const made = await Promise.all(Array.from({ length: count }, (_, n) => appends.append(callers[n % 3] ?? call, 'agents/log/', `entry ${n}`)))
      expect(new Set(made.map(({ key }) => key)).size).toBe(count)
      const day = new Date(on.testing.clock.nowMs()).toISOString().slice(0, 10)
      for (const [n, who] of ['user-7', 'agent-9', 'label-night_shift_'].entries())
        expect(made[n]?.key).toMatch(new RegExp(`^agents/log/${day}/[0-9A-HJKMNP-TV-Z]{26}-${who}\\.md$`))
      const texts = await Promise.all(
        made.map(async ({ key, etag }) => {
          const read = await objects.read(call, key)
          expect(read.etag).toBe(etag)
          return read.bytes.toString()
        }),
      )
      expect(texts).toEqual(Array.from({ length: count }, (_, n) => `entry ${n}`))
      const { key = '' } = made[0] ?? {}
      expect(await errorCode(() => put(call, key, 'changed'))).toBe('forbidden')
      const { versions } = await on.testing.memory.history.list(call, key, { limit: 5 })
      expect(versions.map(({ how }) => how)).toEqual(['append'])
      await on.testing.memory.objects.remove(call, key)
      const [, kept] = (await on.testing.memory.history.list(call, key, { limit: 5 })).versions
      await on.testing.memory.history.restore(call, key, kept?.version ?? '', {})
      expect((await objects.read(call, key)).bytes.toString()).toBe('entry 0')
      for (const [path, content, code] of [
        ['org/records', 'x', 'forbidden'],
        ['users/8', 'x', 'forbidden'],
        ['../x', 'x', 'bad_memory_key'],
        ['', 'x', 'bad_memory_key'],
        ['agents/log', '', 'bad_request'],
      ] as const)
        expect([path, await errorCode(() => appends.append(call, path, content))]).toEqual([path, code])
    })
  })
}
