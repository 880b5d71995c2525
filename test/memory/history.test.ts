import { describe, expect, test } from 'vitest'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import { versionKey } from '../../src/memory/objects/version-keeper.ts'
import { statement } from '../../src/platform/db/db.ts'
import { memoryOn } from './memory-on.ts'
import { agentOf, callFrom, errorCode, keyOf } from './service.ts'
import { peers } from './stores.ts'

const mb = 1024 * 1024
const dayMs = 86_400_000
const addOrg = statement<[orgId: number]>(
  'test.add_org',
  `insert into orgs (id, name, kind, created_at) values ($1::int, 'Journal ' || $1::text, 'personal', now())`,
)
const addWorkspace = statement<[orgId: number], { id: number }>(
  'test.add_workspace',
  `insert into workspaces (org_id, name, created_at) values ($1::int, 'Crew', now()) returning id`,
)
const keepIntent = statement<[orgId: number, key: string, writeId: string]>(
  'test.keep_intent',
  `insert into memory_intents (org_id, key, kind, write_id, generation, sha256, size_bytes, user_id, key_id, started_at, expires_at)
   values ($1::int, $2::text, 'put', $3::uuid, 1, 'x', 5, 7, 70, now(), now())`,
)
const historyBytes = statement<[orgId: number], { bytes: bigint; rows: number }>(
  'test.history_bytes',
  `select u.history_bytes as bytes, (select count(*)::int from memory_versions v where v.org_id = u.org_id) as rows from memory_usage u where u.org_id = $1::int`,
)

