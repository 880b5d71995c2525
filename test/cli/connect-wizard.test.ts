/** `brigade connect` without a client, and what it looks at before it writes: with a real gateway, a home folder of its own and programs on the PATH. */
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { hasPseudoTerminal } from '../harness/pseudo-terminal.ts'
import { startProgram } from '../harness/started-program.ts'
import { startInTerminal } from '../harness/terminal-dialog.ts'
import { brigade } from './stdio-clients.ts'

describe('brigade connect and the gateway', { timeout: 120_000 }, () => {
  let app: TestApp
  let home: string
  /** An address where nothing listens. */
  let closed: string
  beforeAll(async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    closed = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await new Promise(done => server.close(done))
    app = await startApp({ env: { SANDBOX: 'on' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'brigade-wizard-'))
    mkdirSync(join(home, 'bin'))
    for (const name of ['claude', 'codex']) {
      writeFileSync(join(home, 'bin', name), '#!/bin/sh\nexit 0\n')
      chmodSync(join(home, 'bin', name), 0o755)
    }
    // A text file of that name is no program.
    writeFileSync(join(home, 'bin', 'opencode'), 'a text')
    return () => rmSync(home, { recursive: true, force: true })
  })

  const envOf = (more: Record<string, string> = {}): Record<string, string> => ({
    HOME: home,
    PATH: [join(home, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    BRIGADE: app.baseUrl,
    BRIGADE_KEY: app.key,
    ...more,
  })
  const words = (...given: string[]): string[] => [process.execPath, brigade, 'connect', ...given]
  async function type(given: string[], env: Record<string, string> = {}): Promise<{ code: number | null; out: string; err: string }> {
    const [program = '', ...args] = words(...given)
    const { ended, out, err } = startProgram(program, args, { env: envOf(env), cwd: home })
    const code = await ended
    expect(out() + err()).not.toContain(app.key)
    return { code, out: out(), err: err() }
  }
  const terminal = (given: string[], env: Record<string, string> = {}) => startInTerminal(words(...given), { env: envOf(env), cwd: home })
  const filesInHome = (): string[] => readdirSync(home).filter(name => name !== 'bin')
  // biome-ignore lint/suspicious/noExplicitAny: the test reads arbitrary settings.
  const codex = (): any => parseToml(readFileSync(join(home, '.codex', 'config.toml'), 'utf8'))
  const agents = async (): Promise<{ id: number; name: string; status: string }[]> => (await app.call('GET', '/v1/me/agents')).json.agents
  async function ended(name: string): Promise<number> {
    const { id } = (await app.call('POST', '/v1/me/agents', { name })).json
    expect((await app.call('POST', `/v1/me/agents/${id}/revoke`)).status).toBe(200)
    return id
  }

  describe.skipIf(!hasPseudoTerminal)('in a pseudo-terminal (needs the command script of util-linux)', () => {
    test('FIRST-08 finds the clients, asks which, makes the agent, writes, and checks each with a real call as that agent', async () => {
      mkdirSync(join(home, '.cursor'))
      const { answer, ended: end, shown } = terminal([])
      await answer('Which ones?', '1, 2')
      expect(shown()).toContain(`1  Claude Code  ${join(home, 'bin', 'claude')}`)
      expect(shown()).toContain(`2  Codex        ${join(home, 'bin', 'codex')}`)
      expect(shown()).toContain(`3  Cursor       ${join(home, '.cursor')}`)
      expect(shown()).not.toContain('4  opencode')
      await answer('Name of the agent', 'builder')
      await answer('model calls go through Brigade too?', 'y')
      await answer('Write these settings? [Y/n]', '')
      expect(await end, shown()).toBe(0)
      expect(shown()).toContain(`creates    ${join(home, '.codex', 'config.toml')}`)
      expect(shown()).toContain('made the agent "builder"')
      expect(shown()).toMatch(/Claude Code: works: \d+ tools, calls models as agent "builder", sandbox-chat answered/)
      expect(shown()).toMatch(/Codex: works: \d+ tools, calls models as agent "builder", sandbox-chat answered/)
      expect(shown()).not.toContain(app.key)
      expect(codex().mcp_servers.brigade.args).toEqual(expect.arrayContaining(['--agent', 'builder']))
      expect(existsSync(join(home, '.cursor', 'mcp.json'))).toBe(false)
      expect(await agents()).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'builder', status: 'active' })]))
      const { events } = (await app.call('GET', '/me/activity/events', undefined, { cookie: await app.signIn() })).json
      const made = events.filter((event: { agent_name: string }) => event.agent_name === 'builder')
      expect(made.map((event: { kind: string }) => event.kind).sort()).toEqual(['messages', 'responses'])
    })

    test('an answer that is no number is asked again; no at the end, and Ctrl-D, leave everything as it is', async () => {
      const first = terminal(['--agent', 'never-made'])
      await first.answer('Which ones?', '7')
      await first.answer('Type numbers from 1 to 2', '')
      await first.answer('model calls go through Brigade too?', 'n')
      await first.answer('Write these settings? [Y/n]', 'n')
      expect(await first.ended).toBe(1)
      expect(first.shown()).toContain('brigade: nothing was written.')
      const second = terminal([])
      await second.answer('Which ones?', 'all')
      await second.answer('Name of the agent', '\u0004')
      second.press('\u0004')
      expect(await second.ended).toBe(1)
      expect(filesInHome()).toEqual([])
      expect((await agents()).map(({ name }) => name)).not.toContain('never-made')
    })

    test('nothing is asked when the gateway is away or nobody is signed in, and an agent that was ended is refused before the changes are shown', async () => {
      const away = terminal([], { BRIGADE: closed })
      expect([await away.ended, away.shown()]).toEqual([1, expect.stringContaining('nothing listens at')])
      const unknown = terminal([], { BRIGADE_KEY: '' })
      expect([await unknown.ended, unknown.shown()]).toEqual([3, expect.stringContaining('not signed in')])
      for (const { shown } of [away, unknown]) expect(shown()).not.toContain('Which ones?')
      await ended('left')
      const past = terminal([])
      await past.answer('Which ones?', '2')
      await past.answer('Name of the agent', 'left')
      await past.answer('model calls go through Brigade too?', 'y')
      expect(await past.ended).toBe(6)
      expect(past.shown()).toContain('brigade agent create left')
      expect(past.shown()).not.toContain('Write these settings?')
      expect(filesInHome()).toEqual([])
    })
  })

  test('when nobody can answer, it prints what it found with the exact command of each, and exits with 2', async () => {
    const { code, out, err } = await type(['--agent', 'builder'])
    expect([code, err]).toEqual([2, 'brigade: say which client: brigade connect <client> --write. Or connect all of them with --yes.\n'])
    expect(out).toContain(`Codex  (${join(home, 'bin', 'codex')})\n  npx brigade connect codex --base-url ${app.baseUrl} --agent builder --write\n`)
    const asJson = await type(['--json'], { BRIGADE: closed })
    expect(JSON.parse(asJson.out).clients.map((one: { client: string }) => one.client)).toEqual(['claude-code', 'codex'])
    expect(JSON.parse(asJson.err)).toMatchObject({ error: { code: 'usage' } })
    expect(filesInHome()).toEqual([])
  })

  test('--yes answers all questions and connects what it found; a second run changes nothing and makes no second agent', async () => {
    for (const outcome of ['created', 'unchanged']) {
      const { code, out, err } = await type(['--yes', '--json', '--agent', 'second'])
      expect([code, err]).toEqual([0, ''])
      const { clients, agent } = JSON.parse(out)
      expect(clients.map((one: { client: string; check: { state: string } }) => [one.client, one.check.state])).toEqual([
        ['claude-code', 'works'],
        ['codex', 'works'],
      ])
      expect(clients[1].files[0].outcome).toBe(outcome)
      expect(agent).toMatchObject({ name: 'second', isNew: outcome === 'created' })
    }
    expect((await agents()).filter(({ name }) => name === 'second')).toHaveLength(1)
  })

  test('an agent that was ended and a gateway that is away are refused before anything is written, for one client too', async () => {
    const id = await ended('gone')
    for (const named of ['gone', String(id)]) {
      const { code, out, err } = await type(['codex', '--write', '--agent', named])
      expect([code, out]).toEqual([6, ''])
      expect(err).toContain(`the agent "gone" (id ${id}) was ended permanently`)
      expect(err).toContain('brigade agent create gone')
    }
    expect((await type(['codex', '--write', '--agent', '999999'])).code).toBe(4)
    for (const given of [['codex', '--write', '--agent', 'gone'], ['cursor', '--write'], ['--yes']]) {
      const { code, err } = await type(given, { BRIGADE: closed })
      expect([code, err]).toEqual([1, expect.stringContaining(`nothing listens at ${closed}`)])
    }
    expect(filesInHome()).toEqual([])
    // Another agent may have the name of one that was ended.
    expect((await app.call('POST', '/v1/me/agents', { name: 'gone' })).status).toBe(201)
    expect(await type(['codex', '--write', '--agent', 'gone'])).toMatchObject({ code: 0, out: expect.stringContaining('calls models as agent "gone"') })
  })

  test('a check that fails says why and exits with 1; without BRIGADE_KEY the client is written and not checked', async () => {
    const refused = await type(['codex', '--write'], { BRIGADE_KEY: 'br-of-another-gateway' })
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('the settings of Codex are written, but the check failed')])
    const unset = await type(['codex', '--write', '--json'], { BRIGADE_KEY: '' })
    expect([unset.code, JSON.parse(unset.out).check]).toEqual([
      0,
      expect.objectContaining({ state: 'not_checked', detail: expect.stringContaining('BRIGADE_KEY') }),
    ])
  })

  test('settings that a person has kept for another provider are neither called nor run', async () => {
    mkdirSync(join(home, '.claude'))
    const marker = join(home, 'bin', 'was-run')
    const kept = { env: { ANTHROPIC_BASE_URL: app.baseUrl }, apiKeyHelper: `touch ${marker}` }
    writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(kept))
    const { code, out } = await type(['claude-code', '--write', '--agent', 'careful'])
    expect([code, out]).toEqual([0, expect.stringMatching(/Claude Code: works: \d+ tools\n/)])
    expect(existsSync(marker)).toBe(false)
  })
})
