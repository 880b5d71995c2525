import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { keyFor, type Person, personOf, robotKey, workspaceOf } from '../memory/rights-people.ts'
import { mcpClients, type ToolReply } from './mcp-clients.ts'

const readers = ['memory_history', 'memory_list', 'memory_paths', 'memory_read', 'memory_search', 'memory_shares']
const writers = ['memory_append', 'memory_delete', 'memory_edit', 'memory_restore', 'memory_write']

let app: TestApp
let anna: Person
let ben: Person
let workspaceId: number
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on' } })
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
  anna = await personOf(app, 'member')
  ben = await personOf(app, 'member')
  workspaceId = await workspaceOf(app, 'Team A', [anna.userId])
})
afterAll(() => app.stop())
afterEach(() => closeAll())

const { eras, closeAll } = mcpClients(() => app)
const refusal = (reply: ToolReply) => [reply.isError, reply.data.code, reply.data.status]
const memoryNames = (names: string[]) => names.filter(tool => tool.startsWith('memory_'))

/** Returns an agent token with only these scopes. */
async function tokenOf(name: string, scope: string): Promise<string> {
  const agent = await app.call('POST', '/v1/me/agents', { name })
  return (await app.call('POST', `/v1/me/agents/${agent.json.id}/token`, { scope })).json.access_token
}

