/** `brigade tools`: servers, approvals and calls, as the guide of the command line writes them, and what `brigade connect` writes for them. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectAgent } from '../../src/agents/toolkit/connect-agent.ts'
import { clientNames } from '../../src/connect/connect-plan.ts'
import { fixtureTools, type McpFixture, startMcpFixture } from '../gateway/tools/mcp-server.ts'
import { startGuardedServer } from '../gateway/tools/oauth/guarded-server.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { startStrictIssuer } from '../harness/strict-issuer.ts'
import { type Ran, runHere } from './run-here.ts'

const secret = 'Bearer very-secret-token-of-a-server'

describe('brigade tools', { timeout: 60_000 }, () => {
  let app: TestApp
  let server: McpFixture
  let home: string
  let agent: { id: number; token: string }
  beforeAll(async () => {
    server = await startMcpFixture('modern')
    app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
    home = mkdtempSync(join(tmpdir(), 'brigade-tools-'))
    writeFileSync(join(home, 'weather.header'), `${secret}\n`)
    agent = await app.newAgent('reviewer')
    await signIn(home)
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
    rmSync(home, { recursive: true, force: true })
  })

  async function signIn(folder: string, cookie?: string): Promise<void> {
    const { email } = (await app.call('GET', '/me', undefined, { cookie: cookie ?? (await app.signIn()) })).json
    const { url } = await app.gateway.app.makeSignInLink(email)
    const { code, err } = await runHere(['login', '--link', url], envOf(undefined, folder))
    expect([code, err]).toEqual([0, ''])
  }
  const envOf = (key: string | undefined, folder = home) => ({
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, '.config'),
    BRIGADE: app.baseUrl,
    BRIGADE_KEY: key,
  })
  /** Runs a command with the token of the agent, and the session of the owner. */
  async function run(words: readonly string[], key: string | undefined = agent.token): Promise<Ran> {
    const ran = await runHere(words, envOf(key))
    // No output ever contains a credential.
    for (const hidden of ['very-secret-token', agent.token, app.key]) expect(ran.out + ran.err).not.toContain(hidden)
    return ran
  }
  async function ran(words: readonly string[], key?: string): Promise<string> {
    const { code, out, err } = await run(words, key)
    expect([code, err], words.join(' ')).toEqual([0, ''])
    return out
  }
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of the API.
  const json = async (...words: string[]): Promise<any> => JSON.parse(await ran([...words, '--json']))

  /** Returns the lines about tools of the guide, with the server and the tool of this test. */
  function documented(): string[][] {
    const page = readFileSync(new URL('../../docs/guides/cli.md', import.meta.url), 'utf8')
    const [, block = ''] = /## Tools of MCP servers[\s\S]*?```bash\n([\s\S]*?)```/.exec(page) ?? []
    return block
      .trim()
      .split('\n')
      .map(line =>
        line
          .replace(/\s+# .*$/, '')
          .replace('https://tools.example.com/mcp', server.url)
          .replaceAll('weather__forecast', 'weather__echo'),
      )
      .map(line => line.replace('{"city":"Pune"}', '{"text":"Pune"}').replace('weather.header', join(home, 'weather.header')))
      .map(line => [...line.slice('npx brigade '.length).matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? ''))
  }

  async function guideWorks(): Promise<void> {
    const said = new Map<string, string>()
    for (const words of documented()) said.set(words.slice(0, 3).join(' '), await ran(words, words[0] === 'agent' ? app.key : agent.token))
    expect(said.size).toBeGreaterThanOrEqual(12)
    expect(said.get('tools servers add')).toContain(`registered weather: ${fixtureTools.length} tools wait for approval`)
    expect(server.requests.at(0)?.headers['authorization']).toBe(secret)
    expect(said.get('tools')).toMatch(/^weather__echo +0\.00 +global +Says what it got\.$/m)
    expect(said.get('tools call weather__echo')).toBe('echo: Pune\n')
    expect((await app.call('GET', '/me/tool-servers', undefined, { cookie: await app.signIn() })).json.servers).toEqual([])
  }

  /** Returns the hash of the approved definition of city__echo. */
  async function registersAndApproves(): Promise<string> {
    const words = ['tools', 'servers', 'add', server.url, '--slug', 'city', '--header-name', 'Authorization', '--header-from', join(home, 'weather.header')]
    expect((await json(...words, '--price-inr', '1.5', '--residency', 'india')).server).toMatchObject({ slug: 'city', name: '127.0.0.1', state: 'on' })
    const [row] = (await json('tools', 'servers')).servers
    expect(row).toMatchObject({ slug: 'city', price_inr_per_call: 1.5, tools: { pending: fixtureTools.length, approved: 0 } })
    const { tools } = await json('tools', 'pending', 'city')
    expect(tools.map(({ state }: { state: string }) => state)).toEqual(fixtureTools.map(() => 'pending'))
    const text = await ran(['tools', 'pending', '--limit', '2'])
    expect(text).toContain('+   "description": "Every kind of content."')
    expect(text).toContain('More definitions wait')
    const [, named = ''] = /brigade tools approve (city__all-kinds@[0-9a-f]{12})/.exec(text) ?? []
    expect(await ran(['tools', 'approve', named, 'city__echo', 'city__fails', '--yes'])).toBe(
      'approved city__all-kinds\napproved city__echo\napproved city__fails\n',
    )
    return tools.find(({ name }: { name: string }) => name === 'city__echo').hash
  }

  async function showsChanges(hash: string): Promise<void> {
    const [echo] = server.tools
    server.tools = [{ ...echo, description: 'Says what it got\u200b, and more.' }, ...server.tools.slice(1)]
    expect(await ran(['tools', 'servers', 'sync', 'city'])).toBe('city: 0 new, 1 changed, 0 gone\n')
    const text = await ran(['tools', 'pending', 'city', '--limit', '1'])
    expect(text).toMatch(/^city__echo {2}changed {2}[0-9a-f]{12} {2}cannot be approved$/m)
    expect(text).toContain('blocks the approval: zero_width at /description (U+200B)')
    expect(text).toContain('  changed /description\n  - "Says what it got."\n  + "Says what it got\\u200b, and more."\n')
    expect(await run(['tools', 'approve', `city__echo@${hash.slice(0, 12)}`, '--yes'])).toMatchObject({ code: 6, out: '' })
    expect(await run(['tools', 'approve', 'city__echo', '--yes'])).toMatchObject({ code: 6, err: expect.stringContaining('tool_not_approvable') })
    expect((await run(['tools', 'call', 'city__echo', '{"text":"a"}'])).code).toBe(4)
    server.tools = [echo ?? {}, ...server.tools.slice(1)]
    await ran(['tools', 'servers', 'sync', 'city'])
  }

  async function listsAndCalls(): Promise<void> {
    expect(await ran(['tools'])).toContain('This credential may call no tool.')
    await ran(['agent', 'update', String(agent.id), '--allowed-tools', 'city__echo,city__all-kinds,city__fails'], app.key)
    expect((await json('tools', '--server', 'city')).tools.map(({ name }: { name: string }) => name)).toEqual(['city__all-kinds', 'city__echo', 'city__fails'])
    expect((await json('tools', 'call', 'city__echo', '{"text":"Pune"}')).content).toEqual([{ type: 'text', text: 'echo: Pune' }])
    writeFileSync(join(home, 'args.json'), '{"text":"from a file"}')
    expect(await ran(['tools', 'call', 'city__echo', '--from', join(home, 'args.json')])).toBe('echo: from a file\n')
    expect(await ran(['tools', 'call', 'city__all-kinds'])).toMatch(/^all\n\[image image\/png, 2 bytes; --json prints them\]\n/)
    expect(await run(['tools', 'call', 'city__fails'])).toMatchObject({ code: 1, out: 'it failed\n', err: 'brigade: the tool reports a failure.\n' })
    const tools = connectAgent({ baseUrl: app.baseUrl, credential: agent.token }).tools
    const names: string[] = []
    for await (const { name } of tools.list({ servers: ['city'] })) names.push(name)
    expect([names.length, (await tools.get('city__echo'))?.price_inr, await tools.get('city__wait')]).toEqual([3, 1.5, null])
    expect((await tools.call('city__echo', { text: 'toolkit' })).content).toEqual([{ type: 'text', text: 'echo: toolkit' }])
    await expect(tools.call('city__wait')).rejects.toMatchObject({ code: 'tool_not_found' })
  }

  async function blocksAndSwitches(): Promise<void> {
    expect(await ran(['tools', 'block', 'city__echo', '--reason', 'wrong'])).toBe('blocked city__echo\n')
    expect((await run(['tools', 'call', 'city__echo', '{"text":"a"}'])).code).toBe(4)
    expect(await ran(['tools', 'approve', 'city__echo', '--yes'])).toBe('approved city__echo\n')
    expect(await ran(['tools', 'servers', 'off', 'city'])).toBe('city is off\n')
    expect((await json('tools')).tools).toEqual([])
    expect(await ran(['tools', 'servers', 'on', 'city'])).toBe('city is on\n')
    expect((await json('tools')).tools).toHaveLength(3)
    const { servers } = await json('tools', 'servers')
    const { json: rows } = await app.call('GET', '/me/tool-servers', undefined, { cookie: await app.signIn() })
    expect(servers).toEqual(rows.servers)
  }

  async function connectsFiveClients(): Promise<void> {
    for (const client of clientNames) {
      const folder = join(home, `of-${client}`)
      mkdirSync(folder)
      const env = { ...envOf(agent.token, folder), APPDATA: undefined, CODEX_HOME: undefined, CLAUDE_CONFIG_DIR: undefined }
      const words = ['connect', client, '--user', '--tools', '--server-tools', '--write', '--json']
      const { code, out, err } = await runHere(words, env)
      expect([code, err], client).toEqual([0, ''])
      const texts = readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap(entry =>
        entry.isFile() ? [readFileSync(join(entry.parentPath, entry.name), 'utf8')] : [],
      )
      expect(texts.join('\n'), client).toContain(`${app.baseUrl}/mcp?toolsets=core,memory,usage,tools`)
      expect(out, client).not.toContain(agent.token)
      const plain = await runHere(['connect', client, '--user', '--tools', '--json'], env)
      expect(plain.out, client).not.toContain('toolsets')
      const guide = await app.call('GET', `/me/connect/${client}?toolsets=core,tools:city`, undefined, { cookie: await app.signIn() })
      expect(guide.text, client).toContain('toolsets=core,tools:city')
    }
  }

  test('TGW-18 brigade tools registers, approves, lists and calls, the rows of the console say the same, and connect writes the toolset for five clients', async () => {
    await guideWorks()
    await showsChanges(await registersAndApproves())
    await listsAndCalls()
    await blocksAndSwitches()
    await connectsFiveClients()
  })

  test('a server with client credentials or with OAuth for each person is registered with its secret from a file, and flags that do not go together are refused', async () => {
    const issuer = await startStrictIssuer('/tenant')
    const guarded = await startGuardedServer(issuer)
    const own = await startApp({ env: { OUTBOUND_ALLOW: [issuer.hostPort, guarded.hostPort].join(',') } })
    const folder = join(home, 'oauth')
    mkdirSync(folder)
    writeFileSync(join(folder, 'crm.secret'), `${issuer.clientSecret}\n`)
    const { email } = (await own.call('GET', '/me', undefined, { cookie: await own.signIn() })).json
    const { url } = await own.gateway.app.makeSignInLink(email)
    const env = { ...envOf(undefined, folder), BRIGADE: own.baseUrl }
    const as = (...words: string[]): Promise<Ran> => runHere(words, env)
    expect((await as('login', '--link', url)).code).toBe(0)
    const client = ['--client-id', issuer.clientId, '--client-secret-from', join(folder, 'crm.secret')]
    const add = (...flags: string[]): Promise<Ran> => as('tools', 'servers', 'add', guarded.url, ...flags)
    const service = await add('--slug', 'service', '--client-credentials', ...client)
    expect([service.code, service.err, service.out]).toEqual([
      0,
      '',
      expect.stringContaining(`registered service: ${fixtureTools.length} tools wait for approval`),
    ])
    const people = await add('--slug', 'people', '--per-person', ...client, '--scopes', 'tools', '--issuer', issuer.url)
    expect([people.code, people.err, people.out]).toEqual([
      0,
      '',
      expect.stringContaining(`registered people. Each person connects at ${own.baseUrl}/console/tools?tab=connections.`),
    ])
    const { servers } = JSON.parse((await as('tools', 'servers', '--json')).out)
    expect(servers.map(({ auth }: { auth: { kind: string } }) => auth.kind)).toEqual(['client_credentials', 'oauth_user'])
    for (const said of [service, people]) expect(said.out + said.err).not.toContain(issuer.clientSecret)
    for (const [flags, message] of [
      [['--client-credentials', '--per-person'], 'one credential'],
      [['--client-credentials'], 'needs --client-id'],
      [['--client-id', 'a'], 'need --client-credentials or --per-person'],
      [['--per-person', '--client-secret-from', join(folder, 'crm.secret')], 'needs --client-id'],
      [['--client-credentials', '--client-id', 'a', '--client-secret-from', 'no-such-file'], 'no such file'],
    ] as const)
      expect(await add(...flags), flags.join(' ')).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) })
    await own.stop()
    await Promise.all([guarded.close(), issuer.close()])
  })

  test('each refusal has its exit code and says what to do', async () => {
    for (const [words, code, message] of [
      [['tools', 'call', 'city__echo', '{"text":'], 2, 'no JSON'],
      [['tools', 'call', 'city__echo', '[]'], 2, 'must be a JSON object'],
      [['tools', 'call', 'city__echo', '{}', '--from', 'x'], 2, 'say either'],
      [['tools', 'call', 'nowhere__echo'], 4, 'tool_not_found'],
      [['tools', 'show', 'nowhere__echo'], 4, 'brigade tools lists'],
      [['tools', 'approve', 'echo', '--yes'], 2, 'no name of a tool'],
      [['tools', 'approve', 'city__echo@12', '--yes'], 2, 'fewer than 8 digits'],
      [['tools', 'approve', 'nowhere__echo', '--yes'], 4, 'brigade tools servers'],
      [['tools', 'block', 'nowhere__echo'], 4, 'brigade tools servers'],
      [['tools', 'servers', 'sync', 'nowhere'], 4, 'brigade tools servers'],
      [['tools', 'servers', 'add', 'https://tools.example.com/mcp', '--header-from', join(home, 'weather.header')], 2, '--header-name'],
      [['tools', 'servers', 'add', 'https://tools.example.com/mcp', '--header-name', 'Authorization', '--header-from', 'no-such-file'], 2, 'no such file'],
      [['tools', 'servers', 'add', 'http://169.254.169.254/mcp'], 1, '(bad_request)'],
    ] as const) {
      const failed = await run(words)
      expect([failed.code, failed.out, failed.err], words.join(' ')).toEqual([code, '', expect.stringContaining(message)])
    }
    const unasked = await run(['tools', 'servers', 'remove', 'city'])
    expect(unasked).toMatchObject({ code: expect.any(Number), out: '' })
    expect(unasked.code).not.toBe(0)
  })

  test('a member may look and not change, another organisation sees nothing, and an API key is not enough', async () => {
    const member = await app.newMember('member')
    const folder = join(home, 'member')
    mkdirSync(folder)
    await signIn(folder, member.cookie)
    const as = (...words: string[]): Promise<Ran> => runHere(words, envOf(undefined, folder))
    expect((await as('tools', 'servers')).code).toBe(0)
    expect(await as('tools', 'servers', 'off', 'city')).toMatchObject({ code: 3, err: expect.stringContaining('(forbidden)') })
    expect(await as('tools', 'block', 'city__echo')).toMatchObject({ code: 3 })
    const nobody = join(home, 'nobody')
    mkdirSync(nobody)
    expect(await runHere(['tools', 'pending'], envOf(app.key, nobody))).toMatchObject({ code: 3, err: expect.stringContaining('an API key is not enough') })
    const other = await app.otherOrg('Others')
    expect((await runHere(['tools', '--json'], envOf(other.key, nobody))).out).toBe('{"tools":[]}\n')
  })
})
