/** The clients as they are, on the settings that `brigade connect --write` writes and nothing else. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { connect, memoryOf, writePrompt } from './connected.ts'
import { programOf, type Ran, run, throwAwayHome } from './programs.ts'

let app: TestApp
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  app = await startApp({ env: { SANDBOX: 'on' } })
  await app.gateway.app.memory.useFolder(app.orgId)
})
afterAll(() => app.stop())
beforeEach(() => {
  home = throwAwayHome()
})
afterEach(() => home.remove())

const env = (more: Record<string, string> = {}): Record<string, string> => ({ HOME: home.path, BRIGADE_KEY: app.key, ...more })
const codex = (prompt: string): Promise<Ran> => run(programOf('CODEX_PROGRAM'), ['exec', '--skip-git-repo-check', prompt], { cwd: home.work, env: env() })
const claude = (args: readonly string[]): Promise<Ran> =>
  run(programOf('CLAUDE_PROGRAM'), args, {
    cwd: home.work,
    env: env({ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', CLAUDE_CODE_MAX_RETRIES: '2', ENABLE_TOOL_SEARCH: 'false' }),
  })
const opencode = (prompt: string): Promise<Ran> =>
  run(programOf('OPENCODE_PROGRAM'), ['run'], {
    cwd: home.work,
    env: env({ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    stdin: prompt,
  })

/** Each test has an agent and a key of memory of its own. */
async function place(name: string): Promise<{ agentId: number; key: string }> {
  const { id } = await app.newAgent(name)
  return { agentId: id, key: `agents/${id}/notes.md` }
}

/** The client ended well, said what the model said last, and left this in memory. */
async function expectWritten(ran: Ran, key: string, author: { agent: number } | 'owner'): Promise<void> {
  expect({ code: ran.code, said: ran.stdout, stderr: ran.code === 0 ? '' : ran.stderr }).toMatchObject({
    code: 0,
    said: expect.stringContaining('the tool answered with'),
    stderr: '',
  })
  const { text, headers } = await memoryOf(app, key)
  const by = { user: headers.get('x-br-meta-user'), agent: headers.get('x-br-meta-agent') }
  expect({ text, ...by }, `${ran.stdout}\n${ran.stderr}`).toEqual({
    text: 'from the client',
    user: String(app.userId),
    agent: author === 'owner' ? null : String(author.agent),
  })
}

test('TOOL-02 Codex on the config of connect calls a memory tool and finishes, with Brigade as its models and its tools', async () => {
  const { key } = await place('codex by key')
  await connect(app, home, 'codex', '--trust-tools')
  await expectWritten(await codex(writePrompt('mcp__brigade__memory_write', key, 'from the client')), key, 'owner')
})

test('TOOL-02 Codex as an agent: its own models and its tools run on tokens, usage and memory name the agent', async () => {
  const { agentId, key } = await place('codex agent')
  await connect(app, home, 'codex', '--trust-tools', '--agent', 'codex agent')
  const ran = await codex(writePrompt('mcp__brigade__memory_write', key, 'from the client'))
  await expectWritten(ran, key, { agent: agentId })
  expect(ran.stderr).not.toContain('failed to refresh available models')
  const { by_agent } = (await app.call('GET', '/v1/usage')).json
  // The check of connect has made one of them.
  expect(by_agent).toContainEqual(expect.objectContaining({ id: agentId, requests: 3 }))
})

test('TOOL-02 Claude Code on the config of connect calls a memory tool and finishes', async () => {
  const { key } = await place('claude by key')
  await connect(app, home, 'claude-code', '--trust-tools')
  expect((await claude(['mcp', 'list'])).stdout).toMatch(/brigade: .*Connected/)
  await expectWritten(await claude(['-p', writePrompt('mcp__brigade__memory_write', key, 'from the client')]), key, 'owner')
})

test('TOOL-02 Claude Code as an agent: models by its helper, tools by the bridge', async () => {
  const { agentId, key } = await place('claude agent')
  await connect(app, home, 'claude-code', '--trust-tools', '--agent', 'claude agent')
  await expectWritten(await claude(['-p', writePrompt('mcp__brigade__memory_write', key, 'from the client')]), key, { agent: agentId })
})

test('TOOL-02 Claude Code takes the .mcp.json that connect writes for a project', async () => {
  const { key } = await place('claude project')
  await connect(app, home, 'claude-code', '--project', '--trust-tools')
  const args = ['-p', writePrompt('mcp__brigade__memory_write', key, 'from the client'), '--mcp-config', '.mcp.json']
  await expectWritten(await claude([...args, '--allowedTools', 'mcp__brigade']), key, 'owner')
})

test('TOOL-02 opencode on the config of connect calls a memory tool and finishes', async () => {
  const { key } = await place('opencode by key')
  await connect(app, home, 'opencode')
  await expectWritten(await opencode(writePrompt('brigade_memory_write', key, 'from the client')), key, 'owner')
})

test('TOOL-02 opencode with the tools of an agent, and models by key', async () => {
  const { agentId, key } = await place('opencode agent')
  await connect(app, home, 'opencode', '--models')
  await connect(app, home, 'opencode', '--tools', '--agent', 'opencode agent')
  await expectWritten(await opencode(writePrompt('brigade_memory_write', key, 'from the client')), key, { agent: agentId })
})

test('the lines that connect prints for the clients’ own commands come to the same', async () => {
  const lineOf = (printed: string): string =>
    printed
      .split('\n')
      .find(line => /^ {2}(codex|claude) mcp add/.test(line))
      ?.trim() ?? ''
  for (const [client, program] of [
    ['codex', programOf('CODEX_PROGRAM')],
    ['claude-code', programOf('CLAUDE_PROGRAM')],
  ] as const) {
    const line = lineOf(await connect(app, home, client, '--tools', '--print'))
    const ran = await run('sh', ['-c', line.replace(/^\w+/, `'${program}'`)], { cwd: home.work, env: env() })
    expect({ line, code: ran.code, stderr: ran.code === 0 ? '' : ran.stderr }).toMatchObject({ code: 0, stderr: '' })
    const listed = await run(program, ['mcp', 'list'], { cwd: home.work, env: env() })
    expect(listed.stdout).toMatch(/brigade.*\/mcp/)
    // Codex and Claude Code have written what connect would write: nothing is left to change.
    expect(await connect(app, home, client, '--tools')).toContain('unchanged')
  }
})
