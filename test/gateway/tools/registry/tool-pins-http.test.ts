import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../../harness/app.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../harness/webhook-receiver.ts'
import { type ListedServer, startListedServer, type Tool, toolOf } from './listed-server.ts'

interface Pin {
  readonly name: string
  readonly state: string
  readonly hash: string
  readonly approved_hash: string | null
}

describe.each(['modern', 'legacy'] as const)('definitions of a server of the %s era', era => {
  let app: TestApp
  let server: ListedServer
  let receiver: WebhookReceiver
  let owner: string
  let id: string
  let slug: string
  let round = 0

  beforeAll(async () => {
    ;[server, receiver] = await Promise.all([startListedServer(era), startWebhookReceiver()])
    app = await startApp({ env: { OUTBOUND_ALLOW: `${server.hostPort},${receiver.hostPort}`, WEBHOOK_POLL_MS: '20' } })
    owner = await app.signIn()
    const hook = { url: `${receiver.url}/hook`, event_types: ['tool.changed'] }
    expect((await app.call('POST', '/me/webhooks', hook, { cookie: owner })).status).toBe(201)
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([server.close(), receiver.close()])
  })
  beforeEach(async () => {
    Object.assign(server, { tools: [toolOf('echo'), toolOf('add')], pageSize: 1_000, key: null })
    if (id !== undefined) await as('DELETE', `/${id}`)
    const made = (await as('POST', '', { name: 'Ours', slug: `s${++round}`, url: server.url })).json.server
    id = made.id
    slug = made.slug
  })

  const as = (method: string, path: string, body?: unknown) => app.call(method, `/me/tool-servers${path}`, body, { cookie: owner })
  const pins = async (): Promise<Pin[]> => (await as('GET', `/${id}/tools`)).json.tools
  const pin = async (name: string): Promise<Pin> => (await pins()).find(each => each.name === `${slug}__${name}`) as Pin
  const detail = async (name: string) => (await as('GET', `/${id}/tools/${slug}__${name}`)).json.tool
  const approve = async (...names: string[]) => {
    const tools = []
    for (const name of names) tools.push({ name: `${slug}__${name}`, hash: (await pin(name)).hash })
    return as('POST', `/${id}/tools/approve`, { tools })
  }
  const sync = async () => (await as('POST', `/${id}/sync`)).json.sync
  const callable = async () => (await app.gateway.app.toolCatalog.of(app.orgId)).all().map(({ publicName }) => publicName)
  /** The lines of the audit trail about this server, newest first. */
  const changeLines = async (): Promise<string[]> => {
    const { entries } = (await app.call('GET', '/me/audit?act=noteToolChanges&limit=20', undefined, { cookie: owner })).json
    return entries.map(({ target }: { target: string }) => target).filter((target: string) => target.includes(id))
  }
  const replace = (name: string, next: (tool: Tool) => Tool): void => {
    server.tools = server.tools.map(tool => (tool['name'] === name ? next(tool) : tool))
  }

  test('a definition is approved by its hash, and each kind of change takes the tool out of the list until somebody approves the new one', async () => {
    expect(await callable()).toEqual([])
    expect((await approve('echo', 'add')).json).toEqual({ ok: true, approved: 2 })
    expect(await callable()).toEqual([`${slug}__add`, `${slug}__echo`])
    const lines = (await app.call('GET', '/me/audit?act=approveTool&limit=2', undefined, { cookie: owner })).json.entries
    for (const { hash } of await pins())
      expect(lines).toContainEqual(expect.objectContaining({ target: expect.stringMatching(`^tool_server=${id} tool=\\d+ hash=${hash}$`), outcome: 'ok' }))
    const changes: [string, (tool: Tool) => Tool, string][] = [
      ['description', tool => ({ ...tool, description: 'Does echo!' }), '/description'],
      [
        'schema',
        tool => ({ ...tool, inputSchema: { type: 'object', properties: { text: { type: 'string', maxLength: 5 } } } }),
        '/inputSchema/properties/text/maxLength',
      ],
      ['annotations', tool => ({ ...tool, annotations: { readOnlyHint: true } }), '/annotations'],
      ['title', tool => ({ ...tool, title: 'Echo' }), '/title'],
      ['unknown member', tool => ({ ...tool, 'x-strange': { any: [1] } }), '/x-strange'],
      ['_meta', tool => ({ ...tool, _meta: { 'example.com/x': true } }), '/_meta'],
    ]
    for (const [what, change, at] of changes) {
      replace('echo', change)
      expect(await sync(), what).toMatchObject({ new: 0, changed: 1, gone: 0, returned: 0 })
      expect(await pin('echo'), what).toMatchObject({ state: 'changed' })
      expect(await callable(), what).toEqual([`${slug}__add`])
      const shown = await detail('echo')
      expect(
        shown.diff.map((each: { at: string }) => each.at),
        what,
      ).toEqual([at])
      expect([shown.definition, shown.approved_definition].map(each => each.name)).toEqual(['echo', 'echo'])
      expect(shown.hash).not.toBe(shown.approved_hash)
      expect((await approve('echo')).status).toBe(200)
      expect(await callable(), what).toEqual([`${slug}__add`, `${slug}__echo`])
    }
  })

  test('the order of members is no change, and a sync without a change writes nothing', async () => {
    await approve('echo', 'add')
    replace('echo', tool => Object.fromEntries(Object.entries(tool).reverse()))
    expect(await sync()).toMatchObject({ new: 0, changed: 0, gone: 0, returned: 0 })
    expect(await pin('echo')).toMatchObject({ state: 'approved' })
    expect(await changeLines()).toEqual([`tool_server=${id} new=2 changed=0 gone=0 returned=0`])
  })

  test('a new tool waits, also on a later page and under another name for the same text, and one that is gone and back with the approved definition is approved', async () => {
    await approve('echo', 'add')
    server.pageSize = 1
    server.tools = [...server.tools, { ...toolOf('echo'), name: 'echo2' }]
    expect(await sync()).toMatchObject({ new: 1, changed: 0 })
    expect(await pin('echo2')).toMatchObject({ state: 'pending', approved_hash: null })
    expect(await callable()).toEqual([`${slug}__add`, `${slug}__echo`])
    const all = server.tools
    server.tools = server.tools.filter(({ name }) => name !== 'echo')
    expect(await sync()).toMatchObject({ gone: 1 })
    expect(await pin('echo')).toMatchObject({ state: 'gone' })
    expect((await approve('echo')).json.error.code, 'a tool that is gone cannot be approved').toBe('tool_changed')
    expect(await callable()).toEqual([`${slug}__add`])
    server.tools = all
    expect(await sync()).toMatchObject({ returned: 1 })
    expect(await callable()).toEqual([`${slug}__add`, `${slug}__echo`])
    server.tools = all.filter(({ name }) => name !== 'echo')
    await sync()
    server.tools = [...all.filter(({ name }) => name !== 'echo'), toolOf('echo', { description: 'Another one.' })]
    expect(await sync()).toMatchObject({ returned: 1 })
    expect(await pin('echo')).toMatchObject({ state: 'changed' })
    expect(await callable()).toEqual([`${slug}__add`])
  })

  test('an approval of a hash that the server does not show any more is 409, all or none', async () => {
    const [add, echo] = await pins()
    replace('echo', tool => ({ ...tool, description: 'Now different.' }))
    await sync()
    const late = await as('POST', `/${id}/tools/approve`, { tools: [add, echo].map(each => ({ name: each?.name, hash: each?.hash })) })
    expect([late.status, late.json.error.code, late.json.tools]).toEqual([409, 'tool_changed', [`${slug}__echo`]])
    expect((await pins()).map(({ state }) => state)).toEqual(['pending', 'pending'])
    const hash = add?.hash ?? ''
    for (const tools of [
      [],
      [{ name: `${slug}__none`, hash }],
      [{ name: add?.name, hash: 'x' }],
      [
        { name: add?.name, hash },
        { name: add?.name, hash },
      ],
    ])
      expect([400, 404], JSON.stringify(tools)).toContain((await as('POST', `/${id}/tools/approve`, { tools })).status)
    expect(await callable()).toEqual([])
  })

  test('invisible characters in a definition block its approval, wherever they are', async () => {
    server.tools = [
      toolOf('a', { description: 'hid\u200bden' }),
      toolOf('b', { inputSchema: { type: 'object', properties: { x: { enum: ['\u202edlrow'] } } } }),
      toolOf('c', { _meta: { 'example.com/\u{e0041}': 1 } }),
      toolOf('d'),
    ]
    await sync()
    for (const name of ['a', 'b', 'c']) {
      const refused = await approve(name, 'd')
      expect([refused.status, refused.json.error.code, refused.json.tools], name).toEqual([409, 'tool_not_approvable', [`${slug}__${name}`]])
    }
    expect((await detail('a')).findings).toEqual([{ kind: 'zero_width', at: '/description', code_point: 'U+200B', blocks: true }])
    expect((await pin('a')) as unknown).toMatchObject({ approvable: false, findings: 1 })
    expect((await approve('d')).status).toBe(200)
    expect(await callable()).toEqual([`${slug}__d`])
  })

  test('a blocked tool leaves the list with its reason, stays blocked over syncs and changes, and an approval ends the block', async () => {
    await approve('echo', 'add')
    const blocked = await as('POST', `/${id}/tools/block`, { tools: [`${slug}__echo`], reason: ' leaks addresses ' })
    expect(blocked.json).toEqual({ ok: true, blocked: 1 })
    expect(await pin('echo')).toMatchObject({ state: 'blocked', blocked_reason: 'leaks addresses' })
    expect(await callable()).toEqual([`${slug}__add`])
    replace('echo', tool => ({ ...tool, description: 'Better now.' }))
    await sync()
    expect(await pin('echo')).toMatchObject({ state: 'blocked' })
    expect((await as('POST', `/${id}/tools/block`, { tools: ['nobody__x'] })).status).toBe(404)
    expect((await as('POST', `/${id}/tools/block`, { tools: [`${slug}__add`], reason: 'a\nb' })).status).toBe(400)
    expect((await approve('echo')).status).toBe(200)
    expect(await callable()).toEqual([`${slug}__add`, `${slug}__echo`])
  })

  test('each sync that finds a change sends one webhook with hashes and writes one audit line', async () => {
    await approve('echo', 'add')
    const events = () =>
      receiver
        .at('/hook')
        .map(({ json }) => json)
        .filter(({ data }) => data.server_id === id)
    await until(() => events().length === 1)
    const approved = await pin('echo')
    server.tools = [toolOf('echo', { description: 'Changed.' }), toolOf('fresh')]
    await sync()
    await until(() => events().length === 2)
    const echo = await pin('echo')
    const of = events()
    expect(of.map(({ type, data }) => [type, data.new, data.changed, data.gone])).toEqual([
      ['tool.changed', 2, 0, 0],
      ['tool.changed', 1, 1, 1],
    ])
    expect(of[1].data).toMatchObject({ server_slug: slug, returned: 0 })
    expect(of[1].data.tools).toEqual([
      { tool: `${slug}__fresh`, change: 'new', hash: (await pin('fresh')).hash, approved_hash: null },
      { tool: `${slug}__echo`, change: 'changed', hash: echo.hash, approved_hash: approved.hash },
      { tool: `${slug}__add`, change: 'gone', hash: (await pin('add')).hash, approved_hash: (await pin('add')).hash },
    ])
    expect(await changeLines()).toEqual([`tool_server=${id} new=1 changed=1 gone=1 returned=0`, `tool_server=${id} new=2 changed=0 gone=0 returned=0`])
  })

  test('a server that fails keeps its approved tools and shows a code, and one that is off has no callable tools', async () => {
    await approve('echo')
    server.key = 'needed'
    const failed = await as('POST', `/${id}/sync`)
    expect(failed.json).toMatchObject({ ok: false, sync: { error: 'unauthorized' }, server: { last_error: 'unauthorized' } })
    expect(await callable()).toEqual([`${slug}__echo`])
    server.key = null
    expect((await as('POST', `/${id}/sync`)).json).toMatchObject({ ok: true, server: { last_error: null } })
    await as('POST', `/${id}/off`)
    expect(await callable()).toEqual([])
    await as('POST', `/${id}/on`)
    expect(await callable()).toEqual([`${slug}__echo`])
  })

  test('the list of tools is paged by name and filtered by state', async () => {
    server.tools = Array.from({ length: 7 }, (_, index) => toolOf(`t${index}`))
    await sync()
    await approve('t1', 't5')
    const names: string[] = []
    for (let path: string | null = `/${id}/tools?limit=3`; path !== null; ) {
      const page: { tools: Pin[]; next_cursor: string | null } = (await as('GET', path)).json
      names.push(...page.tools.map(({ name }) => name))
      path = page.next_cursor === null ? null : `/${id}/tools?limit=3&cursor=${page.next_cursor}`
    }
    // The two tools of the registration are gone, and still listed.
    expect(names).toEqual(['add', 'echo', 't0', 't1', 't2', 't3', 't4', 't5', 't6'].map(name => `${slug}__${name}`))
    const filtered = (await as('GET', `/${id}/tools?state=approved`)).json
    expect([filtered.tools.map(({ name }: Pin) => name), filtered.next_cursor]).toEqual([[`${slug}__t1`, `${slug}__t5`], null])
    for (const query of ['cursor=%00', 'cursor=x', 'state=none', 'limit=0', 'limit=201'])
      expect((await as('GET', `/${id}/tools?${query}`)).status, query).toBe(400)
    for (const name of ['none', '%00', 'x'.repeat(60)]) expect((await as('GET', `/${id}/tools/${name}`)).status, name).toBe(404)
  })

  test('the catalog has what a call needs, and its header only in memory', async () => {
    server.key = 'Bearer header-of-the-catalog-0123'
    const auth = { kind: 'header', header_name: 'X-Test-Key', header_value: server.key }
    expect((await as('PATCH', `/${id}`, { auth, price_inr_per_call: 0.25, residency: 'india' })).status).toBe(200)
    await approve('echo')
    const tools = await app.gateway.app.toolCatalog.of(app.orgId)
    const tool = tools.byName(`${slug}__echo`)
    expect(tool).toMatchObject({ serverId: id, slug, upstreamName: 'echo', priceUinr: 250_000n, timeoutMs: 60_000, url: server.url, residency: 'india' })
    expect(tool?.hash).toBe((await pin('echo')).hash)
    expect(tool?.definition).toEqual(toolOf('echo'))
    expect(tools.credential(id)).toEqual({ name: 'X-Test-Key', value: server.key })
    expect(tools.byName(`${slug}__add`)).toBeUndefined()
    const trips = app.db.roundTrips
    for (let look = 0; look < 100; look++) await app.gateway.app.toolCatalog.of(app.orgId)
    expect(app.db.roundTrips).toBe(trips)
    expect(JSON.stringify([await app.dump(), app.logLines])).not.toContain('header-of-the-catalog')
  })
})
