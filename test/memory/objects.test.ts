import { describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { toGatewayError } from '../../src/platform/errors.ts'
import { memoryOn } from './memory-on.ts'
import { agentOf, callFrom, errorCode, keyOf } from './service.ts'
import { peers } from './stores.ts'

const mb = 1024 * 1024
const addOrg = statement<[orgId: number]>(
  'test.objects_add_org',
  `insert into orgs (id, name, kind, created_at) values ($1::int, 'Journal ' || $1::text, 'personal', now())`,
)
const addWorkspace = statement<[orgId: number], { id: number }>(
  'test.objects_add_workspace',
  `insert into workspaces (org_id, name, created_at) values ($1::int, 'Crew', now()) returning id`,
)

for (const kind of peers) {
  describe.skipIf(!kind.isInstalled)(`memory objects on ${kind.name}${kind.isInstalled ? '' : ' (not installed)'}`, () => {
    const on = memoryOn(kind, { agentByLabel: (_orgId, label) => (label === 'gone' ? { status: 'revoked' } : null) })

    test('a written object is read back with its author, and listed', async () => {
      const { orgId, call } = await on.org()
      const { objects } = on.testing.memory
      const { etag } = await objects.write(call, 'users/7/a.md', Buffer.from('hällo'))
      const found = await objects.read(call, 'users/7/a.md')
      expect(found.bytes.toString()).toBe('hällo')
      expect(found.etag).toBe(etag)
      expect(found.metaHeaders).toMatchObject({ 'x-br-meta-user': '7' })
      expect(found.metaHeaders['x-br-meta-agent']).toBeUndefined()
      await objects.write(callFrom(agentOf(orgId), 'ignored'), 'agents/b.md', Buffer.from('b'))
      expect((await objects.read(call, 'agents/b.md')).metaHeaders).toMatchObject({ 'x-br-meta-agent': '9', 'x-br-meta-agent-name': 'triage %C3%A9' })
      await objects.write(callFrom(keyOf(orgId, { userId: null, role: null }), 'planner'), 'agents/c.md', Buffer.from('c'))
      const listed = await objects.list(call, '')
      expect(listed.map(({ key, size, author }) => ({ key, size, author }))).toEqual([
        { key: 'agents/b.md', size: 1, author: { user: '7', agent: '9', verified: true } },
        { key: 'agents/c.md', size: 1, author: { user: 'key-70', agent: '"planner"', verified: false } },
        { key: 'users/7/a.md', size: 6, author: { user: '7' } },
      ])
      expect(listed[2]?.etag).toBe(etag)
    })

    test('the bytes used follow writes, overwrites and deletions exactly, and a repeated deletion frees nothing twice', async () => {
      const { orgId, call } = await on.org()
      const { objects } = on.testing.memory
      await objects.write(call, 'agents/x', Buffer.alloc(100))
      await objects.write(call, 'agents/y', Buffer.alloc(50))
      expect((await on.testing.usage(orgId)).usedBytes).toBe(150n)
      await objects.write(call, 'agents/x', Buffer.alloc(30))
      expect((await on.testing.usage(orgId)).usedBytes).toBe(80n)
      await objects.remove(call, 'agents/x')
      await objects.remove(call, 'agents/x')
      expect(await on.testing.usage(orgId)).toEqual({ usedBytes: 50n, reservedBytes: 0n, objects: 1n })
      expect(await errorCode(() => objects.read(call, 'agents/x'))).toBe('not_found')
    })

    test('the quota is exact: the last byte fits, and one more byte is refused and not stored', async () => {
      const { orgId, call } = await on.org({ quota_mb: 1 })
      const { objects } = on.testing.memory
      await objects.write(call, 'agents/full', Buffer.alloc(mb))
      expect(await errorCode(() => objects.write(call, 'agents/more', Buffer.alloc(1)))).toBe('memory_quota_exceeded')
      expect(await errorCode(() => objects.read(call, 'agents/more'))).toBe('not_found')
      expect(await on.testing.usage(orgId)).toEqual({ usedBytes: BigInt(mb), reservedBytes: 0n, objects: 1n })
      await objects.write(call, 'agents/full', Buffer.alloc(mb - 1))
      await objects.write(call, 'agents/more', Buffer.alloc(1))
    })

    test('concurrent writers never exceed the quota together', async () => {
      const { orgId, call } = await on.org({ quota_mb: 1 })
      const outcomes = await Promise.all(
        Array.from({ length: 16 }, (_, n) => errorCode(() => on.testing.memory.objects.write(call, `agents/q${n}`, Buffer.alloc(mb / 8)))),
      )
      expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(8)
      expect(outcomes.filter(outcome => outcome === 'memory_quota_exceeded')).toHaveLength(8)
      expect(await on.testing.usage(orgId)).toEqual({ usedBytes: BigInt(mb), reservedBytes: 0n, objects: 8n })
    })

    test('a write whose condition fails changes nothing, and its error describes the current object', async () => {
      const { orgId, call } = await on.org()
      const { objects } = on.testing.memory
      const first = await objects.write(call, 'agents/c', Buffer.from('1'), { ifNoneMatch: '*' })
      const second = await objects.write(callFrom(agentOf(orgId)), 'agents/c', Buffer.from('22'), { ifMatch: first.etag })
      const refusals = [{ ifMatch: first.etag }, { ifNoneMatch: '*' }, { ifMatch: `W/${second.etag}` }]
      for (const conditions of refusals) {
        const error = toGatewayError(await objects.write(call, 'agents/c', Buffer.from('333'), conditions).catch((thrown: unknown) => thrown))
        expect(error.errorName).toBe('memory_conflict')
        expect(error.toBody()).toMatchObject({
          current_etag: second.etag,
          author: { user: '7', agent: '9', verified: true },
          modified: expect.stringMatching(/^20/),
        })
      }
      expect(await errorCode(() => objects.write(call, 'agents/none', Buffer.from('1'), { ifMatch: first.etag }))).toBe('memory_conflict')
      expect(await errorCode(() => objects.write(call, 'agents/none', Buffer.from('1'), { ifMatch: '*' }))).toBe('memory_conflict')
      expect(await errorCode(() => objects.remove(call, 'agents/c', { ifMatch: first.etag }))).toBe('memory_conflict')
      expect(await errorCode(() => objects.write(call, 'agents/c', Buffer.from('1'), { ifMatch: 'a b' }))).toBe('bad_request')
      expect((await objects.read(call, 'agents/c')).bytes.toString()).toBe('22')
      expect(await on.testing.usage(orgId)).toEqual({ usedBytes: 2n, reservedBytes: 0n, objects: 1n })
      await objects.remove(call, 'agents/c', { ifMatch: second.etag })
      expect((await on.testing.usage(orgId)).usedBytes).toBe(0n)
    })

    test('fifty compare-and-swap writers of one object lose no update', async () => {
      const { orgId, call } = await on.org({ history_versions: 0 })
      const { objects } = on.testing.memory
      await objects.write(call, 'agents/counter', Buffer.from(''))
      await Promise.all(
        Array.from({ length: 50 }, async (_, n) => {
          for (let tries = 0; tries < 500; tries++) {
            const found = await objects.read(call, 'agents/counter')
            const code = await errorCode(() => objects.write(call, 'agents/counter', Buffer.from(`${found.bytes.toString()}${n}\n`), { ifMatch: found.etag }))
            if (code === 'ok') return
            expect(['memory_conflict', 'memory_busy']).toContain(code)
          }
          throw new Error('a writer never got its turn')
        }),
      )
      const lines = (await objects.read(call, 'agents/counter')).bytes.toString().trim().split('\n').map(Number)
      expect(lines.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n))
      expect(await on.testing.usage(orgId)).toEqual({ usedBytes: BigInt(140), reservedBytes: 0n, objects: 1n })
    }, 120_000)

    test('an organisation does not see the objects of another one in the same bucket', async () => {
      const [one, two] = [await on.org(), await on.org()]
      await on.testing.memory.objects.write(one.call, 'agents/secret', Buffer.from('1'))
      expect(await errorCode(() => on.testing.memory.objects.read(two.call, 'agents/secret'))).toBe('not_found')
      expect(await on.testing.memory.objects.list(two.call, '')).toEqual([])
      expect(await errorCode(() => on.testing.memory.objects.read(two.call, `../org-${one.orgId}/agents/secret`))).toBe('bad_memory_key')
    })

    test('the scope is checked before existence, and the label of a revoked agent is refused', async () => {
      const { call } = await on.org()
      const { objects } = on.testing.memory
      for (const key of ['users/8/a', 'workspaces/1/journal/a', 'shared/s/a', 'root']) {
        expect(await errorCode(() => objects.read(call, key))).toBe('forbidden')
        expect(await errorCode(() => objects.write(call, key, Buffer.from('1')))).toBe('forbidden')
        expect(await errorCode(() => objects.remove(call, key))).toBe('forbidden')
      }
      expect(await errorCode(() => objects.write(call, 'org/records/a', Buffer.from('1')))).toBe('forbidden')
      expect(await errorCode(() => objects.read(call, 'org/records/a'))).toBe('not_found')
      expect(await errorCode(() => objects.write({ ...call, agentLabel: 'gone' }, 'agents/a', Buffer.from('1')))).toBe('agent_revoked_label')
    })

    test('an expired journal entry is neither listed nor read', async () => {
      const { orgId } = await on.org()
      await on.db.exec(addOrg, orgId)
      const { id: workspaceId } = await on.db.one(addWorkspace, orgId)
      const entry = `workspaces/${workspaceId}/journal/a`
      const call = callFrom(keyOf(orgId, { userId: null, role: null, workspaceId }))
      const { objects } = on.testing.memory
      await objects.write(call, entry, Buffer.from('1'))
      await objects.write(call, 'users/key-70/a', Buffer.from('1'))
      expect((await objects.list(call, '')).map(({ key }) => key)).toEqual(['users/key-70/a', entry])
      on.testing.clock.advance(30 * 86_400_000 + 60_000)
      expect((await objects.list(call, '')).map(({ key }) => key)).toEqual(['users/key-70/a'])
      expect(await errorCode(() => objects.read(call, entry))).toBe('not_found')
    })
  })
}
