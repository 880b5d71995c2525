/** The client commands against a running gateway. Some run as processes. The others run in this process, which starts faster. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { formOf } from '../harness/cli-login.ts'
import { startProgram } from '../harness/started-program.ts'
import { startTcpProxy } from '../harness/tcp-proxy.ts'
import { until } from '../harness/until.ts'
import { documentedLines } from './documented-lines.ts'
import { type Ran, runHere } from './run-here.ts'
import { brigade } from './stdio-clients.ts'

interface Typing {
  readonly stdin?: string | Buffer
  /** The credential in the environment. Null means no credential. */
  readonly key?: string | null
  readonly address?: string
}

describe('client commands', () => {
  let app: TestApp
  let home: string
  beforeAll(async () => {
    app = await startApp()
    await app.gateway.app.memory.useFolder(app.orgId)
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'brigade-home-'))
    return () => rmSync(home, { recursive: true, force: true })
  })

  function start(words: readonly string[], { stdin, key = app.key, address = app.baseUrl }: Typing) {
    const env = { HOME: home, BRIGADE: address, ...(key === null ? {} : { BRIGADE_KEY: key }) }
    return startProgram(process.execPath, [brigade, ...words], { env, cwd: home, ...(stdin === undefined ? {} : { stdin }) })
  }
  /** Runs a command as a process and waits for its end. */
  async function type(words: readonly string[], typing: Typing = {}): Promise<Ran> {
    const { ended, bytes, err } = start(words, typing)
    const code = await ended
    return shown({ code, bytes: bytes(), err: err() })
  }
  /** Runs the same program in this process. */
  const run = async (words: readonly string[], { key = app.key, address = app.baseUrl }: Omit<Typing, 'stdin'> = {}): Promise<Ran> =>
    shown(await runHere(words, { XDG_CONFIG_HOME: join(home, '.config'), BRIGADE: address, BRIGADE_KEY: key ?? undefined }))
  function shown({ code, bytes, err }: Omit<Ran, 'out'>): Ran {
    // No output ever contains a key.
    expect(bytes.toString() + err).not.toContain(app.key)
    return { code, out: bytes.toString(), err, bytes }
  }
  /** Returns the output of a command, which must have succeeded. */
  function worked(words: readonly string[], { code, out, err }: Ran): string {
    expect([code, err], words.join(' ')).toEqual([0, ''])
    return out
  }
  const typed = async (words: readonly string[], typing?: Typing): Promise<string> => worked(words, await type(words, typing))
  const ran = async (words: readonly string[], typing?: Typing): Promise<string> => worked(words, await run(words, typing))
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of the API.
  const json = async (words: readonly string[], typing?: Typing): Promise<any> => JSON.parse(await ran([...words, '--json'], typing))
  const tokenFiles = (): string[] => readdirSync(join(home, '.config', 'brigade', 'tokens')).map(name => join(home, '.config', 'brigade', 'tokens', name))

  test('TOOL-02 brigade login, whoami, agent token, memory and budget work against a running gateway', async () => {
    const login = start(['login', '--no-browser'], { key: null })
    const address = (): string | undefined => /http:\S+(\/cli\/login\?\S+)/.exec(login.out())?.[1]
    await until(() => address() !== undefined, 'the address is printed')
    const cookie = await app.signIn()
    const shown = await app.call('GET', address() ?? '', undefined, { cookie })
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const handOver = await app.call('POST', '/cli/login', new URLSearchParams(formOf(shown.text)).toString(), { cookie, headers })
    expect((await fetch(handOver.headers.get('location') ?? '')).status).toBe(200)
    expect(await login.ended).toBe(0)

    // From here on, only the stored login identifies the caller.
    const asUser: Typing = { key: null }
    expect(JSON.parse(await typed(['whoami', '--json'], asUser))).toMatchObject({ org: { name: 'Test Org' }, role: 'owner', scope: 'full' })
    const agent = await json(['agent', 'create', 'reviewer', '--budget-inr', '500', '--models', 'test-model'], asUser)
    expect(agent).toMatchObject({ name: 'reviewer', monthly_budget_inr: 500, allowed_models: ['test-model'] })
    const token = (await ran(['agent', 'token', 'reviewer'], asUser)).trim()
    const asAgent: Typing = { key: token }
    const me = await ran(['whoami'], asAgent)
    expect(me).toMatch(/^agent +reviewer \(id \d+\)$/m)
    expect(me).toMatch(/^scope +inference memory:read memory:write usage:read tools:call$/m)

    await typed(['memory', 'put', 'agents/reviewer/notes.md'], { ...asAgent, stdin: 'The build is green.\n' })
    const read = await run(['memory', 'get', 'agents/reviewer/notes.md', '-v'], asUser)
    expect([read.code, read.out]).toEqual([0, 'The build is green.\n'])
    expect(read.err).toMatch(new RegExp(`^agent: reviewer \\(${agent.id}\\)$`, 'm'))

    const budget = await ran(['budget'], asAgent)
    expect(budget.split('\n')[0]).toMatch(/^SCOPE +ID +PERIOD +CAP ₹ +SPENT ₹ +HELD ₹ +LEFT ₹ +STATE +RESETS$/)
    expect(budget).toMatch(new RegExp(`^agent +${agent.id} +month +500\\.00 +0\\.00 +0\\.00 +500\\.00 +under`, 'm'))
    expect(await json(['budget'], asUser)).toEqual({ budgets: [] })
  })

  test('agent token prints only the token and stores it; it mints a new token for other parameters, for --fresh, and when the stored file is broken', async () => {
    const { id } = await json(['agent', 'create', 'helper'])
    const first = await ran(['agent', 'token', 'helper'])
    expect(first).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const token = first.trim()
    expect(await ran(['agent', 'token', '--agent', 'helper', '--header'])).toBe(`Authorization: Bearer ${token}\n`)
    expect(await ran(['agent', 'token', 'helper', '--headers-json'])).toBe(`{"Authorization":"Bearer ${token}"}\n`)
    expect(await json(['agent', 'token', 'helper'])).toMatchObject({ access_token: token, token, token_type: 'Bearer', agent_id: id })
    const narrow = await json(['agent', 'token', String(id), '--scope', 'memory:read', '--ttl-s', '300'])
    expect(narrow.scope).toBe('memory:read')
    expect(narrow.expires_in).toBeLessThanOrEqual(300)
    expect(await ran(['agent', 'token', 'helper', '--fresh'])).not.toBe(first)
    for (const file of tokenFiles()) writeFileSync(file, '{"access_token":')
    const parallel = await Promise.all([1, 2, 3].map(() => typed(['agent', 'token', 'helper'])))
    for (const one of parallel) expect((await app.call('GET', '/v1/me/whoami', undefined, { token: one.trim() })).json.agent).toEqual({ id, name: 'helper' })
    expect(tokenFiles().filter(name => !name.endsWith('.json'))).toEqual([])
  })

  test('agent token does not return a stored token that was revoked; it returns the stored token while the gateway is unreachable', async () => {
    const proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) })
    const address = `http://127.0.0.1:${proxy.port}`
    try {
      const parent = await json(['agent', 'create', 'parent', '--may-delegate'], { address })
      const first = await ran(['agent', 'token', 'parent'], { address })
      expect(await ran(['agent', 'token', 'parent'], { address })).toBe(first)
      await proxy.cut()
      expect(await ran(['agent', 'token', 'parent'], { address })).toBe(first)
      await proxy.restore()
      const ended = await fetch(`${app.baseUrl}/oauth/revoke`, {
        method: 'POST',
        headers: { authorization: `Bearer ${app.key}` },
        body: new URLSearchParams({ token: first.trim() }),
      })
      expect(ended.status).toBe(200)
      const second = await ran(['agent', 'token', 'parent'], { address })
      expect(second).not.toBe(first)
      expect((await app.call('GET', '/v1/me/whoami', undefined, { token: second.trim() })).status).toBe(200)
      // A child ends with its parent, whoever revokes the parent. The child's stored token is deleted at the next request for one.
      const child = await app.call('POST', `/v1/me/agents/${parent.id}/children`, { name: 'child' }, { token: second.trim() })
      expect(child.status).toBe(201)
      await ran(['agent', 'token', 'child'], { address })
      await json(['agent', 'revoke', 'parent', '--yes'], { address })
      for (const name of ['parent', 'child']) expect((await run(['agent', 'token', name], { address })).code).toBe(6)
      expect(tokenFiles()).toEqual([])
    } finally {
      await proxy.close()
    }
  })

  test('agent update changes and removes rules, and does not change the others', async () => {
    await json(['agent', 'create', 'ruled', '--models', 'test-model', '--max-cost-inr', '2', '--max-concurrency', '3'])
    expect(await json(['agent', 'update', 'ruled', '--models', 'none', '--max-output-tokens', '50', '--may-delegate'])).toMatchObject({
      allowed_models: null,
      max_cost_inr_per_call: 2,
      max_output_tokens: 50,
      max_concurrency: 3,
      may_delegate: true,
    })
    expect(await json(['agent', 'update', 'ruled', '--max-cost-inr', 'none', '--no-may-delegate'])).toMatchObject({
      max_cost_inr_per_call: null,
      may_delegate: false,
    })
    expect(await run(['agent', 'update', 'ruled'])).toMatchObject({ code: 2, err: expect.stringContaining('say which rule') })
    expect((await run(['agent', 'update', 'nobody-of-that-name', '--models', 'none'])).code).toBe(4)
  })

  test('logout leaves no key and no token on this computer, whether or not the gateway is reachable', async () => {
    const folder = join(home, '.config', 'brigade')
    const { key } = await app.newKey({ name: 'CLI of mine' })
    const kept = JSON.stringify({ base_url: app.baseUrl, key })
    const signedIn = (text: string): void => {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'credentials.json'), text)
    }
    signedIn(kept)
    await json(['agent', 'create', 'left'])
    await ran(['agent', 'token', 'left'], { key: null })
    const out = await ran(['logout'], { key: null })
    expect(out).toContain(`Signed out of ${app.baseUrl}`)
    expect(out).toMatch(/^1 kept agent token is gone too\.$/m)
    expect(out).toMatch(/^The key "CLI of mine" itself stays valid until somebody ends it: DELETE \/me\/keys\/\d+/m)
    expect([out.includes(key), readdirSync(folder)]).toEqual([false, []])
    expect(await run(['whoami'], { key: null })).toMatchObject({ code: 3, err: expect.stringContaining('not signed in') })
    expect(await ran(['logout'])).toBe(
      'Nobody was signed in; nothing was kept.\nBRIGADE_KEY or BRIGADE_KEY_FILE is still set in this shell: commands go on using it.\n',
    )
    for (const text of [kept.replace(app.baseUrl, 'http://127.0.0.1:1'), '{"base_url":']) {
      signedIn(text)
      expect(await json(['logout'], { key: null })).toMatchObject({ key: null, tokens: 0 })
      expect(readdirSync(folder)).toEqual([])
    }
  })

  test('agent revoke asks for confirmation and deletes the stored tokens of the agent; afterwards the agent gets no token', async () => {
    await json(['agent', 'create', 'leaving'])
    const token = (await ran(['agent', 'token', 'leaving'])).trim()
    const unasked = await run(['agent', 'revoke', 'leaving'])
    expect([unasked.code, unasked.out]).toEqual([2, ''])
    expect(unasked.err).toContain('add --yes')
    expect(await ran(['agent', 'revoke', 'leaving', '--yes'])).toMatch(/^revoked leaving \(id \d+\)\n$/)
    expect(tokenFiles()).toEqual([])
    const again = await run(['agent', 'token', 'leaving'])
    const asIt = await run(['whoami'], { key: token })
    const list = await ran(['agent', 'list'])
    expect([again.code, again.out]).toEqual([6, ''])
    expect(again.err).toContain('was revoked permanently')
    expect([asIt.code, asIt.out]).toEqual([3, ''])
    expect(asIt.err).toContain('was revoked permanently')
    expect(list).not.toContain('leaving')
  })

  test('when the home folder cannot be written, agent token prints the token and a note on stderr', async () => {
    await json(['agent', 'create', 'homeless'])
    mkdirSync(join(home, '.config'), { recursive: true })
    writeFileSync(join(home, '.config', 'brigade'), 'a file where the folder should be')
    const { code, out, err } = await run(['agent', 'token', 'homeless'])
    expect([code, out.split('.').length]).toEqual([0, 3])
    expect(err).toContain('not kept')
  })

  test('the memory commands write and read bytes unchanged, and support conditions, versions, search and lists', async () => {
    const bytes = Buffer.from(Array.from({ length: 5000 }, (_byte, at) => (at * 7) % 256))
    writeFileSync(join(home, 'in.bin'), bytes)
    const key = 'agents/cli/data.bin'
    const { etag } = await json(['memory', 'put', key, join(home, 'in.bin')])
    expect((await run(['memory', 'get', key])).bytes.equals(bytes)).toBe(true)
    await ran(['memory', 'put', key, '--text', 'Now it is green text.', '--if-match', etag])
    const stale = await run(['memory', 'put', key, '--text', 'too late', '--if-match', etag, '--json'])
    expect([stale.code, stale.out]).toEqual([6, ''])
    expect(JSON.parse(stale.err)).toMatchObject({ error: { code: 'memory_conflict', status: 412 }, current_etag: expect.any(String) })
    expect((await run(['memory', 'put', key, '--text', 'x', '--create-only'])).code).toBe(6)
    expect(await ran(['memory', 'search', 'GREEN text', '--prefix', 'agents/cli/'])).toBe(`${key}:1: Now it is green text.\n`)
    const { versions } = await json(['memory', 'history', key])
    expect(versions).toHaveLength(2)
    await ran(['memory', 'rm', key])
    expect((await run(['memory', 'get', key])).code).toBe(4)
    await ran(['memory', 'restore', key, versions[1].version])
    await ran(['memory', 'get', key, '-o', join(home, 'out.bin')])
    expect(readFileSync(join(home, 'out.bin')).equals(bytes)).toBe(true)
    await ran(['memory', 'append', 'agents/cli/log', '--text', 'One entry.'])
    const all = await ran(['memory', 'ls', 'agents/cli/'])
    const level = await ran(['memory', 'ls', 'agents/cli/', '--level', '--keys'])
    expect(all).toMatch(/^ +5000 {2}[\d-]{10}T[\d:]{8} {2}user:\d+ +agents\/cli\/data\.bin$/m)
    expect(all).toContain('agents/cli/log/')
    expect(level).toBe('agents/cli/data.bin\nagents/cli/log/\n')
  })

  test('when the reader of the output disconnects, the command ends without an error', async () => {
    await app.call('PUT', '/v1/me/memory/o?key=agents/large.txt', 'large '.repeat(500_000))
    const { child, ended, err } = start(['memory', 'get', 'agents/large.txt'], {})
    child.stdout?.once('data', () => child.stdout?.destroy())
    expect([await ended, err()]).toEqual([0, ''])
  })

  test('usage is shown by agent, model and day, and as CSV', async () => {
    const agent = await app.newAgent('spender')
    const body = { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] }
    expect((await app.call('POST', '/v1/chat/completions', body, { token: agent.token })).status).toBe(200)
    const plain = await json(['usage'])
    const byAgent = await ran(['usage', '--by', 'agent'])
    const byDay = await json(['usage', '--by', 'day'])
    const csv = await ran(['usage', '--csv'])
    expect(plain).toEqual((await app.call('GET', '/v1/usage')).json)
    expect(byAgent).toMatch(new RegExp(`^spender \\(id ${agent.id}\\) +1 +\\d+ +\\d+ +`, 'm'))
    expect(byDay.by_day).toHaveLength(1)
    expect(byDay.by_day[0].value_inr).toBeCloseTo(plain.totals.value_inr, 6)
    expect(csv).toBe((await app.call('GET', '/v1/usage?format=csv')).text)
  })

  test('the budget of an agent can be shown, set and cleared', async () => {
    await json(['agent', 'create', 'saver'])
    expect(await ran(['agent', 'budget', 'saver', '--inr', '12.5'])).toMatch(/^monthly budget +₹12\.50$/m)
    expect((await json(['agent', 'budget', 'saver'])).monthly_budget_inr).toBe(12.5)
    expect((await json(['agent', 'budget', 'saver', '--clear'])).monthly_budget_inr).toBe(null)
    expect((await run(['agent', 'budget', 'nobody-of-that-name'])).code).toBe(4)
  })

  test('each kind of failure has its own exit code and a line that says what to do', async () => {
    const { key: narrow } = await app.newKey({ scope: 'inference' })
    const { key: slow } = await app.newKey({ rpm: 1 })
    await app.call('GET', '/v1/me/whoami', undefined, { token: slow })
    for (const [words, typing, code, message] of [
      [['whoami', '--loud'], {}, 2, "unknown option '--loud'. Add --help"],
      [['memory'], {}, 2, 'say which command'],
      [['agent', 'token'], {}, 2, 'brigade agent token <name or id>'],
      [['memory', 'put', 'agents/x', 'no-such-file'], {}, 2, 'there is no such file'],
      [['whoami'], { key: null }, 3, 'you are not signed in'],
      [['whoami'], { key: 'br-of-another-gateway-1' }, 3, 'does not accept the credential of BRIGADE_KEY'],
      [['agent', 'create', 'x'], { key: narrow }, 3, '(forbidden)'],
      [['memory', 'get', 'users/999999/x'], {}, 3, '(forbidden)'],
      [['agent', 'token', 'nobody-of-that-name'], {}, 4, 'brigade agent list shows them'],
      [['whoami'], { key: slow }, 5, '(rate_limit_exceeded)'],
      [['whoami'], { address: 'http://127.0.0.1:1' }, 1, 'http://127.0.0.1:1'],
      [['usage', '--from', '2026-02-31'], {}, 1, 'is no calendar day'],
    ] as const) {
      const failed = await run(words, typing)
      expect([failed.code, failed.out], words.join(' ')).toEqual([code, ''])
      expect(failed.err).toContain(message)
      expect(failed.err.trimEnd().split('\n').at(-1)).toMatch(/^brigade: /)
    }
  })

  test('the commands of docs/guides/cli.md work as they are written, from first to last', async () => {
    const lines = documentedLines()
    expect(lines.length).toBeGreaterThan(20)
    // The page shows and ends a run, which a call of a program has begun.
    const body = { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] }
    expect((await app.call('POST', '/v1/chat/completions', body, { headers: { 'x-br-run-id': 'pr-1234' } })).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    for (const words of lines) await ran(words)
  })
})
