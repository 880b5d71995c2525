import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { type ListedServer, startListedServer, toolOf } from './listed-server.ts'

const secret = 'Bearer tool-secret-0123456789-TAIL'
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

describe('MCP servers of an organisation', () => {
  let app: TestApp
  let modern: ListedServer
  let legacy: ListedServer
  let owner: string
  let admin: string
  let member: string

  beforeAll(async () => {
    ;[modern, legacy] = await Promise.all([startListedServer('modern'), startListedServer('legacy')])
    const port = modern.hostPort.split(':')[1]
    app = await startApp({
      env: { OUTBOUND_ALLOW: `${modern.hostPort},${legacy.hostPort},localhost:${port},127.0.0.1:1`, TOOL_SERVERS_PER_ORG: '3', TOOLS_PER_SERVER: '30' },
    })
    owner = await app.signIn()
    admin = (await app.newMember('admin')).cookie
    member = (await app.newMember('member')).cookie
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([modern.close(), legacy.close()])
  })
  beforeEach(async () => {
    for (const server of [modern, legacy]) {
      Object.assign(server, { tools: [toolOf('echo'), toolOf('add')], pageSize: 1_000, isEndless: false, key: null, hangs: false })
      server.requests.length = 0
    }
    for (const { id } of await listed()) await app.call('DELETE', `/me/tool-servers/${id}`, undefined, { cookie: owner })
  })

  const listed = async (cookie = owner) => (await app.call('GET', '/me/tool-servers', undefined, { cookie })).json.servers
  const as = (method: string, path: string, body?: unknown, cookie = owner) => app.call(method, `/me/tool-servers${path}`, body, { cookie })
  const header = { kind: 'header', header_name: 'X-Test-Key', header_value: secret }
  let named = 0
  const params = (more: object = {}) => ({ name: `Tools ${++named}`, url: modern.url, ...more })

  test.each([
    ['modern', () => modern],
    ['legacy', () => legacy],
  ] as const)('an owner and an admin register a server of the %s era: its tools are read and wait for approval, and its header is masked', async (era, of) => {
    const server = of()
    server.key = secret
    // A server that shows what it got. The texts that are kept must not contain it.
    server.tools = [toolOf('echo', { description: `Takes ${secret} or ${secret.slice('Bearer '.length)}.` }), toolOf('add')]
    for (const cookie of [owner, admin]) {
      const made = await as('POST', '', params({ url: server.url, auth: header, residency: 'india', price_inr_per_call: 1.5, timeout_ms: 5000 }), cookie)
      expect([made.status, made.json]).toEqual([
        201,
        {
          ok: true,
          server: {
            id: expect.stringMatching(/^[0-9a-f-]{36}$/),
            slug: `tools-${named}`,
            name: `Tools ${named}`,
            url: server.url,
            auth: { kind: 'header', header_name: 'X-Test-Key', header_mask: 'Bear…TAIL' },
            residency: 'india',
            state: 'on',
            price_inr_per_call: 1.5,
            timeout_ms: 5000,
            era,
            last_sync_at: isoTime,
            last_error: null,
            created_at: isoTime,
          },
          sync: { new: 2, changed: 0, gone: 0, returned: 0, left_out: [], error: null, detail: null },
        },
      ])
      const tools = (await as('GET', `/${made.json.server.id}/tools`)).json.tools
      expect(tools.map((tool: { name: string; state: string }) => [tool.name, tool.state])).toEqual([
        [`tools-${named}__add`, 'pending'],
        [`tools-${named}__echo`, 'pending'],
      ])
    }
    expect((await listed()).map((each: { tools: object }) => each.tools)).toEqual(
      Array.from({ length: 2 }, () => ({ pending: 2, approved: 0, changed: 0, blocked: 0, gone: 0 })),
    )
    expect(server.requests.every(headers => headers['x-test-key'] === secret && headers.authorization === undefined && headers.cookie === undefined)).toBe(true)
    expect(JSON.stringify([await listed(), await app.dump(), app.logLines])).not.toContain('tool-secret')
  })

  test('members and agents look at servers and tools and change nothing, and another organisation finds nothing', async () => {
    const { id } = (await as('POST', '', params())).json.server
    const [tool] = (await as('GET', `/${id}/tools`)).json.tools
    const agent = await app.newAgent('looker')
    for (const path of ['', `/${id}/tools`, `/${id}/tools/${tool.name}`]) {
      expect((await as('GET', path, undefined, member)).status, path).toBe(200)
      expect((await app.call('GET', `/me/tool-servers${path}`, undefined, { token: agent.token })).status, path).toBe(200)
    }
    const changes: [string, string, object?][] = [
      ['POST', '', params()],
      ['POST', '/test', params()],
      ['POST', '/off'],
      ['PATCH', `/${id}`, { name: 'x' }],
      ['POST', `/${id}/sync`],
      ['POST', `/${id}/off`],
      ['POST', `/${id}/on`],
      ['POST', `/${id}/tools/approve`, { tools: [{ name: tool.name, hash: tool.hash }] }],
      ['POST', `/${id}/tools/block`, { tools: [tool.name] }],
      ['DELETE', `/${id}`],
    ]
    for (const [method, path, body] of changes) expect((await as(method, path, body, member)).status, path).toBe(403)
    const other = await app.otherOrg(`Other ${named}`)
    const stranger = await app.signIn(other.userId, other.orgId)
    expect(await listed(stranger)).toEqual([])
    for (const [method, path, body] of changes.filter(([, path]) => path.includes(id)))
      for (const at of [path, path.replace(id, 'no-such-id'), path.replace(id, id.toUpperCase())])
        expect([(await as(method, at, body, stranger)).status, (await as(method, at, body, stranger)).json.error.code], at).toEqual([404, 'not_found'])
    for (const path of [`/${id}/tools`, `/${id}/tools/${tool.name}`]) expect((await as('GET', path, undefined, stranger)).status).toBe(404)
    expect((await as('POST', '/off', undefined, stranger)).json).toEqual({ ok: true, switched_off: 0 })
    expect((await listed())[0]).toMatchObject({ id, state: 'on', tools: { pending: 2 } })
  })

  test('a test reads the tools of a server and saves nothing, and says why a server could not be read', async () => {
    modern.tools = [toolOf('echo'), toolOf('odd', { description: 'a\u200bb' }), toolOf('')]
    const before = await app.dump()
    const good = await as('POST', '/test', { url: modern.url }, admin)
    expect(good.json).toEqual({
      ok: true,
      era: 'modern',
      tools: [
        { name: 'echo', findings: 0, approvable: true },
        { name: 'odd', findings: 1, approvable: false },
      ],
      tools_total: 2,
      left_out: [{ position: 2, reason: 'bad_name' }],
      error: null,
      detail: null,
    })
    modern.key = secret
    expect((await as('POST', '/test', { url: modern.url, auth: { ...header, header_value: 'Bearer wrong-secret-012345' } })).json).toMatchObject({
      ok: false,
      error: 'unauthorized',
    })
    expect((await as('POST', '/test', { url: 'http://127.0.0.1:1/mcp' })).json).toMatchObject({ ok: false, error: 'unavailable' })
    modern.key = null
    modern.isEndless = true
    expect((await as('POST', '/test', { url: modern.url })).json).toMatchObject({ ok: false, error: 'protocol' })
    modern.isEndless = false
    modern.tools = Array.from({ length: 31 }, (_, index) => toolOf(`t${index}`))
    expect((await as('POST', '/test', { url: modern.url })).json).toMatchObject({ ok: false, error: 'too_many_tools' })
    const refused = await as('POST', '', params())
    expect([refused.status, refused.json.error.code, refused.json.check_error]).toEqual([400, 'bad_request', 'too_many_tools'])
    expect(await listed()).toEqual([])
    expect(without(await app.dump())).toBe(without(before))
  })

  /** The refused registration is in the audit trail. Nothing else may differ. */
  const without = (dump: string): string =>
    dump
      .split('\n')
      .filter(line => line.includes('tool_'))
      .filter(line => !line.startsWith('audit_log'))
      .join('\n')

  test('a URL that a user may not reach, an invalid header, slug, price or time, and an unknown field are refused before anything is sent', async () => {
    for (const more of [
      { url: 'not a url' },
      { url: 'ftp://tools.example.com/mcp' },
      { url: 'http://tools.example.com/mcp' },
      { url: 'https://127.0.0.1/mcp' },
      { url: 'https://169.254.169.254/latest' },
      { url: 'https://[::1]/mcp' },
      { url: 'https://user:pass@tools.example.com/mcp' },
      { url: `${modern.url}?key=1` },
      { url: `${modern.url}#x` },
      { url: `https://tools.example.com/${'x'.repeat(3000)}` },
      { url: `${app.baseUrl}/mcp` },
      { auth: { kind: 'header', header_name: 'X-Key' } },
      { auth: { kind: 'none', header_value: 'x' } },
      { auth: { ...header, header_name: 'Host' } },
      { auth: { ...header, header_name: 'Mcp-Session-Id' } },
      { auth: { ...header, header_name: 'a b' } },
      { auth: { ...header, header_value: 'a\r\nX-Evil: 1' } },
      { auth: { ...header, header_value: 'ключ' } },
      { slug: 'Upper' },
      { slug: 'under_score' },
      { slug: '1st' },
      { slug: 'x'.repeat(17) },
      { price_inr_per_call: -1 },
      { price_inr_per_call: 1001 },
      { timeout_ms: 0 },
      { timeout_ms: 300_001 },
      { residency: 'mars' },
      { command: 'rm' },
      { args: ['-rf'] },
    ])
      for (const path of ['', '/test']) {
        const reply = await as('POST', path, params(more))
        expect([reply.status, reply.json.error.code], `${path} ${JSON.stringify(more).slice(0, 80)}`).toEqual([400, 'bad_request'])
      }
    expect((await as('POST', '', params({ name: 'a\u200bb' }))).json.error.code).toBe('bad_name')
    expect([modern.requests, await listed()]).toEqual([[], []])
  })

  test('a slug is made from the name or given, belongs to one server, and is never used again, and an organisation has a limited number of servers', async () => {
    const names: string[] = []
    for (const name of ['Wétter & Klima 24/7 Hub', 'Wétter & Klima 24/7 Hub', '99'])
      names.push((await as('POST', '', params({ name }))).json.server?.slug ?? 'refused')
    expect(names).toEqual(['wetter-klima-24', 'wetter-klima-2-2', 'tools'])
    expect((await as('POST', '', params())).json.error.code).toBe('cap')
    const [first] = await listed()
    expect((await as('DELETE', `/${first.id}`)).status).toBe(200)
    const again = await as('POST', '', params({ slug: first.slug }))
    expect([again.status, again.json.error.code]).toEqual([409, 'tool_slug_taken'])
    expect((await as('POST', '', params({ name: 'Wétter & Klima 24/7 Hub' }))).json.server.slug).toBe('wetter-klima-2-3')
    expect((await as('PATCH', `/${(await listed())[0].id}`, { slug: 'other' })).json.error.code).toBe('bad_request')
  })

  test('TGW-03 the name of a tool is slug__tool with at most 64 characters, no two are alike, and it is the same whatever else is registered', async () => {
    const names = [
      'x',
      '-x',
      'x__y',
      '_x',
      'a.b',
      'a b',
      'a_b',
      'n'.repeat(128),
      `${'n'.repeat(127)}m`,
      'n'.repeat(33),
      'é',
      'ü',
      'repo_get_ABCDEF',
      'list_events',
    ]
    modern.tools = names.map(name => toolOf(name))
    const other = await app.otherOrg('Names')
    const strangers = await app.signIn(other.userId, other.orgId)
    const namesOf = async (cookie: string, slugs: readonly string[]) => {
      const found: Record<string, string> = {}
      for (const slug of slugs) {
        const { id } = (await as('POST', '', params({ slug }), cookie)).json.server
        const { tools } = (await as('GET', `/${id}/tools`, undefined, cookie)).json
        for (const tool of tools) found[`${slug} ${tool.upstream_name}`] = tool.name
      }
      return found
    }
    const found = await namesOf(owner, ['a', 'a-', 'a234567890123456'])
    modern.tools = names.slice(0, 5).map(name => toolOf(name))
    const alone = await namesOf(strangers, ['a-'])
    for (const [tool, name] of Object.entries(alone)) expect(name, tool).toBe(found[tool])
    const all = Object.entries(found)
    expect([all.length, new Set(Object.values(found)).size]).toEqual([3 * names.length, 3 * names.length])
    for (const [tool, name] of all) {
      expect(name, tool).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(name.startsWith(`${tool.slice(0, tool.indexOf(' '))}__`), name).toBe(true)
    }
    expect([found['a x'], found['a- list_events'], found['a x__y']]).toEqual(['a__x', 'a-__list_events', 'a__x__y'])
  })

  test('a change keeps the header unless a new one is sent, never sends it to another origin, and a new origin ends approvals', async () => {
    modern.key = secret
    const { id } = (await as('POST', '', params({ auth: header }))).json.server
    const [tool] = (await as('GET', `/${id}/tools`)).json.tools
    expect((await as('POST', `/${id}/tools/approve`, { tools: [{ name: tool.name, hash: tool.hash }] })).status).toBe(200)
    modern.requests.length = 0
    const renamed = await as('PATCH', `/${id}`, { name: ' Renamed ', price_inr_per_call: 2, timeout_ms: null }, admin)
    expect(renamed.json.server).toMatchObject({ name: 'Renamed', price_inr_per_call: 2, timeout_ms: null, auth: { header_mask: 'Bear…TAIL' } })
    expect(modern.requests, 'a name needs no test').toEqual([])
    const elsewhere = modern.url.replace('127.0.0.1', 'localhost')
    for (const url of [elsewhere, 'https://tools.example.com/mcp', ' HTTPS://tools.example.com/mcp'])
      expect((await as('PATCH', `/${id}`, { url })).json.error.message, url).toContain('Send "auth" with it')
    expect(modern.requests).toEqual([])
    const wrong = await as('PATCH', `/${id}`, { name: 'Broken', auth: { ...header, header_value: 'Bearer wrong-0123456789' } })
    expect([wrong.status, wrong.json.check_error]).toEqual([400, 'unauthorized'])
    expect((await listed())[0]).toMatchObject({ name: 'Renamed', auth: { header_mask: 'Bear…TAIL' }, tools: { approved: 1, pending: 1 } })
    const moved = await as('PATCH', `/${id}`, { url: elsewhere, auth: header })
    expect(moved.json).toMatchObject({ ok: true, server: { url: elsewhere, slug: renamed.json.server.slug } })
    expect((await listed())[0].tools).toMatchObject({ approved: 0, pending: 2 })
    modern.key = null
    expect((await as('PATCH', `/${id}`, { auth: { kind: 'none' } })).json.server.auth).toEqual({ kind: 'none', header_name: null, header_mask: null })
    modern.requests.length = 0
    expect((await as('POST', `/${id}/sync`)).json.ok).toBe(true)
    expect(modern.requests.some(headers => 'x-test-key' in headers)).toBe(false)
    expect((await as('PATCH', `/${id}`, { url: modern.url })).status, 'without a header there is none to lose').toBe(200)
  })

  test('a server is switched off and on, all servers are switched off together, and every act is in the audit trail', async () => {
    const ids = [(await as('POST', '', params())).json.server.id, (await as('POST', '', params())).json.server.id]
    expect((await as('POST', `/${ids[0]}/off`, undefined, admin)).json.server.state).toBe('off')
    expect((await as('POST', `/${ids[0]}/off`)).json.server.state, 'twice is the same').toBe('off')
    expect((await as('POST', '/off')).json).toEqual({ ok: true, switched_off: 1 })
    expect((await listed()).map(({ state }: { state: string }) => state)).toEqual(['off', 'off'])
    expect((await as('POST', `/${ids[1]}/on`)).json.server.state).toBe('on')
    expect((await as('DELETE', `/${ids[1]}`)).json).toEqual({ ok: true })
    expect((await as('DELETE', `/${ids[1]}`)).status).toBe(404)
    const { entries } = (await app.call('GET', '/me/audit?limit=12', undefined, { cookie: owner })).json
    const lines = entries.map(({ act, target, outcome, actor }: { act: string; target: string; outcome: string; actor: { kind: string } }) => [
      act,
      target,
      outcome,
      actor.kind,
    ])
    expect(lines.slice(0, 6)).toEqual(
      [
        ['removeToolServer', `id=?`, 'not_found', 'user'],
        ['removeToolServer', `id=${ids[1]}`, 'ok', 'user'],
        ['switchToolServerOn', `id=${ids[1]}`, 'ok', 'user'],
        ['switchToolServersOff', null, 'ok', 'user'],
        ['switchToolServerOff', `id=${ids[0]}`, 'ok', 'user'],
        ['switchToolServerOff', `id=${ids[0]}`, 'ok', 'user'],
      ].map((line, index) => (index === 0 ? [line[0], expect.any(String), line[2], line[3]] : line)),
    )
    expect(lines).toContainEqual(['noteToolChanges', `tool_server=${ids[1]} new=2 changed=0 gone=0 returned=0`, 'ok', 'system'])
    expect(lines).toContainEqual(['createToolServer', `id=${ids[1]}`, 'ok', 'user'])
  })

  test('an organisation that tests failing addresses without end has to wait', async () => {
    const other = await app.otherOrg('Scanner')
    const scanner = await app.signIn(other.userId, other.orgId)
    const statuses: number[] = []
    for (let round = 0; round < 62; round++) statuses.push((await as('POST', '/test', { url: 'http://127.0.0.1:1/mcp' }, scanner)).status)
    expect(statuses.slice(0, 60).every(status => status === 200)).toBe(true)
    expect(statuses.at(-1)).toBe(429)
  })
})

test('with TOOL_GATEWAY=off no server can be registered, listed or used', async () => {
  const app = await startApp({ env: { TOOL_GATEWAY: 'off' } })
  try {
    const cookie = await app.signIn()
    for (const [method, path, body] of [
      ['GET', '/me/tool-servers'],
      ['POST', '/me/tool-servers', { name: 'x', url: 'https://tools.example.com/mcp' }],
      ['POST', '/me/tool-servers/off'],
    ] as const) {
      const reply = await app.call(method, path, body, { cookie })
      expect([reply.status, reply.json.error.code], path).toEqual([400, 'unavailable'])
    }
  } finally {
    await app.stop()
  }
})
