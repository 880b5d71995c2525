/** status, top, chat and completion: against a running gateway, in a pseudo-terminal and in a real shell. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { hasPseudoTerminal } from '../harness/pseudo-terminal.ts'
import { startProgram } from '../harness/started-program.ts'
import { startInTerminal } from '../harness/terminal-dialog.ts'
import { until } from '../harness/until.ts'
import { type Ran, runHere } from './run-here.ts'
import { brigade } from './stdio-clients.ts'

describe('commands that look at a gateway', { timeout: 120_000 }, () => {
  let app: TestApp
  let home: string
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' } })
    home = mkdtempSync(join(tmpdir(), 'brigade-watch-'))
  })
  afterAll(async () => {
    await app.stop()
    rmSync(home, { recursive: true, force: true })
  })
  const envOf = (key = app.key): Record<string, string> => ({ HOME: home, XDG_CONFIG_HOME: home, BRIGADE: app.baseUrl, BRIGADE_KEY: key })
  const run = (words: readonly string[], key?: string): Promise<Ran> => runHere(words, envOf(key))
  async function ran(words: readonly string[], key?: string): Promise<string> {
    const { code, out, err } = await run(words, key)
    expect([code, err], words.join(' ')).toEqual([0, ''])
    return out
  }
  async function typed(words: readonly string[], key: string): Promise<{ code: number | null; out: string }> {
    const { ended, out } = startProgram(process.execPath, [brigade, ...words], { env: envOf(key), cwd: home })
    return { code: await ended, out: out() }
  }

  test('status says in five lines how the gateway is, who calls, what was spent, what is left and which agents are active', async () => {
    const { id } = await app.newAgent('counted')
    await app.setBudget('key', app.keyId, 500)
    await app.call('POST', `/v1/me/agents/${id}/pause`)
    expect((await ran(['status'])).split('\n')).toEqual([
      expect.stringMatching(new RegExp(`^gateway  ${app.baseUrl}, version \\S+, ready, database ok$`)),
      expect.stringMatching(/^you {6}key ".+" of Test Org, owner, scope full$/),
      expect.stringMatching(/^spend {4}₹0\.00 this month, 0 calls, by the organisation$/),
      expect.stringMatching(/^budget {3}₹500\.00 of ₹500\.00 left this month \(key budget\)$/),
      expect.stringMatching(/^agents {3}\d+ active, 1 paused$/),
      '',
    ])
    expect(JSON.parse(await ran(['status', '--json']))).toMatchObject({ gateway: { ready: true }, you: { org: 'Test Org' }, budget: { cap_inr: 500 } })
    await app.setBudget('key', app.keyId, null)
  })

  test('status says what the gateway is also to somebody who is not signed in, with exit code 3', async () => {
    const nobody = await typed(['status'], '')
    expect([nobody.code, nobody.out]).toEqual([3, expect.stringMatching(/^gateway .* ready.*\nyou {6}not signed in/)])
    const refused = await typed(['status'], 'br-of-another-gateway')
    expect([refused.code, refused.out]).toEqual([3, expect.stringContaining('does not accept the credential of BRIGADE_KEY')])
    const { token } = await app.newAgent('narrow')
    expect(await ran(['status'], token)).toContain('agent "narrow" of Test Org')
  })

  test('chat streams the reply of one message, takes it from a pipe too, and strips characters that control the terminal', async () => {
    expect(await ran(['chat', 'Hello', '--model', 'sandbox-chat'])).toMatch(/^This is a simulated reply .*\n$/)
    const { ended, out } = startProgram(process.execPath, [brigade, 'chat', '--json', '--model', 'sandbox-chat'], { env: envOf(), stdin: 'Hello from a pipe' })
    expect(await ended).toBe(0)
    expect(JSON.parse(out()).choices[0].message.content).toContain('simulated reply')
    app.alpha.script({ chunks: ['one\u001b[2Jtwo\n', 'three'] })
    expect(await ran(['chat', 'Hello', '--model', 'test-model'])).toBe('one [2Jtwo\nthree\n')
    expect(await run(['chat', 'Hello', '--model', 'no-such-model'])).toMatchObject({ code: 4, out: '' })
    expect((await run(['chat', '   '])).code).toBe(2)
  })

  test('top lists the active agents with the most spend first, and prints one table where there is no terminal', async () => {
    const { token } = await app.newAgent('spender')
    await app.newAgent('idle')
    await app.call('POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }, { token })
    const first = async (): Promise<string> => (await ran(['top', '-n', '1'])).split('\n')[1] ?? ''
    await until(async () => /spender/.test(await first()), 'the agent that spent is first')
    expect(await first()).toMatch(/^ *\d+ +spender +0\.\d+ +- +- +- +20\d\d-/)
    const { agents } = JSON.parse(await ran(['top', '--json']))
    expect(agents[0].name).toBe('spender')
    expect(agents.map((agent: { status: string }) => agent.status)).not.toContain('paused')
  })

  describe.skipIf(!hasPseudoTerminal)('in a pseudo-terminal (needs the command script of util-linux)', () => {
    test('chat without a text is a conversation; top draws its table again; NO_COLOR turns colours off', async () => {
      const talk = startInTerminal([process.execPath, brigade, 'chat', '--model', 'sandbox-chat'], { env: envOf() })
      await talk.answer('An empty line ends it.', 'Hello')
      await talk.answer('simulated reply', 'again and again')
      await talk.answer('The last message had 3 words', '')
      expect(await talk.ended).toBe(0)
      const top = startInTerminal([process.execPath, brigade, 'top'], { env: envOf() })
      await until(() => top.shown().split('SPENT').length > 2, 'the table is drawn twice')
      top.press('\u0003')
      expect(await top.ended).toBe(0)
      const escapeCode = '\u001b['
      for (const [more, has] of [
        [{}, true],
        [{ NO_COLOR: '1' }, false],
      ] as const) {
        const status = startProgram('script', ['-qec', `'${process.execPath}' '${brigade}' status`, '/dev/null'], {
          env: { TERM: 'xterm-256color', ...envOf(), ...more },
        })
        expect([await status.ended, status.out().includes(escapeCode)]).toEqual([0, has])
      }
    })
  })

  test('completion completes commands, subcommands, options and their values in bash', async () => {
    const script = join(home, 'completion.bash')
    writeFileSync(script, await ran(['completion', 'bash']))
    const complete = async (...words: string[]): Promise<string[]> => {
      const lines = [
        `. '${script}'`,
        `COMP_WORDS=(brigade ${words.map(word => `'${word}'`).join(' ')})`,
        `COMP_CWORD=${words.length}`,
        '_brigade',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: bash replaces the variable.
        'printf "%s\\n" "${COMPREPLY[@]}"',
      ]
      const { ended, out, err } = startProgram('bash', ['--norc', '-c', lines.join('\n')], { env: { HOME: home }, cwd: home })
      expect([await ended, err()]).toEqual([0, ''])
      return out().trim().split('\n')
    }
    expect(await complete('stat')).toEqual(['status'])
    expect(await complete('')).toEqual(expect.arrayContaining(['agent', 'connect', 'logs', 'open', 'top', 'keys', 'providers']))
    expect(await complete('agent', '')).toEqual(expect.arrayContaining(['create', 'list', 'revoke']))
    expect(await complete('agent', 'create', '--bud')).toEqual(['--budget-inr'])
    expect(await complete('usage', '--by', '')).toEqual(['agent', 'model', 'day'])
    expect(await complete('connect', 'c')).toEqual(['claude-code', 'codex', 'cursor'])
    expect(await complete('keys', 'ls', '--js')).toEqual(['--json'])
    expect(await complete('memory', 'put', 'x', 'completion.b')).toEqual(['completion.bash'])
    for (const shell of ['zsh', 'fish']) expect(await ran(['completion', shell])).toContain(shell === 'zsh' ? "'create:" : "-a 'create'")
    expect(await run(['completion', 'tcsh'])).toMatchObject({ code: 2 })
  })
})