describe.each(eras)('rights of memory tools in the %s', (name, connect) => {
  const era = name.split(' ')[0]

  test('MCP-06 each credential sees the tools that it may use, and calling another tool returns the reason', async () => {
    const list = async (token: string) => memoryNames(await (await connect(token)).names())
    expect(await list(app.key)).toEqual([...readers, ...writers, 'memory_promote', 'memory_share'].sort())
    expect(await list(anna.key)).toEqual([...readers, ...writers, 'memory_share'].sort())
    const [inference, robot, agent] = [
      await keyFor(app, anna.cookie, { scope: 'inference' }),
      (await robotKey(app, null)).key,
      (await app.newAgent(`lister ${era}`)).token,
    ]
    for (const token of [inference, robot, agent]) expect(await list(token)).toEqual([...readers, ...writers].sort())
    const readerToken = await tokenOf(`reader ${era}`, 'memory:read')
    expect(await list(readerToken)).toEqual(readers)
    expect(await list(await tokenOf(`chatter ${era}`, 'inference'))).toEqual([])

    const share = { action: 'create', space: `hidden-${era}` }
    for (const token of [inference, robot, agent]) {
      const client = await connect(token)
      expect(refusal(await client.call('memory_share', share))).toEqual([true, 'forbidden', 403])
      expect(refusal(await client.call('memory_promote', { name: 'x', content: 'x' }))).toEqual([true, 'forbidden', 403])
    }
    expect(refusal(await (await connect(anna.key)).call('memory_promote', { name: 'x', content: 'x' }))).toEqual([true, 'forbidden', 403])
    const reader = await connect(readerToken)
    const refused = await reader.call('memory_edit', { key: 'agents/x', old_text: 'a', new_text: 'b' })
    expect(refusal(refused)).toEqual([true, 'forbidden', 403])
    expect(refused.text).toContain('memory:write')
    expect((await reader.call('memory_paths')).data).toMatchObject({ write: [], read: expect.arrayContaining(['agents/']) })
    expect((await reader.call('memory_paths')).text).toContain('This token may not write')
    const writer = await connect(await tokenOf(`writer ${era}`, 'memory:write'))
    expect((await writer.call('memory_write', { key: `agents/${era}/w`, content: 'x' })).isError).toBeUndefined()
    expect((await writer.call('memory_edit', { key: `agents/${era}/w`, old_text: 'x', new_text: 'y' })).text).toContain('memory:read')
  })

  test('MCP-06 every tool obeys the scopes of its caller, and another organisation sees nothing', async () => {
    const [annas, bens] = [await connect(anna.key), await connect(ben.key)]
    const own = `users/${anna.userId}/${era}.md`
    const journal = `workspaces/${workspaceId}/journal`
    expect((await annas.call('memory_write', { key: own, content: `secret of anna ${era}` })).isError).toBeUndefined()
    const entry = (await annas.call('memory_append', { path: journal, content: `team secret of anna ${era}` })).data.key
    expect((await annas.call('memory_paths')).data.write).toEqual(expect.arrayContaining([`${journal}/`]))
    const { version } = (await annas.call('memory_history', { key: own })).data.versions[0]
    const tries: [string, Record<string, unknown>][] = [own, entry].flatMap(key => [
      ['memory_read', { key }],
      ['memory_history', { key }],
      ['memory_write', { key, content: 'x' }],
      ['memory_edit', { key, old_text: 'secret', new_text: 'x' }],
      ['memory_delete', { key, erase_history: true }],
      ['memory_list', { prefix: key }],
      ['memory_search', { query: 'secret', prefix: key }],
    ])
    tries.push(['memory_restore', { key: own, version }], ['memory_append', { path: journal, content: 'x' }], ['memory_read', { key: own, version }])
    const other = await app.otherOrg(`Other ${era}`)
    expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' }, { token: other.key })).status).toBe(200)
    const others = await connect(other.key)
    for (const [tool, args] of tries)
      for (const client of [bens, others]) {
        const reply = await client.call(tool, args)
        expect(refusal(reply), `${tool} ${JSON.stringify(args)}`).toEqual([true, 'forbidden', 403])
        expect(JSON.stringify(reply)).not.toContain('of anna')
      }
    for (const client of [bens, others]) expect((await client.call('memory_search', { query: `of anna ${era}` })).data.hits).toEqual([])
    expect((await others.call('memory_list', {})).data.keys).toEqual([])
    expect((await annas.call('memory_search', { query: `of anna ${era}` })).data.hits.map(({ key }: { key: string }) => key)).toEqual([own, entry].sort())
    expect((await annas.call('memory_read', { key: own })).data.content).toBe(`secret of anna ${era}`)
  })

  test('memory_promote writes a record that names its promoter and its sources, and nobody can edit the record', async () => {
    const client = await connect()
    const name = `policy-${era}.md`
    const promoted = await client.call('memory_promote', {
      name,
      content: 'We deploy on Mondays.',
      source_keys: ['agents/a, b.md', 'agents/ü.md'],
      create_only: true,
    })
    expect(promoted.data).toEqual({ key: `org/records/${name}`, etag: expect.any(String) })
    const read = await (await connect(ben.key)).call('memory_read', { key: promoted.data.key })
    expect(read.data).toMatchObject({
      content: 'We deploy on Mondays.',
      etag: promoted.data.etag,
      provenance: { promoted_by: String(app.userId), sources: ['agents/a, b.md', 'agents/ü.md'] },
    })
    expect(read.text).toContain(`promoted by user ${app.userId} · made from "agents/a, b.md", "agents/ü.md"`)
    expect(refusal(await client.call('memory_edit', { key: promoted.data.key, old_text: 'Mondays', new_text: 'Fridays' }))).toEqual([true, 'forbidden', 403])
    expect(refusal(await client.call('memory_promote', { name, content: 'x', create_only: true }))).toEqual([true, 'memory_conflict', 412])
    expect(refusal(await client.call('memory_promote', { name: '../x', content: 'x' }))).toEqual([true, 'bad_name', 400])
    expect(refusal(await client.call('memory_promote', { name, content: 'x', workspace_id: 999_999 }))).toEqual([true, 'not_found', 404])
    expect((await client.call('memory_promote', { name, content: `of the team ${era}`, workspace_id: workspaceId })).data.key).toBe(
      `workspaces/${workspaceId}/records/${name}`,
    )
    expect((await (await connect(anna.key)).call('memory_search', { query: `of the team ${era}` })).data.hits).toHaveLength(1)
  })

  test('memory_share opens and retires shares, and grants and revokes access. Each change applies to the next call. memory_shares names the members', async () => {
    const [annas, bens] = [await connect(anna.key), await connect(ben.key)]
    const space = `plans-${era}`
    const key = `shared/${space}/a.md`
    const opened = await annas.call('memory_share', { action: 'create', space })
    expect(opened.data).toEqual({ action: 'create', space, owner: anna.userId, member_uids: [], role: 'owner' })
    expect(opened.text).toContain(`shared/${space}/`)
    expect((await annas.call('memory_write', { key, content: 'plan' })).isError).toBeUndefined()
    expect(refusal(await bens.call('memory_read', { key }))).toEqual([true, 'forbidden', 403])
    expect((await bens.call('memory_shares')).text).toBe('There is no open share of yours.')
    expect((await annas.call('memory_share', { action: 'grant', space, user_id: ben.userId })).data.member_uids).toEqual([ben.userId])
    expect((await bens.call('memory_read', { key })).data.content).toBe('plan')
    const listed = await bens.call('memory_shares')
    expect(listed.data.shares).toEqual([{ space, owner: anna.userId, member_uids: [ben.userId], role: 'member' }])
    expect(listed.text).toBe(`shared/${space}/  owner user ${anna.userId}  1 member: user ${ben.userId}  (you: member)`)
    expect(refusal(await bens.call('memory_shares', { all: true }))).toEqual([true, 'forbidden', 403])
    expect((await (await connect()).call('memory_shares', { all: true })).data.shares).toContainEqual({
      space,
      owner: anna.userId,
      member_uids: [ben.userId],
      role: 'manager',
    })
    expect(refusal(await bens.call('memory_share', { action: 'grant', space, user_id: ben.userId }))).toEqual([true, 'forbidden', 403])
    expect((await annas.call('memory_share', { action: 'revoke', space, user_id: ben.userId })).data.member_uids).toEqual([])
    expect(refusal(await bens.call('memory_read', { key }))).toEqual([true, 'forbidden', 403])
    for (const wrong of [
      { action: 'grant', space },
      { action: 'create', space, user_id: ben.userId },
      { action: 'retire', space, member_uids: [1] },
      { action: 'close', space },
    ])
      expect(refusal(await annas.call('memory_share', wrong))).toEqual([true, 'bad_request', 400])
    expect(refusal(await bens.call('memory_share', { action: 'create', space }))).toEqual([true, 'space_taken', 409])
    expect(refusal(await annas.call('memory_share', { action: 'create', space: 'Bad Name' }))).toEqual([true, 'bad_name', 400])
    expect(refusal(await annas.call('memory_share', { action: 'retire', space: `none-${era}` }))).toEqual([true, 'not_found', 404])
    expect((await annas.call('memory_share', { action: 'retire', space })).text).toContain('closed permanently')
    expect(refusal(await annas.call('memory_read', { key }))).toEqual([true, 'forbidden', 403])
    expect(refusal(await annas.call('memory_share', { action: 'create', space }))).toEqual([true, 'space_retired', 409])
    const { json } = await app.call('GET', '/me/audit', undefined, { cookie: await app.signIn() })
    expect(json.entries.slice(0, 2)).toMatchObject([
      { act: 'createShare', outcome: 'space_retired', actor: { kind: 'key' } },
      { act: 'retireShare', outcome: 'ok', target: expect.stringMatching(/^id=/) },
    ])
  })

  test('without a configured store, every memory tool says so', async () => {
    const { key } = await app.otherOrg(`Storeless ${era}`)
    const client = await connect(key)
    const args: Record<string, Record<string, unknown>> = {
      memory_append: { path: 'agents/x', content: 'x' },
      memory_delete: { key: 'agents/x' },
      memory_edit: { key: 'agents/x', old_text: 'a', new_text: 'b' },
      memory_history: { key: 'agents/x' },
      memory_list: {},
      memory_paths: {},
      memory_promote: { name: 'x', content: 'x' },
      memory_read: { key: 'agents/x' },
      memory_restore: { key: 'agents/x', version: 'x' },
      memory_search: { query: 'x' },
      memory_share: { action: 'create', space: 'x' },
      memory_shares: {},
      memory_write: { key: 'agents/x', content: 'x' },
    }
    const names = memoryNames(await client.names())
    expect(names).toEqual(Object.keys(args))
    for (const tool of names) {
      const reply = await client.call(tool, args[tool])
      expect(refusal(reply), tool).toEqual([true, 'memory_not_configured', 404])
      expect(reply.text).toContain('an admin has to configure a memory store')
    }
  })
})