for (const kind of peers) {
  describe.skipIf(!kind.isInstalled)(`history of memory on ${kind.name}${kind.isInstalled ? '' : ' (not installed)'}`, () => {
    const on = memoryOn(kind)
    const put = (call: MemoryCall, key: string, text: string): Promise<{ etag: string }> => on.testing.memory.objects.write(call, key, Buffer.from(text))
    const versions = async (call: MemoryCall, key: string) => (await on.testing.memory.history.list(call, key, { limit: 100 })).versions
    const textOf = async (call: MemoryCall, key: string, version: string | null | undefined) =>
      (await on.testing.memory.history.read(call, key, version ?? '')).bytes.toString()
    const storeOf = async (orgId: number) => (await on.testing.memory.configured(orgId)).store
    const kept = async (orgId: number): Promise<string[]> =>
      (await (await storeOf(orgId)).list({ prefix: `org-${orgId}/.versions/` })).objects.map(({ key }) => key)

    test('the history has every version of a key with its author, its time and its bytes, newest first', async () => {
      const { orgId, call } = await on.org()
      const first = await put(call, 'agents/plan.md', 'one')
      await on.testing.memory.objects.write(callFrom(agentOf(orgId)), 'agents/plan.md', Buffer.from('two!'))
      await put(call, 'agents/plan.md', 'three')
      const found = await versions(call, 'agents/plan.md')
      expect(found.map(({ how, size, author, current }) => ({ how, size, author, current }))).toEqual([
        { how: 'put', size: 5, author: { user: '7' }, current: true },
        { how: 'put', size: 4, author: { user: '7', agent: '9', verified: true }, current: false },
        { how: 'put', size: 3, author: { user: '7' }, current: false },
      ])
      expect(found[2]).toMatchObject({ etag: first.etag, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
      expect(await Promise.all(found.map(({ version }) => textOf(call, 'agents/plan.md', version)))).toEqual(['three', 'two!', 'one'])
      const second = await on.testing.memory.history.read(call, 'agents/plan.md', found[1]?.version ?? '')
      expect(second.metaHeaders).toMatchObject({ 'x-br-meta-user': '7', 'x-br-meta-agent': '9', 'x-br-meta-ts': found[1]?.modified })
      expect((await on.testing.usage(orgId)).usedBytes).toBe(5n)
      expect(await on.db.one(historyBytes, orgId)).toEqual({ bytes: 7n, rows: 2 })
    })

    test('a deletion keeps the deleted version and adds a mark of the deletion, and a restore writes that version as a new one', async () => {
      const { orgId, call } = await on.org()
      await put(call, 'agents/gone', 'dear')
      await on.testing.memory.objects.remove(callFrom(agentOf(orgId)), 'agents/gone')
      await on.testing.memory.objects.remove(call, 'agents/gone')
      const found = await versions(call, 'agents/gone')
      expect(found.map(({ how, author, current, size }) => ({ how, author, current, size }))).toEqual([
        { how: 'delete', author: { user: '7', agent: '9', verified: true }, current: false, size: 0 },
        { how: 'put', author: { user: '7' }, current: false, size: 4 },
      ])
      expect(await errorCode(() => on.testing.memory.history.read(call, 'agents/gone', found[0]?.version ?? ''))).toBe('not_found')
      const from = found[1]?.version ?? ''
      const { etag } = await on.testing.memory.history.restore(call, 'agents/gone', from, {})
      const read = await on.testing.memory.objects.read(call, 'agents/gone')
      expect([read.bytes.toString(), read.etag, read.metaHeaders['x-br-meta-restored-from']]).toEqual(['dear', etag, from])
      expect((await versions(call, 'agents/gone')).map(({ how }) => how)).toEqual(['restore', 'delete', 'put'])
    })

    test('a restore is refused when its condition fails or the quota is exceeded, and then changes nothing', async () => {
      const { orgId, call } = await on.org({ quota_mb: 1 })
      await put(call, 'agents/a', 'x'.repeat(mb - 10))
      await put(call, 'agents/a', 'small')
      await put(call, 'agents/b', 'y'.repeat(mb - 100))
      const old = (await versions(call, 'agents/a'))[1]?.version ?? ''
      expect(await errorCode(() => on.testing.memory.history.restore(call, 'agents/a', old, {}))).toBe('memory_quota_exceeded')
      expect(await errorCode(() => on.testing.memory.history.restore(call, 'agents/a', old, { ifMatch: '"other"' }))).not.toBe('ok')
      await on.testing.memory.objects.remove(call, 'agents/b')
      expect(await errorCode(() => on.testing.memory.history.restore(call, 'agents/a', old, { ifMatch: '"other"' }))).toBe('memory_conflict')
      expect(await versions(call, 'agents/a')).toHaveLength(2)
      await on.testing.memory.history.restore(call, 'agents/a', old, {})
      expect((await on.testing.usage(orgId)).usedBytes).toBe(BigInt(mb - 10))
    })

    test('an object that was changed directly in the bucket is kept as a version without an author', async () => {
      const { orgId, call } = await on.org()
      const store = await storeOf(orgId)
      await put(call, 'agents/x', 'ours')
      await store.put(`org-${orgId}/agents/x`, Buffer.from('from outside'))
      await put(call, 'agents/x', 'ours again')
      await store.put(`org-${orgId}/agents/unknown`, Buffer.from('never seen'))
      await on.testing.memory.objects.remove(call, 'agents/unknown')
      const [now, outside] = await versions(call, 'agents/x')
      expect([now?.author, outside]).toEqual([{ user: '7' }, expect.objectContaining({ author: null, sha256: null, how: 'put', size: 12 })])
      expect(await textOf(call, 'agents/x', outside?.version)).toBe('from outside')
      const [mark, unknown] = await versions(call, 'agents/unknown')
      expect([mark?.how, unknown?.author, await textOf(call, 'agents/unknown', unknown?.version)]).toEqual(['delete', null, 'never seen'])
    })

    test('the first write of a key makes no copy, a refused write leaves no copy, and versions are neither listed nor readable as objects', async () => {
      const { orgId, call } = await on.org()
      await put(call, 'agents/n', '1')
      expect(await kept(orgId)).toEqual([])
      expect(await errorCode(() => on.testing.memory.objects.write(call, 'agents/n', Buffer.from('2'), { ifNoneMatch: '*' }))).toBe('memory_conflict')
      expect(await errorCode(() => on.testing.memory.objects.write(call, 'agents/n', Buffer.from('2'), { ifMatch: '"other"' }))).toBe('memory_conflict')
      expect(await kept(orgId)).toEqual([])
      await put(call, 'agents/n', '2')
      const [copy = ''] = await kept(orgId)
      expect((await on.testing.memory.objects.list(call, '')).map(({ key }) => key)).toEqual(['agents/n'])
      expect(await errorCode(() => on.testing.memory.objects.read(call, copy.slice(`org-${orgId}/`.length)))).toBe('forbidden')
    })

    test('the oldest versions are removed when there are too many, when they are too old and when they exceed the quota, also from the store', async () => {
      const { orgId, call } = await on.org({ history_versions: 3, history_days: 5, quota_mb: 1 })
      for (let n = 0; n < 6; n++) await put(call, 'agents/many', `version ${n}`)
      expect(await Promise.all((await versions(call, 'agents/many')).map(({ version }) => textOf(call, 'agents/many', version)))).toEqual([
        'version 5',
        'version 4',
        'version 3',
        'version 2',
      ])
      await on.testing.memory.sweep(on.testing.clock.nowMs())
      expect(await kept(orgId)).toHaveLength(3)
      for (const fill of ['a', 'b', 'c']) await put(call, 'agents/large', fill.repeat(600_000))
      await on.testing.memory.sweep(on.testing.clock.nowMs())
      expect((await versions(call, 'agents/large')).map(({ current }) => current)).toEqual([true, false])
      expect(await versions(call, 'agents/many')).toHaveLength(1)
      expect((await on.db.one(historyBytes, orgId)).bytes).toBe(600_000n)
      on.testing.clock.advance(6 * dayMs)
      await on.testing.memory.sweep(on.testing.clock.nowMs())
      expect(await versions(call, 'agents/large')).toHaveLength(1)
      expect([await kept(orgId), await on.db.one(historyBytes, orgId)]).toEqual([[], { bytes: 0n, rows: 0 }])
    })

    test('versions of journal entries end after journal_ttl_days, even when other versions are kept for longer', async () => {
      const { orgId } = await on.org({ journal_ttl_days: 2, history_days: 300 })
      await on.db.exec(addOrg, orgId)
      const { id: workspaceId } = await on.db.one(addWorkspace, orgId)
      const call = callFrom(keyOf(orgId, { userId: null, role: null, workspaceId }))
      for (const key of [`workspaces/${workspaceId}/journal/note`, 'agents/note']) for (const text of ['one', 'two']) await put(call, key, text)
      expect(await kept(orgId)).toHaveLength(2)
      on.testing.clock.advance(3 * dayMs)
      expect(await errorCode(() => versions(call, `workspaces/${workspaceId}/journal/note`))).toBe('not_found')
      await on.testing.memory.sweep(on.testing.clock.nowMs())
      expect(await kept(orgId)).toHaveLength(1)
      expect(await versions(call, 'agents/note')).toHaveLength(2)
    })

    test('a store with history_versions 0 keeps no versions', async () => {
      const { orgId, call } = await on.org({ history_versions: 0 })
      await put(call, 'agents/plain', '1')
      await put(call, 'agents/plain', '2')
      await on.testing.memory.objects.remove(call, 'agents/plain')
      expect(await kept(orgId)).toEqual([])
      expect(await errorCode(() => versions(call, 'agents/plain'))).toBe('not_found')
    })

    test('a deletion can also erase the history', async () => {
      const { orgId, call } = await on.org()
      for (const text of ['secret', 'secret 2']) await put(call, 'agents/personal', text)
      const old = (await versions(call, 'agents/personal'))[1]?.version ?? ''
      await on.testing.memory.history.erase(call, 'agents/personal', {})
      expect(await errorCode(() => versions(call, 'agents/personal'))).toBe('not_found')
      expect(await errorCode(() => on.testing.memory.history.read(call, 'agents/personal', old))).toBe('not_found')
      expect([await kept(orgId), await on.db.one(historyBytes, orgId)]).toEqual([[], { bytes: 0n, rows: 0 }])
    })

    test('a write whose process died after the copy is settled with its version if the store has it, and released otherwise', async () => {
      const { orgId, call } = await on.org()
      const store = await storeOf(orgId)
      const ids = ['01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000002'] as const
      for (const [n, writeId] of ids.entries()) {
        const key = `agents/crash-${n}`
        await put(call, key, 'old')
        await on.db.exec(keepIntent, orgId, key, writeId)
        await store.copy(`org-${orgId}/${key}`, versionKey(orgId, writeId))
        if (n === 1) await store.put(`org-${orgId}/${key}`, Buffer.from('fresh'), { metadata: { 'br-write-id': writeId } })
      }
      await on.testing.memory.sweep(on.testing.clock.nowMs() + 1000)
      expect(await versions(call, 'agents/crash-0')).toHaveLength(1)
      const [now, before] = await versions(call, 'agents/crash-1')
      expect([now?.size, before?.author]).toEqual([5, { user: '7' }])
      expect(await textOf(call, 'agents/crash-1', before?.version)).toBe('old')
      expect(await kept(orgId)).toEqual([versionKey(orgId, ids[1])])
    })

    test('pages of a history have no gaps, and a cursor of another list is refused', async () => {
      const { call } = await on.org()
      for (let n = 0; n < 7; n++) await put(call, 'agents/paged', String(n))
      const seen: string[] = []
      for (let cursor: string | undefined, pages = 0; pages < 10; pages++) {
        const page = await on.testing.memory.history.list(call, 'agents/paged', { limit: 2, cursor })
        for (const { version } of page.versions) seen.push(await textOf(call, 'agents/paged', version))
        if (page.next_cursor === null) break
        cursor = page.next_cursor
        // The cursor is for this key only, and does not show how much others write.
        expect(Buffer.from(cursor, 'base64url').toString()).not.toMatch(/^h:\d+$/)
        expect(await errorCode(() => on.testing.memory.history.list(call, 'agents/other', { limit: 2, cursor }))).toBe('bad_request')
      }
      expect(seen).toEqual(['6', '5', '4', '3', '2', '1', '0'])
      expect(await errorCode(() => on.testing.memory.history.list(call, 'agents/paged', { limit: 2, cursor: 'nonsense' }))).toBe('bad_request')
    })

    test('the history contains every write of fifty concurrent writers without conditions', async () => {
      const { orgId, call } = await on.org({ history_versions: 100 })
      const count = kind.hasConditions ? 50 : 8
      await Promise.all(Array.from({ length: count }, (_, n) => put(call, 'agents/busy', `writer ${n}`)))
      const found = await versions(call, 'agents/busy')
      const texts = await Promise.all(found.map(({ version }) => textOf(call, 'agents/busy', version)))
      expect(texts.sort()).toEqual(Array.from({ length: count }, (_, n) => `writer ${n}`).sort())
      expect(await kept(orgId)).toHaveLength(count - 1)
    }, 180_000)
  })
}
